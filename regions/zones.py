"""Time zones of the tz database: which names there are, and between which instants a zone keeps one offset.

`zoneinfo` reads the system's data and falls back to the `tzdata` package, which is always installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return every name of the tz database (as the tzdata package lists them, so the same on every machine)."""
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return a zone of the tz database."""
    return ZoneInfo(name)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instants from `start` until `end` (UTC, half-open) in which local time is UTC + `offset`."""

    start: datetime
    end: datetime
    offset: timedelta


def stretches(name: str, start: datetime, end: datetime) -> tuple[Stretch, ...]:
    """Return the stretches of constant offset that cover [start, end), clipped to it; to the second."""
    found: list[Stretch] = []
    for year in range(start.year, end.year + 1):
        for piece in _year(name, year):
            begin, until = max(piece.start, start), min(piece.end, end)
            if begin >= until:
                continue
            if found and found[-1].offset == piece.offset:
                begin = found.pop().start
            found.append(Stretch(begin, until, piece.offset))
    return tuple(found)


@lru_cache(maxsize=4096)
def _year(name: str, year: int) -> tuple[Stretch, ...]:
    """Return a UTC year cut at its offset changes: looked for day by day, then hour by hour, then to the second."""
    place = zone(name)
    last = datetime(year + 1, 1, 1, tzinfo=UTC)
    pieces: list[Stretch] = []
    begin = here = datetime(year, 1, 1, tzinfo=UTC)
    current = _offset(place, here)
    while here < last:
        step = _DAY if _offset(place, here + _DAY) == current and here + _DAY <= last else _HOUR
        there = here + step
        following = _offset(place, there)
        if following != current and there <= last:
            change = _change(place, here, there)
            pieces.append(Stretch(begin, change, current))
            begin, current = change, following
        here = there
    if begin < last:
        pieces.append(Stretch(begin, last, current))
    return tuple(pieces)


def _change(place: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the first second of the later offset, given instants on both sides of one change."""
    old = _offset(place, before)
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        before, after = (middle, after) if _offset(place, middle) == old else (before, middle)
    return after


def _offset(place: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(place).utcoffset() or timedelta()
