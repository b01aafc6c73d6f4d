"""The demo: the whole path on this machine, as a user would walk it, and nothing of it left afterwards.

A stack of its own in a scratch folder, three regions, a real run submitted by `prefect deployment run`, watched through
the journal, reported. It adds no behaviour: whatever it shows is what any run does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from flows import report as reporting
from flows.catalogs import current
from flows.commands.apply import apply_stack
from flows.journal import Journal
from flows.render.live import Watched
from flows.render.picture import as_png, as_svg
from flows.rows import LIVE, RunRow
from flows.settings import PROJECT, Settings
from flows.shipped import build_texts, publish
from flows.sites import Sites
from flows.watching import look
from infra.stack import Extra, LocalStack, StackPlan
from infra.stack.ports import free_port
from infra.stack.state import read_state
from regions.clock import SystemClock, parse_clock
from regions.errors import OutsideError, PlanError

REGIONS = ("local-shanghai", "local-berlin", "local-los-angeles")
START = "2026-11-30T14:00Z"
"""What the run clock shows when the run begins: 22:00 in Shanghai, when its night begins."""
BEGINS_IN = timedelta(seconds=20)
"""How long after the command the run is expected to begin."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demo leaves: its report, and where it was written."""

    report: reporting.RunReport
    zones: Mapping[str, str]
    folder: Path
    peak_bytes: int
    """The largest memory (PSS) all its processes had at once, as sampled."""


class Demo:
    """One demo, from nothing to its report. `say` gets a line about each thing that is done."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], speed: float, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._say = say
        real = SystemClock()
        anchor = (real.real() + BEGINS_IN).isoformat()
        self.clock = parse_clock(f"{START} x {speed:g} @ {anchor}")
        self.stack: LocalStack | None = None
        self.peak = 0

    @contextmanager
    def running(self, catalog: Path) -> Iterator[Settings]:
        """Run a stack of its own while the block lasts, ready for submissions; yield the control side's settings."""
        self._settings.home.mkdir(parents=True, exist_ok=True)
        _clear_away(self._settings.home)
        scratch = Path(tempfile.mkdtemp(prefix="demo-", dir=self._settings.home))
        shown = {"NIGHTRELAY_CLOCK": self.clock.setting()}
        plan = StackPlan(
            home=scratch,
            limits=dict.fromkeys(REGIONS, 2),
            stores="s3",
            port=free_port(),  # the usual one stays free for `nightrelay up`
            extras=(Extra("sweep", "flows.sweep"),),
            control={"NIGHTRELAY_CATALOG": str(catalog), **shown},
            shared=shown,
            templates=self._settings.home / "templates",
        )
        try:
            with LocalStack(plan, SystemClock(), self._environ, kept=True) as stack:
                self.stack = stack
                self._say("starting a Prefect server, three object stores and four workers")
                texts = build_texts(scratch)
                stack.wait_for_server()
                # This process is part of the control side: it opens the stores with the stack's own keys.
                os.environ.update({name: key for name, key in stack.environment.items() if name.startswith("AWS_")})
                settings = Settings.read(stack.environment)
                apply_stack(settings.catalog, REGIONS, stack.environment)
                catalog_now = current(Journal.open(settings.database_url), settings.catalog, self.clock)
                publish(texts, Sites(settings, catalog_now))
                self._say(f"Prefect UI: {stack.state.ui_url}")
                yield settings
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def submit(self, run: str) -> None:
        """Start the run exactly as a user does."""
        assert self.stack is not None
        command = ["deployment", "run", "train/relay", "--param", f"run={run}"]
        self._say("prefect " + " ".join(command))
        done = subprocess.run(
            [sys.executable, "-m", "prefect", *command],
            env=self.stack.environment,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            raise OutsideError(f"the run could not be submitted: {(done.stderr or done.stdout).strip()[-500:]}")

    def watch(self, settings: Settings, show: Callable[[Watched], None], every: float = 0.5) -> RunRow:
        """Show the run until it is over, and return it."""
        assert self.stack is not None
        journal = Journal.open(settings.database_url)
        catalog = current(journal, settings.catalog, self.clock)
        sampled = self.clock.monotonic()
        while True:
            for name in self.stack.mend():
                self._say(f"{name} had died and was started again")
            runs = journal.runs()
            if runs:
                show(look(journal, runs[0], catalog, REGIONS, self.clock, self.stack.state.ui_url))
                if runs[0].state not in LIVE:
                    return runs[0]
            if self.clock.monotonic() - sampled > 4:
                self.peak = max(self.peak, self.stack.memory())
                sampled = self.clock.monotonic()
            self.clock.sleep(every)

    def report(self, settings: Settings, run: RunRow, folder: Path) -> Outcome:
        """Write the run's report and picture into a folder."""
        journal = Journal.open(settings.database_url)
        catalog = current(journal, settings.catalog, self.clock)
        zones = {name: region.timezone for name, region in catalog.regions.items()}
        told = reporting.of_run(journal, run.id, catalog)
        if run.state != "finished":
            raise PlanError(f"the run ended as {run.state}: {run.reason}")
        folder.mkdir(parents=True, exist_ok=True)
        figure = reporting.picture(told, catalog)
        (folder / "relay.svg").write_bytes(as_svg(figure))
        (folder / "relay.png").write_bytes(as_png(figure))
        (folder / "report.md").write_text(reporting.markdown(told, zones), encoding="utf-8")
        return Outcome(told, zones, folder, self.peak)


def _clear_away(home: Path) -> None:
    """Remove what a demo that was killed left on the disk; its processes went with it."""
    for left in home.glob("demo-*"):
        state = read_state(left / "stack.json")
        if state is None or not any(program.process is not None for program in state.programs):
            shutil.rmtree(left, ignore_errors=True)
