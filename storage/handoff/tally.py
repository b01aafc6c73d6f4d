"""Counting what a handoff did, from all streams, and telling it at a bearable pace."""

from __future__ import annotations

import threading
from collections.abc import Callable

from regions.clock import Clock
from storage.handoff.model import Progress, Survey

_PACE = 0.25
"""Seconds between two reports."""


class Tally:
    """The counts of one handoff. Safe for threads; `progress` is never called by two at once."""

    def __init__(self, found: Survey, clock: Clock, progress: Callable[[Progress], None] | None) -> None:
        self._clock, self._progress = clock, progress
        self._lock = threading.Lock()
        self._begun = clock.monotonic()
        self._reported = self._begun - _PACE
        self._total_bytes, self._total_items = found.missing_bytes, len(found.missing)
        self._done_items = 0
        self.sent_items = self.sent_bytes = self.resumed_bytes = self.read_back_bytes = 0

    def moved(self, size: int) -> None:
        """Count bytes that went to the target."""
        with self._lock:
            self.sent_bytes += size
            self._report()

    def resumed(self, size: int) -> None:
        """Count bytes that an earlier attempt, or another worker, had brought."""
        with self._lock:
            self.resumed_bytes += size

    def read_back(self, size: int) -> None:
        """Count bytes that were read at the target to verify them."""
        with self._lock:
            self.read_back_bytes += size

    def finished(self, items: int, *, sent: bool = True) -> None:
        """Count items that are whole and verified; `sent` where this handoff did it."""
        with self._lock:
            self._done_items += items
            self.sent_items += items if sent else 0
            self._report(last=self._done_items == self._total_items)

    def _report(self, *, last: bool = False) -> None:
        now = self._clock.monotonic()
        if self._progress is None or (now - self._reported < _PACE and not last):
            return
        self._reported = now
        done = min(self._total_bytes, self.sent_bytes + self.resumed_bytes)
        rate = self.sent_bytes / (now - self._begun) if now > self._begun else 0.0
        eta = (self._total_bytes - done) / rate if rate else None
        self._progress(Progress(done, self._total_bytes, self._done_items, self._total_items, rate, eta))
