"""The trainer's time in a leg: launch it, watch it, ask it to leave when it is time, judge how it ended.

What happened is decided from facts, in the contract's order: the trainer's result file, the newest committed checkpoint
against the stage's work, the exit code last.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from flows.fingerprint import fingerprint_of, guarantee
from flows.messages import Baton, CommitRef, Order, Outcome, Place
from flows.saving import Saver
from flows.signals import Signals
from infra.launch.contract import Folders, LaunchContext, substitute
from infra.launch.level0 import progress_sources
from infra.launch.outcome import Facts, classify, last_lines, memory_evidence, memory_kills, read_result
from infra.launch.process import Exit, Trainer, launch
from infra.launch.progress import ProgressLog
from infra.launch.saves import set_aside
from infra.launch.silence import SilenceLimits, SilenceWatch
from regions.clock import Clock
from regions.errors import FencedError
from storage.checkpoints import Record, restore
from storage.objects import Store

POLL = 0.1
"""Real seconds between two looks at the trainer."""
COMMIT_PATIENCE = 120.0
"""Real seconds the last commit may take after the trainer has left."""
SAMPLE_BYTES = 2000
"""How much of what a finished trainer printed last a report keeps."""
THREADS = 1
"""Threads of the numeric libraries; pinned, since another number gives other bits."""
CURVE_POINTS = 200
"""How many points of the loss curve a report keeps."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of the trainer."""

    from_step: int = 0
    to_step: int = 0
    commits: tuple[CommitRef, ...] = ()
    exit_code: int | None = None
    fingerprint: dict[str, Any] = field(default_factory=dict)
    loss: float | None = None
    losses: tuple[tuple[int, float], ...] = ()
    sample: str = ""
    exact: Literal["bits", "sequence", "first"] = "first"
    first_step_real: datetime | None = None
    pid: int | None = None


class Training:
    """One trainer under one term."""

    def __init__(
        self,
        store: Store,
        place: Place,
        order: Order,
        baton: Baton,
        record: Record | None,
        folders: Folders,
        signals: Signals,
        clock: Clock,
        *,
        dataset: Path | None,
    ) -> None:
        self._store = store
        self._place = place
        self._order = order
        self._record = record
        self._folders = folders
        self._signals = signals
        self._clock = clock
        self._dataset = dataset
        self._stop_by = baton.stop_by
        self._wish: tuple[Outcome, str] | None = None
        self._hung: str | None = None
        self._trainer: Trainer | None = None
        self._saver: Saver | None = None
        self._exit: Exit | None = None
        self._memory_kills = memory_kills()
        self._silence = SilenceWatch(SilenceLimits(), clock.monotonic())
        self._losses: list[tuple[int, float]] = []
        self._pace = Pace()
        self._progress = ProgressLog(
            progress_sources(folders.progress, folders.log, folders.checkpoints, order.progress_pattern)
        )
        step = baton.start_from.step if baton.start_from is not None else 0
        self.trained = Trained(from_step=step, to_step=step)

    def watch(self) -> None:
        """Launch the trainer if it does not run yet, and return when it has ended."""
        trainer = self._trainer or self._begin()
        while (ended := trainer.poll()) is None:
            self._read_progress()
            self._obey(trainer)
            self._clock.sleep(POLL)
        self._exit = ended
        self._read_progress()

    def ask_to_stop(self, outcome: Outcome, reason: str, grace: float | None = None) -> None:
        """Ask the trainer to save and leave; the first reason given stands."""
        if self._wish is None:
            self._wish = (outcome, reason)
        if self._trainer is not None:
            self._trainer.stop(self._order.grace if grace is None else grace)

    def conclude(self) -> tuple[Outcome, str, str]:
        """Commit what the trainer left, and say how the leg ended: (outcome, reason, kind of failure)."""
        assert self._saver is not None and self._exit is not None
        try:
            self._saver.finish(COMMIT_PATIENCE)
        finally:
            self._take_stock()
        printed = last_lines(self._folders.log)
        verdict = classify(
            Facts(
                exit=self._exit,
                result=read_result(self._folders.result),
                work=self._order.work,
                from_step=self.trained.from_step,
                committed=self.trained.to_step,
                hung=self._hung,
                out_of_memory=memory_evidence(self._exit, printed, self._memory_kills, memory_kills()),
            )
        )
        if verdict.outcome == "finished":
            self.trained = replace(self.trained, sample=printed[-SAMPLE_BYTES:])
            return "finished", verdict.reason, ""
        if verdict.outcome == "failed":
            tail = printed.strip().splitlines()[-1:] if printed.strip() else []
            return "failed", "; ".join([verdict.reason, *tail]), verdict.kind
        outcome, reason = self._wish or ("yielded", verdict.reason)
        return outcome, reason, ""

    def _begin(self) -> Trainer:
        """Lay the trainer's folders, restore what it starts from, and launch it."""
        folders, order = self._folders, self._order
        folders.prepare()
        resume = None
        if self._record is not None:
            resume = folders.checkpoints / f"step-{self.trained.from_step}"
            set_aside(folders.checkpoints, folders.aside)
            restore(self._store, self._record, resume)
            (resume / "COMPLETE").touch()
        else:
            set_aside(folders.checkpoints, folders.aside)
        context = LaunchContext(
            run=order.run,
            stage=order.stage,
            leg=order.number,
            term=order.number,
            region=order.region,
            seed=order.seed,
            folders=folders,
            grace_seconds=order.grace,
            resume_from=resume,
            dataset=None if self._dataset is None else str(self._dataset),
            cursor=0 if self._record is None else self._record.samples,
            stop_by=self._clock.to_real(self._stop_by),
            stop_at_step=order.work,
            threads=THREADS,
            extra={
                "NIGHTRELAY_CHECKPOINT_EVERY": f"{order.checkpoint_every / self._clock.speed:.3f}",
                **order.environment,
            },
        )
        context.write()
        fingerprint = fingerprint_of(order, THREADS)
        self._saver = Saver(
            self._store,
            self._place,
            order,
            folders,
            self._signals,
            self._clock,
            self._record,
            fingerprint,
            self._progress.at,
        )
        self._trainer = launch(
            substitute(order.command, resume),
            context.environment(os.environ),
            Path.cwd(),
            folders.log,
            stop_file=folders.stop_file,
            clock=self._clock,
        )
        self._signals.tell(trainer_pid=self._trainer.pid, from_step=self.trained.from_step, step=self.trained.from_step)
        self._signals.beat_now()
        exact = guarantee(None if self._record is None else self._record.fingerprint, fingerprint)
        self.trained = replace(self.trained, pid=self._trainer.pid, fingerprint=fingerprint, exact=exact)
        return self._trainer

    def _obey(self, trainer: Trainer) -> None:
        """Act on what the control side, the clock and the trainer's own silence ask for."""
        assert self._saver is not None
        if self._signals.fenced or self._saver.error is not None:
            trainer.kill()
            raise self._saver.error or FencedError(f"term {self._signals.control.term} stands")
        control = self._signals.control
        if control.stop_by is not None and control.term == self._order.number:
            self._stop_by = control.stop_by
        if control.term == self._order.number and control.wish == "yield":
            self.ask_to_stop("yielded", control.reason or "asked to make room")
        elif control.term == self._order.number and control.wish == "stop":
            self.ask_to_stop("stopped", control.reason or "the run was cancelled")
        elif self._clock.now() >= self._stop_by:
            self.ask_to_stop("handed_off", f"its planned end, {self._stop_by:%Y-%m-%d %H:%M}Z")
        if (silent := self._silence.silent(self._clock.monotonic())) is not None:
            self._hung = silent
            trainer.kill()

    def _read_progress(self) -> None:
        for said in self._progress.read():
            self._silence.hear(said, self._clock.monotonic())
            if said.step is not None and said.loss is not None:
                self._losses.append((said.step, said.loss))
            if said.step is not None and said.step > self.trained.from_step and self.trained.first_step_real is None:
                self.trained = replace(self.trained, first_step_real=self._clock.real())
        latest = self._progress.latest
        rate = latest.samples_per_second or self._pace.of(latest.samples, self._clock.monotonic())
        facts = {"step": latest.step, "loss": latest.loss, "samples_per_second": rate}
        self._signals.tell(**{name: value for name, value in facts.items() if value is not None})

    def _take_stock(self) -> None:
        """Put together what came of the trainer, from commits and its own words."""
        assert self._saver is not None and self._exit is not None
        commits = self._saver.commits
        self.trained = replace(
            self.trained,
            commits=commits,
            to_step=max([self.trained.from_step, *(commit.step for commit in commits)]),
            exit_code=self._exit.code,
            loss=self._progress.latest.loss,
            losses=thinned(self._losses, CURVE_POINTS),
        )


class Pace:
    """Samples per second over the last seconds, for a trainer that counts samples and tells no rate."""

    def __init__(self, span: float = 5.0) -> None:
        self._span = span
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, samples: int | None, now: float) -> float | None:
        """Take in a count at a monotonic second, and return the rate; None while there is too little to tell."""
        if samples is None:
            return None
        if not self._seen or samples != self._seen[-1][1]:
            self._seen.append((now, samples))
        while len(self._seen) > 2 and now - self._seen[0][0] > self._span:
            self._seen.popleft()
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended > began else None


def thinned(points: list[tuple[int, float]], most: int) -> tuple[tuple[int, float], ...]:
    """Return at most so many of the points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return tuple(points)
    return tuple(points[round(index * (len(points) - 1) / (most - 1))] for index in range(most))
