"""Wall-clock windows -> exact pieces of UTC time.

An instant is in a window if, and only if, its reading on the wall there is (a skipped hour is in none, a repeated one
twice), and the first window that matches wins. So each stretch of constant offset is cut at the local days' edges, and
a day's pattern depends only on which windows start on it and on the day before: patterns are worked out once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise, product

from regions.days import Kinds, day_selectors, kinds
from regions.fields import DAY
from regions.model import Holidays, Window
from regions.zones import Stretch, stretches

NONE = -1
"""The outcome "no window matches"."""
_ONE_DAY = timedelta(days=1)

Outcomes = tuple[int, ...]
"""Indices of the windows that may hold (NONE: none does). More than one only where a day's kind is not known yet."""


@dataclass(frozen=True, slots=True)
class Piece:
    """UTC time [start, end) with one outcome."""

    start: datetime
    end: datetime
    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class _Rule:
    """A window, ready to be matched: seconds from its day's midnight, the day words and the months it wants."""

    start: int
    end: int
    days: frozenset[str]
    months: frozenset[int]


@dataclass(frozen=True, eq=False)
class Timetable:
    """Windows on one clock, ready to be asked. Get one by `timetable`, which keeps them."""

    zone: str
    holidays: Holidays
    rules: tuple[_Rule, ...]
    _patterns: dict[tuple[object, object], tuple[tuple[timedelta, timedelta, Outcomes], ...]] = field(
        default_factory=dict, repr=False
    )
    _starting: dict[date, frozenset[tuple[int, ...]]] = field(default_factory=dict, repr=False)

    def pieces(self, start: datetime, end: datetime) -> tuple[Piece, ...]:
        """Return contiguous pieces that cover [start, end) exactly; equal neighbours are merged."""
        merged: list[Piece] = []
        for stretch in stretches(self.zone, start, end):
            for begin, until, outcomes in self._within(stretch):
                if merged and merged[-1].outcomes == outcomes:
                    begin = merged.pop().start
                merged.append(Piece(begin, until, outcomes))
        return tuple(merged)

    def _within(self, stretch: Stretch) -> Iterator[tuple[datetime, datetime, Outcomes]]:
        first, last = stretch.start + stretch.offset, stretch.end + stretch.offset
        midnight = datetime.combine(first.date(), time(), UTC) - stretch.offset
        day = first.date()
        while midnight < stretch.end and day <= last.date():
            for from_midnight, to, outcomes in self._pattern(day):
                begin, until = midnight + from_midnight, midnight + to
                if begin < stretch.end and until > stretch.start:
                    yield max(begin, stretch.start), min(until, stretch.end), outcomes
            midnight, day = midnight + _ONE_DAY, day + _ONE_DAY

    def _pattern(self, day: date) -> tuple[tuple[timedelta, timedelta, Outcomes], ...]:
        key = (self._starts(day - _ONE_DAY), self._starts(day))
        if key not in self._patterns:
            self._patterns[key] = _pattern(self.rules, *key)
        return self._patterns[key]

    def _starts(self, day: date) -> frozenset[tuple[int, ...]]:
        """Return, for each way the day may turn out, the windows that start on it."""
        if day not in self._starting:
            ways: Kinds = kinds(self.holidays, day)
            self._starting[day] = frozenset(
                tuple(i for i, rule in enumerate(self.rules) if day.month in rule.months and rule.days & way)
                for way in ways
            )
        return self._starting[day]


@lru_cache(maxsize=4096)
def timetable(zone: str, anchor: str, windows: tuple[Window, ...], holidays: Holidays) -> Timetable:
    """Return the timetable of windows; `anchor: utc` puts their clock and their calendar on UTC."""
    rules = tuple(
        _Rule(
            window.start,
            window.start + window.length,
            day_selectors(window.days),
            frozenset(window.months or range(1, 13)),
        )
        for window in windows
    )
    return Timetable("UTC" if anchor == "utc" else zone, holidays, rules)


def _pattern(
    rules: tuple[_Rule, ...], before: frozenset[tuple[int, ...]], today: frozenset[tuple[int, ...]]
) -> tuple[tuple[timedelta, timedelta, Outcomes], ...]:
    """Return a day's pieces, in time after its midnight, from the windows that start on it and on the day before."""
    edges = {0, DAY}
    for rule in rules:
        edges |= {rule.start, min(rule.end, DAY), max(rule.end - DAY, 0)}
    pieces: list[tuple[timedelta, timedelta, Outcomes]] = []
    ordered = sorted(edges)
    for begin, until in pairwise(ordered):
        outcomes = tuple(sorted({_first(rules, begin, *ways) for ways in product(before, today)}))
        start, end = timedelta(seconds=begin), timedelta(seconds=until)
        if pieces and pieces[-1][2] == outcomes:
            start = pieces.pop()[0]
        pieces.append((start, end, outcomes))
    return tuple(pieces)


def _first(rules: tuple[_Rule, ...], second: int, before: tuple[int, ...], today: tuple[int, ...]) -> int:
    """Return the first window that holds at a second of the day, or NONE."""
    for index, rule in enumerate(rules):
        if index in today and rule.start <= second < rule.end:
            return index
        if index in before and second < rule.end - DAY:
            return index
    return NONE
