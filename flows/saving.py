"""Commits a running leg's checkpoints in the background: the trainer never waits for a store.

A thread of its own looks for complete folders in the trainer's checkpoint folder and commits each one, oldest first.
Before each commit it reads the control object: where a newer term stands, nothing more is committed. `finish` returns
only when what was complete is committed, and raises what went wrong, so a failed save is never a quiet one.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from flows.messages import CommitRef, Order, Place
from flows.signals import Signals
from infra.launch import CompleteFolder, complete_folders
from regions.errors import FencedError, NightrelayError
from storage.checkpoints import Origin, commit
from storage.objects import Store

KEEP_LOCAL = 2
"""How many committed folders stay on the local disk; the newest is what a crashed trainer would read again."""


class Saver:
    """Looks after the checkpoint folder of one leg until `finish`."""

    def __init__(
        self,
        store: Store,
        place: Place,
        order: Order,
        folder: Path,
        origin: Origin,
        signals: Signals,
        look: Callable[[], list[CompleteFolder]] | None = None,
        *,
        every: float = 0.25,
    ) -> None:
        self._store = store
        self._place = place
        self._order = order
        self._folder = folder
        self._origin = origin
        self._signals = signals
        self._look = look or (lambda: complete_folders(folder, order.checkpoint_glob))
        self._every = every
        self._known = {found.path.name for found in self._look()}
        self._commits: list[CommitRef] = []
        self._error: NightrelayError | None = None
        self._last_look = threading.Event()
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

    def finish(self, timeout: float) -> None:
        """Commit what is complete, then stop; raises what went wrong, or TimeoutError after `timeout` real seconds."""
        self._last_look.set()
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise TimeoutError(f"the last save was not committed within {timeout:.0f} s")

    def _run(self) -> None:
        try:
            while not self._last_look.wait(self._every):
                self._commit_new()
            self._commit_new()
        except NightrelayError as error:
            self._error = error

    def _commit_new(self) -> None:
        for found in self._look():
            if found.path.name in self._known:
                continue
            if self._signals.read_control().term > self._order.number:
                raise FencedError(f"term {self._signals.control.term} stands; leg {self._order.number} may not commit")
            record = commit(self._store, found.path, self._origin, step=found.step)
            self._known.add(found.path.name)
            self._commits.append(
                CommitRef(
                    key=record.key,
                    step=record.step,
                    term=record.term,
                    digest=record.digest,
                    bytes=record.bytes,
                    source=self._place,
                )
            )
            self._signals.tell(committed=record.step)
            self._make_room()

    def _make_room(self) -> None:
        """Remove committed folders from the local disk, the oldest first; the store has them."""
        committed = sorted((found for found in self._look() if found.path.name in self._known), key=lambda f: f.step)
        for found in committed[:-KEEP_LOCAL]:
            shutil.rmtree(found.path, ignore_errors=True)
