"""A driven run on a virtual clock: real journal, planner and file stores; legs are what the test writes for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows.driver import Done, Driver
from flows.journal import Journal
from flows.messages import Baton, Control, Heartbeat, Report, baton_key, control_key, heartbeat_key, report_key
from flows.relay import Wait
from flows.rows import LegRow, RunRow
from flows.settings import Settings
from flows.sites import Sites, put_message, read_message
from flows.train import submit
from regions.clock import ManualClock
from storage.checkpoints import commit
from tests.flows.inprocess import ThreadLegs

START = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
REGION = """
id: {id}
provider: local
timezone: Etc/UTC
currency: CNY
residency: {{jurisdiction: local, export_allowed: true}}
offers:
  - id: cpu
    accelerator: CPU
    vcpus: 1
    count: 1
    startup: 1 min
    billing: {{increment: 1 s, minimum: 0 s}}
    markets: {{on_demand: {{price: "{price}", basis: list, source: t, as_of: 2026-11-30}}}}
storage: {{cold: {{url: "file:///nowhere/{id}"}}}}
"""


class Silent(ThreadLegs):
    """Creates legs that do nothing by themselves."""

    def create_leg(self, *arguments: Any, **named: Any) -> str:
        key = str(named["key"])
        self._states.setdefault(key, "RUNNING")
        return key


@dataclass
class Driven:
    """A run under a driver."""

    clock: ManualClock
    settings: Settings
    journal: Journal
    flowruns: Silent
    driver: Driver
    run: RunRow

    def turn(self, passed: float = 0.0) -> Wait | Done:
        """Let real seconds pass, then take one turn."""
        self.clock.advance(passed)
        return self.driver.turn()

    def legs(self) -> list[LegRow]:
        return self.journal.legs(self.run.id)

    def store(self, leg: LegRow) -> Any:
        return Sites(self.settings, self.driver._catalog).store(leg.region)

    def beat(self, leg: LegRow, step: int, *, begun: datetime | None = None) -> None:
        """Write the leg's heartbeat as of now."""
        now = self.clock.real()
        message = Heartbeat(
            number=leg.number, real=now, at=self.clock.now(), phase="train", started_real=begun or now,
            started_at=begun or now, from_step=leg.from_step or 0, step=step, pid=1,
        )  # fmt: skip
        put_message(self.store(leg), heartbeat_key(leg.run, leg.number), message)

    def commit(self, leg: LegRow, folder: Path, step: int) -> None:
        """Commit a checkpoint under the leg's term."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state").write_text(str(step))
        commit(self.store(leg), folder, run=leg.run, stage=leg.stage, step=step, term=leg.number, samples=step)

    def report(self, leg: LegRow, outcome: str, begun: datetime, *, step: int = 0, kind: str = "") -> None:
        """Write the leg's report as of now."""
        now = self.clock.real()
        message = Report(
            number=leg.number, outcome=outcome, reason="said so", kind=kind, from_step=leg.from_step or 0, to_step=step,
            commits=(), phases=(), started_at=begun, ended_at=now, started_real=begun, ended_real=now, handed_bytes=0,
            handed_seconds=0, pid=1,
        )  # fmt: skip
        put_message(self.store(leg), report_key(leg.run, leg.number), message)

    def control(self, leg: LegRow) -> Control | None:
        return read_message(self.store(leg), control_key(leg.run), Control)

    def baton(self, leg: LegRow) -> Baton | None:
        return read_message(self.store(leg), baton_key(leg.run, leg.number), Baton)


def driven(folder: Path, prices: dict[str, str] | None = None, **changes: Any) -> Driven:
    """Return a run of 100 steps that has just been submitted, over regions a (2.00) and b (3.00 CNY) unless told."""
    catalog = folder / "catalog"
    catalog.mkdir()
    given = prices or {"a": "2.00", "b": "3.00"}
    for name, price in given.items():
        (catalog / f"{name}.yaml").write_text(REGION.format(id=name, price=price))
    sites = {name: {"url": (folder / "stores" / name).as_uri(), "endpoint": None} for name in given}
    environment = {
        "NIGHTRELAY_HOME": str(folder),
        "NIGHTRELAY_CATALOG": str(catalog),
        "NIGHTRELAY_SITES": json.dumps(sites),
    }
    read = Settings.read(environment)
    clock = ManualClock(START)
    settings = Settings(
        home=read.home, catalog=read.catalog, runs=read.runs, database_url=read.database_url, clock=clock,  # type: ignore[arg-type]
        sites=read.sites, work=read.work,
    )  # fmt: skip
    request: dict[str, Any] = {
        "id": "r",
        "team": "t",
        "within": "3 d",
        "regions": {"home": "a"},
        "checkpoint": {"every": "1 h", "size": "1 MiB"},
        "stages": [
            {
                "id": "s", "kind": "pretrain", "command": ["python", "none.py"], "work": {"amount": 100},
                "accelerators": {"CPU": {"rate": 10}},
            }
        ],
    }  # fmt: skip
    journal = Journal.open(settings.database_url)
    run = submit(journal, "f0000000-0000", request | changes, settings)
    flowruns = Silent(clock, folder / "work")
    return Driven(clock, settings, journal, flowruns, Driver(journal, run, settings, flowruns), run)  # type: ignore[arg-type]
