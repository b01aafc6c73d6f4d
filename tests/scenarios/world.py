"""A whole Nightrelay on this machine for scenario tests: real server, stores, workers, sweep, trainers; and kills.

Pids come from the product's own records (the stack's state, heartbeats) or from the process tree below them, never from
names. Waiting is bounded and looks at facts; nothing sleeps for a fixed time where a fact can be waited for.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from flows.catalogs import kept
from flows.commands.apply import apply_stack
from flows.flowruns import FlowRuns
from flows.journal import Journal
from flows.rows import LIVE, LegRow, RunRow
from flows.settings import PROJECT, Settings
from infra.stack import Extra, LocalStack, StackPlan
from infra.stack.ports import free_port
from regions.clock import SystemClock, parse_clock
from storage.checkpoints import content_of

_T = TypeVar("_T")

REGIONS = ("local-shanghai", "local-berlin", "local-los-angeles")
TRAINER = PROJECT / "tests" / "support" / "trainer.py"
STEPS = 600
SPEED = 1500.0
START = "2026-11-30T20:00Z"
"""04:00 in Shanghai, 21:00 in Berlin: the nights of both, so that a relay of 15 hours must move."""


@dataclass
class World:
    """A running stack, its journal, and what a test does to it."""

    stack: LocalStack
    settings: Settings
    journal: Journal
    flowruns: FlowRuns
    scratch: Path
    down: set[str] = field(default_factory=set)
    """Programs that stay dead until the test says otherwise."""
    mending: threading.Lock = field(default_factory=threading.Lock)
    """Several runs are watched at once; one of them mends the stack."""

    def request(self, **changes: Any) -> dict[str, Any]:
        """Return a run of about 30 s, 600 steps of the tiny trainer, as soon as possible wherever that is."""
        name = f"t{time.monotonic_ns() % 10**9}"
        stage: dict[str, Any] = {
            "id": "pretrain",
            "kind": "pretrain",
            "command": ["python", str(TRAINER), "--steps", str(STEPS), "--save-steps", "40", "--delay", "0.05"],
            "env": {"NIGHTRELAY_SEED": "7", "TRAINER_SAMPLES": str(self.scratch / f"{name}.samples")},
            "work": {"amount": STEPS},
            "accelerators": {"CPU": {"rate": 20}},
        }
        stage |= changes.pop("stage", {})
        run: dict[str, Any] = {
            "id": name,
            "team": "tests",
            "objective": "time",
            "regions": {"allow": list(REGIONS), "home": "local-shanghai"},
            "checkpoint": {"every": "1 h", "size": "1 MiB"},
            "stages": [stage],
        }
        return run | changes

    def submit(self, request: Mapping[str, Any]) -> RunRow:
        """Submit a run as the command line does and return it once the journal has it."""
        flow_run = self.flowruns.submit(dict(request))  # type: ignore[arg-type]
        return self.until(lambda: self.journal.run_of(flow_run), 120, "the run in the journal")

    def until(self, look: Callable[[], _T | None], seconds: float, what: str) -> _T:
        """Return what `look` finds, looking every 0.1 s; the stack is mended on the way, as a supervisor would."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := look():
                return found
            if not self.down:
                with self.mending:
                    self.stack.mend()
            time.sleep(0.1)
        raise AssertionError(f"waited {seconds:.0f} s for {what}; the runs: {self.story()}")

    def finished(self, run: RunRow, seconds: float = 150) -> RunRow:
        """Wait for the run's last state and return it."""

        def over() -> RunRow | None:
            row = self.journal.run(run.id)
            return row if row.state not in LIVE else None

        return self.until(over, seconds, f"the end of {run.id}")

    def training(self, run: RunRow, *, step: int = 1, seconds: float = 180) -> LegRow:
        """Wait until a leg holds the term and its trainer has passed a step; return the leg."""

        def found() -> LegRow | None:
            for leg in self.journal.legs(run.id):
                if leg.state == "open" and leg.beat is not None and leg.beat.trainer_pid and leg.beat.step >= step:
                    return leg
            return None

        return self.until(found, seconds, f"step {step} of {run.id}")

    def parent(self, run: RunRow, seconds: float = 60) -> psutil.Process:
        """Wait until the run's parent flow has a process, and return it."""
        worker = next(program for program in self.stack.state.programs if program.name == "worker-control").process
        assert worker is not None

        def found() -> psutil.Process | None:
            for process in worker.children(recursive=True):
                try:
                    if run.flow_run in process.environ().get("PREFECT__FLOW_RUN_ID", ""):
                        return process
                except psutil.Error:
                    continue
            return None

        return self.until(found, seconds, f"the parent of {run.id}")

    def program(self, name: str) -> psutil.Process:
        """Return a program of the stack."""
        process = next(program for program in self.stack.state.programs if program.name == name).process
        assert process is not None, f"{name} does not run"
        return process

    def rates(self, run: RunRow) -> Any:
        """Return the catalog a run was planned with."""
        return kept(self.journal, run.catalog)

    def story(self) -> str:
        """Return what the journal knows, for a failure's message."""
        lines = []
        for run in self.journal.runs()[:3]:
            lines.append(f"{run.id} {run.state} {run.reason}")
            for leg in self.journal.legs(run.id):
                beat = leg.beat
                at = f"{beat.phase} {beat.step}" if beat else "-"
                lines.append(f"  {leg.number} {leg.region} {leg.state} {leg.outcome} {leg.reason} {at}")
        return "\n".join(lines)


@contextmanager
def world(scratch: Path, *, limit: int = 4) -> Iterator[World]:
    """Run a whole stack while the block lasts."""
    anchor = SystemClock().real()
    clock = parse_clock(f"{START} x {SPEED:g} @ {anchor.isoformat()}")
    shown = {"NIGHTRELAY_CLOCK": clock.setting()}
    plan = StackPlan(
        home=scratch / "home",
        limits=dict.fromkeys(REGIONS, limit),
        stores="s3",
        port=free_port(),  # 4200 may be a developer's own
        extras=(Extra("sweep", "flows.sweep"),),
        control={"NIGHTRELAY_CATALOG": str(PROJECT / "regions" / "catalog"), **shown},
        shared=shown,
        templates=Path(sys.prefix) / "share" / "nightrelay",
    )
    before = {
        name: os.environ.get(name) for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "PREFECT_API_URL")
    }
    with LocalStack(plan, SystemClock(), os.environ, kept=True) as stack:
        stack.wait_for_server(120)
        environment = stack.environment
        os.environ.update({name: environment[name] for name in before if name in environment})
        apply_stack(PROJECT / "regions" / "catalog", REGIONS, environment)
        settings = Settings.read(environment)
        try:
            yield World(
                stack, settings, Journal.open(settings.database_url), FlowRuns(settings.api_url, patience=60), scratch
            )
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def twin_digest(scratch: Path, request: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Train the same stage in one go, undisturbed; return its final checkpoint's digest and its sample ids in order."""
    stage = request["stages"][0]
    name = hashlib.sha256(json.dumps(stage, sort_keys=True).encode()).hexdigest()[:12]
    folder = scratch / f"twin-{name}"
    folder.mkdir()
    command = list(stage["command"])
    if "--delay" in command:
        at = command.index("--delay")
        del command[at : at + 2]
    subprocess.run(
        [sys.executable, *command[1:]],
        env={
            "PATH": os.environ["PATH"],
            "NIGHTRELAY_CHECKPOINT_DIR": str(folder),
            "NIGHTRELAY_SEED": stage["env"]["NIGHTRELAY_SEED"],
            "TRAINER_SAMPLES": str(folder / "samples"),
        },
        check=True,
        timeout=60,
    )
    final = folder / f"step-{stage['work']['amount']}"
    return content_of(final), committed_samples(folder / "samples")


def committed_samples(path: Path, legs: list[LegRow] | None = None) -> list[str]:
    """Return the sample ids that the committed history used, in order.

    The file has a line "<leg> <step> <id>" for each use. Of what a leg trained after its last commit, nothing counts.
    """
    lines = [line.split() for line in path.read_text().splitlines()]
    if legs is None:
        return [sample for _, _, sample in lines]
    spans = {str(leg.number): (leg.from_step or 0, leg.to_step or 0) for leg in legs if leg.from_step is not None}
    used = [
        (int(step), order, sample)
        for order, (leg, step, sample) in enumerate(lines)
        if leg in spans and spans[leg][0] < int(step) <= spans[leg][1]
    ]
    return [sample for _, _, sample in sorted(used)]
