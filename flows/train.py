"""The parent flow: one run, from the request to its last charge.

It holds no process while it waits. When nothing is to be decided for a while it puts its own flow run back to
Scheduled, under a name and a time people can read, and leaves; at that time, or when the sweep sees something happen,
it comes back as the same flow run and goes on from the journal (docs/decisions/0605).
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run as own
from prefect.states import Completed, Failed

from flows.catalogs import current
from flows.datasets import dataset_of
from flows.driver import Done, Driver
from flows.flowruns import FlowRuns
from flows.journal import Journal
from flows.requests import ask
from flows.rows import RunRow
from flows.settings import Settings
from flows.sites import Sites
from regions.errors import FencedError

POLL = 0.5
"""Real seconds between two looks while a decision is near."""


def _name() -> str:
    """Name the flow run after its run: the recipe and the first eight characters of the flow run's id."""
    parameters = own.get_parameters()
    run = parameters.get("run")
    recipe = run.get("id", "run") if isinstance(run, dict) else str(run).rpartition("/")[2].partition(".")[0]
    return parameters.get("resume") or f"{recipe}-{str(own.get_id())[:8]}"


@flow(name="train", flow_run_name=_name, persist_result=False, validate_parameters=False)
def train(run: str | dict[str, Any], resume: str | None = None) -> State[None]:
    """Train what a run file asks for, wherever it is cheapest, without losing a step.

    `run` is the id of a run file, its path or URL, or the run itself as an object. `resume` names a run of the journal
    that was cancelled or has failed; it goes on under this flow run, and `run` is then not read.
    """
    settings = Settings.read(os.environ)
    flow_run = str(own.get_id())
    journal = Journal.open(settings.database_url)
    row = journal.run_of(flow_run)
    if row is None and resume is not None:
        row = journal.reopen(resume, flow_run)
    if row is None:
        row = submit(journal, flow_run, run, settings)
    flowruns = FlowRuns(settings.api_url)
    return drive(Driver(journal, row, settings, flowruns), flow_run, flowruns, settings)


def submit(journal: Journal, flow_run: str, run: str | dict[str, Any], settings: Settings) -> RunRow:
    """Check a request whole and record it as a new run; nothing has started before that."""
    clock = settings.clock
    catalog = current(journal, settings.catalog, clock)
    asked = ask(run, settings, catalog)
    dataset = dataset_of(asked.request, Sites(settings, catalog))
    return journal.submit(
        {
            "id": f"{asked.request.id}-{flow_run[:8]}",
            "flow_run": flow_run,
            "recipe": asked.request.id,
            "team": asked.request.team,
            "priority": asked.request.priority,
            "request": asked.document(),
            "dataset": None if dataset is None else dataset.model_dump(mode="json"),
            "catalog": catalog.digest,
            "submitted_at": clock.now(),
            "submitted_real": clock.real(),
            "state": "submitted",
            "reason": "",
            "term": 0,
            "cancel": False,
            "driver": "",
        }
    )


def drive(driver: Driver, flow_run: str, flowruns: FlowRuns, settings: Settings) -> State[None]:
    """Take turns while a decision is near; leave, to be woken, when it is not."""
    clock = settings.clock
    while True:
        try:
            step = driver.turn()
        except FencedError as error:
            # Another driver took over (this one was taken for dead): the run is in its hands, so leave without a word.
            sys.stderr.write(f"{error}\n")
            leave()
        if isinstance(step, Done):
            text = f"{step.state}: {step.reason}"
            return Completed(message=text) if step.state == "finished" else Failed(message=text)
        if (step.until - clock.real()).total_seconds() > driver.limits.hold:
            flowruns.schedule(flow_run, step.until, step.name, step.why)
            leave()
        clock.sleep(POLL)


def leave() -> NoReturn:
    """End this process at once, with nothing of Prefect's own end-of-run, which would finish the flow run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
