"""A store that keeps to a bandwidth, which may change by the hour of its region, and to a number of requests at once.

Hours are those of the run clock in the region's zone; the pace itself is kept in real seconds.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from regions.clock import Clock, SystemClock
from regions.errors import SettingsError
from storage.objects.interface import Body, Part, Stat, Store, size_of
from storage.objects.wrapping import Wrapper

Rate = Callable[[datetime], float | None]
"""Bytes per second allowed at an instant; None: as fast as it goes."""


@dataclass(frozen=True, slots=True)
class HourlyRate:
    """A rate for each hour of the day on a zone's wall clock."""

    zone: ZoneInfo
    hours: tuple[float | None, ...]

    def __post_init__(self) -> None:
        if len(self.hours) != 24 or any(rate is not None and rate <= 0 for rate in self.hours):
            raise SettingsError(f"a bandwidth plan needs 24 hours, each above 0 or None, not {self.hours!r}")

    def __call__(self, instant: datetime) -> float | None:
        """Return the rate of the hour that the zone's clocks show."""
        return self.hours[instant.astimezone(self.zone).hour]


class Limiting(Wrapper):
    """Waits before bodies move so that on average the rate is kept. Safe for threads; one instance per shared limit."""

    def __init__(
        self, inner: Store, *, rate: Rate | None = None, at_once: int | None = None, clock: Clock | None = None
    ) -> None:
        super().__init__(inner)
        self._rate, self._clock = rate, clock or SystemClock()
        self._slots = threading.BoundedSemaphore(at_once) if at_once else contextlib.nullcontext()
        self._lock = threading.Lock()
        self._free_at = self._clock.monotonic()

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Read in turn."""
        wanted = self._inner.head(key).size - start if size is None and self._rate is not None else size or 0
        with self._turn(wanted):
            return self._inner.get(key, start=start, size=size, version=version)

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Read in turn."""
        with self._turn(into.nbytes):
            self._inner.fetch(key, into, start=start, version=version)

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write in turn."""
        with self._turn(size_of(body)):
            return self._inner.put(key, body, create=create, if_match=if_match, storage_class=storage_class)

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write in turn."""
        with self._turn(sum(size_of(body) for _, body in objects)):
            return self._inner.put_many(objects, storage_class=storage_class)

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write in turn."""
        with self._turn(size_of(body)):
            return self._inner.put_part(key, upload, number, body)

    @contextlib.contextmanager
    def _turn(self, size: int) -> Iterator[None]:
        with self._slots:
            self._clock.sleep(self._reserve(size))
            yield

    def _reserve(self, size: int) -> float:
        """Take the next stretch of the line for `size` bytes; return the seconds until it begins."""
        rate = self._rate(self._clock.now()) if self._rate is not None else None
        if rate is None:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            begins = max(now, self._free_at)
            self._free_at = begins + size / rate
        return begins - now
