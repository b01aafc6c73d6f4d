"""Commits a running leg's checkpoints in the background: the trainer never waits for a store.

A thread of its own looks for complete folders in the trainer's checkpoint folder and commits each one, oldest first.
Before each commit it reads the control object: where a newer term stands, nothing more is committed. `finish` returns
only when what was complete is committed, and raises what went wrong, so a failed save is never a quiet one.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from typing import Any

from flows.messages import CommitRef, Order, Place
from flows.signals import Signals
from infra.launch.contract import Folders
from infra.launch.progress import Progress
from infra.launch.saves import Save, facts_of, scan
from regions.clock import Clock
from regions.errors import FencedError, NightrelayError, OutsideError
from storage.checkpoints import Record, commit
from storage.objects import Store

KEEP_LOCAL = 2
"""How many committed saves stay on the local disk; they are what a person looks at when something went wrong."""
LOOK = 0.25
"""Real seconds between two looks into the checkpoint folder."""


class Saver:
    """Looks after one leg's checkpoint folder until `finish`. `said` tells the trainer's last word up to a step."""

    def __init__(
        self,
        store: Store,
        place: Place,
        order: Order,
        folders: Folders,
        signals: Signals,
        clock: Clock,
        start: Record | None,
        fingerprint: dict[str, Any],
        said: Callable[[int], Progress | None],
    ) -> None:
        self._store = store
        self._place = place
        self._order = order
        self._folders = folders
        self._signals = signals
        self._clock = clock
        self._fingerprint = fingerprint
        self._said = said
        self._last = start
        self._known = {save.path.name for save in self._look(settled=True)}
        self._commits: list[CommitRef] = []
        self._error: NightrelayError | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)
        self._thread.start()

    @property
    def commits(self) -> tuple[CommitRef, ...]:
        """Return the commits made so far, oldest first."""
        return tuple(self._commits)

    @property
    def error(self) -> NightrelayError | None:
        """Return what stopped the saver: FencedError, or a store or a folder that is wrong."""
        return self._error

    def finish(self, patience: float) -> None:
        """Commit what is whole now that the trainer has ended; raises what went wrong.

        OutsideError where that takes longer than `patience` real seconds: an uncommitted save is no save.
        """
        self._ended.set()
        self._thread.join(patience)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            text = f"the last save was not committed within {patience:.0f} s; {self._place.url} is too slow or away"
            raise OutsideError(text, kind="save-not-committed")

    def _run(self) -> None:
        try:
            while not self._ended.wait(LOOK):
                self._commit_new(settled=False)
            self._commit_new(settled=True)
        except NightrelayError as error:
            self._error = error
        except OSError as error:
            self._error = OutsideError(f"a save could not be read: {error}", kind="save-unreadable")

    def _look(self, *, settled: bool) -> tuple[Save, ...]:
        return scan(self._folders.checkpoints, self._clock, glob=self._order.checkpoint_glob, settled=settled).whole

    def _commit_new(self, *, settled: bool) -> None:
        for save in self._look(settled=settled):
            if save.path.name not in self._known:
                self._commit(save)
                self._known.add(save.path.name)
                self._make_room()

    def _commit(self, save: Save) -> None:
        facts = facts_of(save, self._said(save.step))
        record = commit(
            self._store,
            save.path,
            run=self._order.run,
            stage=self._order.stage,
            step=save.step,
            term=self._order.number,
            samples=facts.samples or 0,
            epoch=facts.epoch or 0,
            seed=self._order.seed,
            dataset=self._order.dataset.digest if self._order.dataset is not None else None,
            fingerprint=self._fingerprint,
            metrics=facts.metrics,
            parent=None if self._last is None else self._last.digest,
            at=self._clock.now(),
            fence=self._fence,
        )
        self._last = record
        self._commits.append(
            CommitRef(
                key=record.key,
                step=record.step,
                term=record.term,
                digest=record.content,
                bytes=record.size,
                source=self._place,
            )
        )
        self._signals.tell(committed=record.step)

    def _fence(self) -> None:
        standing = self._signals.read_control().term
        if standing > self._order.number:
            raise FencedError(f"term {standing} stands; leg {self._order.number} may not commit any more")

    def _make_room(self) -> None:
        """Remove committed saves from the local disk, the oldest first; the store has them."""
        committed = [save for save in self._look(settled=False) if save.path.name in self._known]
        for save in committed[:-KEEP_LOCAL]:
            if save.path.is_dir():
                shutil.rmtree(save.path, ignore_errors=True)
            else:
                save.path.unlink(missing_ok=True)
