"""What kind of day a date is in a region: workday, weekend, holiday, which day of which named holiday.

A day's kinds are sets of the words a window's `days` may use, one set for each way the day may still turn out. Nearly
always there is one. In a country that moves working days to weekends, a year whose list is not published yet has
several: nothing is guessed (docs/decisions/0103-unpublished-years.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import holidays as calendars

from regions.model import Holidays

Kinds = tuple[frozenset[str], ...]
"""The ways a day may turn out; one set of day words each."""

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_RECENT = range(2019, 2027)
"""Years whose lists are known: they show a holiday's names, and whether a country moves days at all."""
_ONE_DAY = timedelta(days=1)
_LONGEST_BREAK = 12
"""Days of one holiday that are numbered; the longest break so far had 9 (China, 2026)."""


def kinds(rules: Holidays, day: date) -> Kinds:
    """Return the ways a date may turn out."""
    return _year(rules, day.year)[day]


def unknown_years(rules: Holidays, first: int, last: int) -> tuple[int, ...]:
    """Return the years, first to last, whose make-up days the country has not published (and the file does not add)."""
    return tuple(year for year in range(first, last + 1) if not _published(rules, year))


def holiday_names(country: str, subdivision: str | None) -> frozenset[str]:
    """Return the names that `holiday:<name>` may use in a country."""
    return frozenset(
        name for year in _RECENT for names in _statutory(country, subdivision, year).values() for name in names
    )


def calendar_fault(country: str | None, subdivision: str | None) -> tuple[str, list[str]] | None:
    """Return which field names no calendar ("country" or "subdivision") and what is known, or None where both do."""
    if country is None:
        return None
    known = calendars.list_supported_countries(include_aliases=True)
    if country not in known:
        return "country", sorted(known)
    if subdivision is not None:
        known_parts = [*known[country], *_calendar(country, None, 2026).subdivisions_aliases]
        if subdivision not in known_parts:
            return "subdivision", sorted(known_parts)
    return None


def day_selectors(days: tuple[str, ...]) -> frozenset[str]:
    """Return the day words that make a window's `days` match: ranges of a holiday are written out."""
    words: set[str] = set()
    for item in days:
        name, bracket, numbers = item.partition("[")
        if not bracket:
            words.add(item)
            continue
        first, _, last = numbers.rstrip("]").partition("-")
        words |= {f"{name}#{number}" for number in range(int(first), int(last or first) + 1)}
    return frozenset(words)


@lru_cache(maxsize=4096)
def _year(rules: Holidays, year: int) -> dict[date, Kinds]:
    found: dict[date, Kinds] = {}
    numbered = _numbered(rules, year)
    for day in _days_of(year):
        base = {"all", WEEKDAYS[day.weekday()]}
        certain, words = numbered.get(day, (True, frozenset()))
        ways: list[frozenset[str]] = []
        for way in _ways(rules, day):
            own = words if certain or way != "workday" else frozenset[str]()
            # A day that belongs to a break only if it turns out to be off has no number where it is worked.
            classes = {way, "weekend"} if way == "holiday" and _weekend(rules, day) else {way}
            ways.append(frozenset(base | classes | own))
        found[day] = tuple(dict.fromkeys(ways))
    return found


def _ways(rules: Holidays, day: date) -> tuple[str, ...]:
    """Return how a day may turn out: workday, weekend or holiday."""
    if day in rules.extra_workdays:
        return ("workday",)
    if day in rules.extra_holidays:
        return ("holiday",)
    if rules.country is None:
        return ("weekend",) if day.weekday() >= 5 else ("workday",)
    if not _moves_days(rules):
        if day in _calendar(rules.country, rules.subdivision, day.year):
            return ("holiday",)
        return ("weekend",) if _weekend(rules, day) else ("workday",)
    return _ways_with_makeup(rules, rules.country, day)


def _ways_with_makeup(rules: Holidays, country: str, day: date) -> tuple[str, ...]:
    calendar = _calendar(country, rules.subdivision, day.year)
    if day in _statutory(country, rules.subdivision, day.year):
        return ("holiday",)
    usual = "weekend" if calendar.is_weekend(day) else "workday"
    if _by_file(rules, day.year):
        return (usual,)
    if not _published(rules, day.year):
        return ("weekend", "workday") if usual == "weekend" else ("workday", "holiday")
    if day in calendar.weekend_workdays:
        return ("workday",)
    return ("holiday",) if day in calendar else (usual,)


def _weekend(rules: Holidays, day: date) -> bool:
    if rules.country is None:
        return day.weekday() >= 5
    return bool(_calendar(rules.country, rules.subdivision, day.year).is_weekend(day))


def _by_file(rules: Holidays, year: int) -> bool:
    """Tell whether the region file brings the year's make-up days itself, before the country's list is known here."""
    given = any(day.year == year for day in rules.extra_workdays)
    return given and not _listed(rules.country or "", rules.subdivision, year)


def _published(rules: Holidays, year: int) -> bool:
    if rules.country is None or not _moves_days(rules):
        return True
    return _by_file(rules, year) or _listed(rules.country, rules.subdivision, year)


def _moves_days(rules: Holidays) -> bool:
    return rules.makeup_workdays and rules.country is not None and _ever_moves(rules.country)


@lru_cache(maxsize=512)
def _ever_moves(country: str) -> bool:
    """Tell whether a country has worked at weekends to make up for holidays in recent years."""
    return any(_listed(country, None, year) for year in _RECENT)


@lru_cache(maxsize=4096)
def _listed(country: str, subdivision: str | None, year: int) -> bool:
    return any(day.year == year for day in _calendar(country, subdivision, year).weekend_workdays)


def _numbered(rules: Holidays, year: int) -> dict[date, tuple[bool, frozenset[str]]]:
    """Return, for days of named holidays: whether it is certain, and the words `holiday:<name>` and `...#<number>`."""
    found: dict[date, tuple[bool, frozenset[str]]] = {}
    if rules.country is None:
        return found
    moves = _moves_days(rules)
    for first, names in _starts(rules.country, rules.subdivision, year):
        for number, (day, certain) in enumerate(_break(rules, first), start=1):
            named = _statutory(rules.country, rules.subdivision, day.year).get(day, frozenset())
            # Where working days are moved, the whole break bears the name; elsewhere only the days that are called so.
            whole = {f"holiday:{name}" for name in names if moves or name in named}
            words = whole | {f"holiday:{name}#{number}" for name in names}
            before = found.get(day, (True, frozenset[str]()))
            found[day] = (before[0] and certain, before[1] | words)
    return found


def _starts(country: str, subdivision: str | None, year: int) -> Iterator[tuple[date, frozenset[str]]]:
    """Yield the first days of named holidays of a year, and of the end of the year before (a break may run over)."""
    for each in (year - 1, year):
        dates = _statutory(country, subdivision, each)
        for day in sorted(dates):
            fresh = dates[day] - dates.get(day - _ONE_DAY, frozenset())
            if fresh:
                yield day, fresh


def _break(rules: Holidays, first: date) -> Iterator[tuple[date, bool]]:
    """Yield the days off in a row from a holiday's first day, and whether each is certain to belong to it."""
    certain = True
    for number in range(_LONGEST_BREAK):
        day = first + number * _ONE_DAY
        ways = _ways(rules, day)
        if ways == ("workday",):
            return
        certain = certain and "workday" not in ways
        yield day, certain


def _days_of(year: int) -> Iterator[date]:
    day = date(year, 1, 1)
    while day.year == year:
        yield day
        day += _ONE_DAY


@lru_cache(maxsize=4096)
def _statutory(country: str, subdivision: str | None, year: int) -> dict[date, frozenset[str]]:
    """Return the dates that are holidays by law, before any is moved, with their names as words.

    A day off that exists only because another day is worked has no name of its own and is left out.
    """
    calendar = _calendar(country, subdivision, year, observed=False)
    moved = calendar.tr(getattr(calendar, "substituted_label", "") or "").partition("%s")[0]
    found: dict[date, frozenset[str]] = {}
    for day in calendar:
        names = [name for name in calendar.get_list(day) if not (moved and name.startswith(moved))]
        if day.year == year and names:
            found[day] = frozenset(word for name in names for word in _words(name))
    return found


def _words(name: str) -> Iterator[str]:
    """Yield a holiday's name as words: whole, without its parenthesis, and what stands in it."""
    inside = re.findall(r"\(([^)]*)\)", name)
    for text in (name, re.sub(r"\([^)]*\)", "", name), *inside):
        word = re.sub(r"[^a-z0-9]+", "_", re.sub(r"['’.]", "", text.lower())).strip("_")
        if word:
            yield word
            yield word.replace("labor", "labour")


@lru_cache(maxsize=4096)
def _calendar(country: str, subdivision: str | None, year: int, observed: bool = True) -> Any:
    language = "en_US" if "en_US" in _languages(country) else None
    return calendars.country_holidays(
        country, subdiv=subdivision, years=year, expand=False, observed=observed, language=language
    )


@lru_cache(maxsize=512)
def _languages(country: str) -> tuple[str, ...]:
    return tuple(calendars.country_holidays(country).supported_languages)
