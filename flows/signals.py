"""A running leg's voice and ears: it beats, and it reads the control object; no server but the store.

One thread does both, every `every` real seconds. A store that does not answer does not stop training: the leg goes on
cut off, and ends itself by its stop-by time (docs/decisions/0603).
"""

from __future__ import annotations

import os
import threading
from datetime import datetime
from types import TracebackType
from typing import Any

from flows.messages import Control, Heartbeat, Order, control_key, heartbeat_key
from flows.sites import put_message, read_message
from regions.clock import Clock
from regions.errors import NightrelayError
from storage.objects import Store


class Signals:
    """Beats for one leg while the `with` block lasts; `tell` changes what the next beat says."""

    def __init__(self, store: Store, order: Order, clock: Clock, *, every: float = 1.5) -> None:
        self._store = store
        self._order = order
        self._clock = clock
        self._every = every
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._done = False
        self._control = Control()
        self._cut_off_since: float | None = None
        self._facts: dict[str, Any] = {"phase": "starting", "pid": os.getpid()}
        self.started_real: datetime = clock.real()
        self.started_at: datetime = clock.now()
        self._thread = threading.Thread(target=self._run, name="signals", daemon=True)

    def __enter__(self) -> Signals:
        """Send the first beat, then go on in the background."""
        self._exchange()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop beating; the report that follows is the last word."""
        self._done = True
        self._woken.set()
        self._thread.join(timeout=5)

    def tell(self, **facts: Any) -> None:
        """Change what the heartbeat says (fields of Heartbeat)."""
        with self._lock:
            self._facts.update(facts)

    def beat_now(self) -> None:
        """Send a beat soon rather than at the next turn."""
        self._woken.set()

    @property
    def control(self) -> Control:
        """Return the newest control object read."""
        return self._control

    @property
    def fenced(self) -> bool:
        """Whether a newer term than this leg's stands in its store."""
        return self._control.term > self._order.number

    @property
    def dismissed(self) -> bool:
        """Whether this leg, without the term, is not needed."""
        return self._control.term != self._order.number and self._control.dismissed >= self._order.number

    @property
    def cut_off(self) -> float:
        """Return for how many real seconds the store has not answered; 0 where it does."""
        since = self._cut_off_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def read_control(self) -> Control:
        """Read the control object anew (before each commit), and keep it."""
        found = read_message(self._store, control_key(self._order.run), Control)
        if found is not None:
            self._control = found
        return self._control

    def heartbeat(self) -> Heartbeat:
        """Return what the heartbeat says now."""
        with self._lock:
            facts = dict(self._facts)
        return Heartbeat(
            number=self._order.number,
            real=self._clock.real(),
            at=self._clock.now(),
            started_real=self.started_real,
            started_at=self.started_at,
            **facts,
        )

    def _run(self) -> None:
        while not self._done:
            self._woken.wait(self._every)
            self._woken.clear()
            if not self._done:
                self._exchange()

    def _exchange(self) -> None:
        try:
            put_message(self._store, heartbeat_key(self._order.run, self._order.number), self.heartbeat())
            self.read_control()
        except NightrelayError:
            if self._cut_off_since is None:
                self._cut_off_since = self._clock.monotonic()
        else:
            self._cut_off_since = None
