"""The parent flow: one run, from the request to its last charge.

It holds no process while it waits. When nothing is to be decided for a while it puts its own flow run back to
Scheduled, under a name and a time people can read, and leaves; at that time, or when the sweep sees something happen,
it comes back as the same flow run and goes on from the journal (docs/decisions/0605).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from prefect import flow
from prefect.runtime import flow_run as own
from prefect.states import Completed, Failed, State

from flows.datasets import dataset_of
from flows.driver import Done, Driver
from flows.flowruns import FlowRuns
from flows.journal import Journal
from flows.requests import Asked, ask
from flows.rows import RunRow
from flows.settings import Settings
from flows.sites import Sites
from regions.clock import Clock
from regions.errors import FencedError
from regions.load import load
from regions.load import Catalog

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
    catalog = load(settings.catalog, now=settings.clock.now())
    row = _row(journal, flow_run, run, resume, settings, catalog)
    flowruns = FlowRuns()
    driver = Driver(journal, row, catalog, Sites(settings, catalog), flowruns, settings.clock)
    return _drive(driver, flow_run, flowruns, settings.clock)


def _row(
    journal: Journal,
    flow_run: str,
    run: str | dict[str, Any],
    resume: str | None,
    settings: Settings,
    catalog: Catalog,
) -> RunRow:
    """Return the flow run's row in the journal, making it on the first wake-up."""
    known = journal.run_of(flow_run)
    if known is not None:
        return known
    if resume is not None:
        return journal.reopen(resume, flow_run)
    asked = ask(run, settings, catalog)
    return submit(journal, flow_run, asked, settings, catalog)


def submit(journal: Journal, flow_run: str, asked: Asked, settings: Settings, catalog: Catalog) -> RunRow:
    """Record a new run, with the prices it is judged by and the dataset it reads."""
    clock = settings.clock
    journal.keep_catalog(catalog.digest, catalog.model_dump(mode="json"), clock.real())
    dataset = dataset_of(asked.request, Sites(settings, catalog))
    return journal.submit(
        {
            "id": f"{asked.request.id}-{flow_run[:8]}",
            "flow_run": flow_run,
            "recipe": asked.request.id,
            "team": asked.request.team,
            "priority": asked.request.priority,
            "request": asked.document(),
            "catalog": catalog.digest,
            "submitted_at": clock.now(),
            "submitted_real": clock.real(),
            "state": "submitted",
            "reason": "",
            "term": 0,
            "cancel": False,
            "driver": "",
            "dataset": None if dataset is None else dataset.model_dump(mode="json"),
        }
    )


def _drive(driver: Driver, flow_run: str, flowruns: FlowRuns, clock: Clock) -> State[None]:
    """Take turns while a decision is near; leave, to be woken, when it is not."""
    while True:
        try:
            next_step = driver.turn()
        except FencedError as error:
            # Another driver took over (this one was taken for dead): the run is in its hands, so leave without a word.
            sys.stderr.write(f"{error}\n")
            leave()
        if isinstance(next_step, Done):
            text = f"{next_step.state}: {next_step.reason}"
            return Completed(message=text) if next_step.state == "finished" else Failed(message=text)
        if (next_step.until - clock.real()).total_seconds() > driver.hold:
            flowruns.schedule(flow_run, next_step.until, next_step.name, next_step.why)
            leave()
        clock.sleep(POLL)


def leave() -> None:
    """End this process at once, with nothing of Prefect's own end-of-run, which would finish the flow run."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
