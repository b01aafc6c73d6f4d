"""What a leg does, in order: wait for the baton, take over, train, save, report. Each step leaves facts behind.

While it waits it copies ahead what it will need. Whatever goes wrong after the first heartbeat ends in a report, so
that the control side need not wait for silence; only a killed process leaves none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.datasets import copy_dataset, manifest_key
from flows.messages import Baton, CommitRef, Order, Outcome, Place, Report, Span, baton_key, report_key
from flows.signals import Signals
from flows.sites import open_place, put_message, read_message
from flows.training import Trained, Training
from infra.launch.contract import Folders
from regions.clock import Clock
from regions.errors import ConflictError, FencedError, NightrelayError, StoreUnavailable
from storage.checkpoints import Record
from storage.handoff import Document, Item, Receipt, handoff
from storage.objects import Store, open_store

POLL = 0.2
"""Real seconds between two looks for the baton."""


class Legwork:
    """One leg's work. `run` does it all; `leave` ends it early, from a signal."""

    def __init__(self, store: Store, place: Place, order: Order, clock: Clock, work: Path) -> None:
        self._store = store
        self._place = place
        self._order = order
        self._clock = clock
        self._hot = open_store((work / "hot").resolve().as_uri())
        self._folders = Folders(work.resolve() / "runs" / order.run / order.stage)
        self._signals = Signals(store, order, clock)
        self._phases: list[Span] = []
        self._received: dict[str, int] = {}
        self._handed_seconds = 0.0
        self._baton: Baton | None = None
        self._training: Training | None = None

    def run(self) -> Report:
        """Work until the leg has ended, and return its report, which the store then holds."""
        with self._signals:
            try:
                return self._report(*self._work())
            except FencedError as error:
                return self._report("fenced", error.message)
            except NightrelayError as error:
                return self._report("failed", error.message, error.kind)

    def leave(self, reason: str) -> None:
        """Stop the trainer after its checkpoint, commit it and report; within Prefect's 30 s of grace."""
        outcome: Outcome = "dismissed" if self._baton is None else "stopped"
        try:
            if self._training is not None:
                self._training.ask_to_stop("stopped", reason, grace=15.0)
                self._training.watch()
            self._report(outcome, reason)
        except NightrelayError as error:
            self._report("failed", f"{reason}; {error.message}", error.kind)

    def _work(self) -> tuple[Outcome, str, str]:
        with self._phase("precopy"):
            self._copy_ahead()
        with self._phase("waiting"):
            self._baton = self._await_baton()
        if self._baton is None:
            return "dismissed", self._signals.control.reason or "not needed", ""
        with self._phase("handoff"):
            start = self._baton.start_from
            record = None if start is None else self._bring(start)
        with self._phase("train"):
            self._training = Training(
                self._store, self._place, self._order, self._baton, record, self._folders, self._signals, self._clock,
                dataset=self._dataset(),
            )  # fmt: skip
            self._training.watch()
        with self._phase("save"):
            return self._training.conclude()

    # Taking over

    def _copy_ahead(self) -> None:
        """Bring the dataset and the newest known commit here while another leg still trains."""
        dataset = self._order.dataset
        if dataset is not None:
            if dataset.source.url != self._place.url:
                source = open_place(dataset.source)
                self._keep(dataset.source, copy_dataset(dataset, source, self._store, self._unwanted))
            if not self._unwanted():
                copy_dataset(dataset, self._store, self._hot, self._unwanted)
        if self._order.precopy is not None and not self._unwanted():
            self._bring(self._order.precopy)

    def _bring(self, commit: CommitRef) -> Record:
        """Copy a commit into this region's store, verified, record last, and return its record."""
        if commit.source.url != self._place.url:
            source = open_place(commit.source)
            record = Record.parse(source.get(commit.key), commit.key)
            items = [Item(*item) for item in record.items()]
            receipt = handoff(items, [Document(*record.document())], source, self._store, cancelled=self._unwanted)
            self._keep(commit.source, receipt)
            if not receipt.complete:
                raise FencedError("the leg was dismissed while it copied")
        return Record.parse(self._store.get(commit.key), commit.key)

    def _await_baton(self) -> Baton | None:
        """Return the baton once it is there, or None where the leg is not needed any more."""
        while True:
            try:
                baton = read_message(self._store, baton_key(self._order.run, self._order.number), Baton)
            except StoreUnavailable:
                baton = None
            if baton is not None:
                if self._signals.read_control().term > self._order.number:
                    raise FencedError(f"term {self._signals.control.term} stands before leg {self._order.number} began")
                return baton
            if self._unwanted():
                return None
            self._clock.sleep(POLL)

    def _unwanted(self) -> bool:
        return self._signals.dismissed or self._signals.fenced

    def _dataset(self) -> Path | None:
        ref = self._order.dataset
        return None if ref is None else self._hot.path(manifest_key(ref))

    def _keep(self, source: Place, receipt: Receipt) -> None:
        self._received[source.region] = self._received.get(source.region, 0) + receipt.sent_bytes
        self._handed_seconds += receipt.seconds
        self._signals.tell(handed_bytes=sum(self._received.values()))

    # Reporting

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        begun_at, begun_real = self._clock.now(), self._clock.real()
        self._signals.tell(phase=name)
        self._signals.beat_now()
        try:
            yield
        finally:
            self._phases.append(
                Span(
                    phase=name,
                    start_at=begun_at,
                    end_at=self._clock.now(),
                    start_real=begun_real,
                    end_real=self._clock.real(),
                )
            )

    def _report(self, outcome: Outcome, reason: str, kind: str = "") -> Report:
        """Write the report, once. One that stands already is the leg's word."""
        trained = self._training.trained if self._training is not None else Trained()
        report = Report(
            number=self._order.number,
            outcome=outcome,
            reason=reason,
            kind=kind,
            exit_code=trained.exit_code,
            from_step=trained.from_step,
            to_step=trained.to_step,
            commits=trained.commits,
            phases=tuple(self._phases),
            started_at=self._signals.started_at,
            started_real=self._signals.started_real,
            ended_at=self._clock.now(),
            ended_real=self._clock.real(),
            first_step_real=trained.first_step_real,
            received=self._received,
            handed_bytes=sum(self._received.values()),
            handed_seconds=self._handed_seconds,
            exact=trained.exact,
            fingerprint=trained.fingerprint,
            loss=trained.loss,
            losses=trained.losses,
            sample=trained.sample,
            pid=os.getpid(),
            trainer_pid=trained.pid,
        )
        key = report_key(self._order.run, self._order.number)
        try:
            put_message(self._store, key, report, create=True)
        except ConflictError:
            return read_message(self._store, key, Report) or report
        return report
