"""A slow meter on the wall: reads date and time of every minute, and asks each window in turn.

Written from the contract's words and independently of regions/calendar.py and regions/days.py; shares only the file's
values. Knows no DST rule: Python's zoneinfo tells it the wall's reading, one instant at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import holidays

MINUTE = timedelta(minutes=1)


@lru_cache(maxsize=64)
def _calendar(country: str) -> Any:
    return holidays.country_holidays(country, years=range(2024, 2028))


def is_off(country: str | None, day: date) -> str:
    """Return workday, weekend or holiday, by the plain reading of the published calendar."""
    if country is not None:
        calendar = _calendar(country)
        if day in calendar.weekend_workdays:
            return "workday"
        if day in calendar:
            return "holiday"
    return "weekend" if day.weekday() in (5, 6) else "workday"


def day_matches(selectors: tuple[str, ...], country: str | None, day: date) -> bool:
    """Return whether any of a window's day words fits a date. (A holiday on a Sunday is both.)"""
    names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    words = {"all", names[day.weekday()], is_off(country, day)}
    if is_off(country, day) == "holiday" and day.weekday() in (5, 6):
        words.add("weekend")
    return any(selector in words for selector in selectors)


def multiplier(region: Any, instant: datetime) -> tuple[Decimal, str | None]:
    """Return the multiplier and window that the wall's reading at an instant gives."""
    zone = "UTC" if region.tariff.anchor == "utc" else region.timezone
    reading = instant.astimezone(ZoneInfo(zone))
    seconds = reading.hour * 3600 + reading.minute * 60 + reading.second
    today = reading.date()
    for window in region.tariff.windows:
        wraps = window.end <= window.start
        candidates = []
        if (seconds >= window.start) and (wraps or seconds < window.end):
            candidates.append(today)
        if wraps and seconds < window.end:
            candidates.append(today - timedelta(days=1))
        for day in candidates:
            in_month = window.months is None or day.month in window.months
            if in_month and day_matches(window.days, region.holidays.country, day):
                return window.multiplier, window.name
    return Decimal(1), None


def readings(
    region: Any, start: datetime, end: datetime, step: timedelta = MINUTE
) -> Iterator[tuple[datetime, Decimal, str | None]]:
    """Yield instant, multiplier and window at every step of [start, end)."""
    instant = start.astimezone(UTC)
    while instant < end:
        yield instant, *multiplier(region, instant)
        instant += step
