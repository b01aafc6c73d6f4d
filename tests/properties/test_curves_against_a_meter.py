"""Curves cover every instant once and say what a meter on the wall would: all zones, two years, random windows.

By default a seeded few zones and short spans; NIGHTRELAY_SOAK=1 takes every zone of the tz database.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.model import Holidays, Tariff, Window
from regions.offers import Curve, price_curve
from regions.zones import stretches, zone_names
from tests.properties.oracle import multiplier, readings
from tests.properties.worlds import place, random_tariff

SOAK = bool(os.environ.get("NIGHTRELAY_SOAK"))
ODD = ["Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Chatham", "Africa/Casablanca", "Europe/Dublin", "America/Nuuk"]
ZONES = sorted(zone_names()) if SOAK else ODD[:5] + random.Random(3).sample(sorted(zone_names()), 2)
START, YEARS = datetime(2025, 1, 1, tzinfo=UTC), timedelta(days=730)


def check_cover(curve: Curve, start: datetime, end: datetime) -> None:
    """Every instant exactly once: the curve begins and ends where asked, without gap or overlap."""
    assert curve[0].start == start
    assert curve[-1].end == end
    for one, other in pairwise(curve):
        assert one.start < one.end == other.start
        assert (one.price, one.window, one.basis) != (other.price, other.window, other.basis), "equal ones are merged"


@pytest.mark.parametrize("zone", ZONES)
def test_every_hour_of_two_years(zone: str) -> None:
    chance = random.Random(f"{zone} hours")
    region, offer = place(zone, random_tariff(chance), random_country(chance))
    curve = price_curve(region, offer, "on_demand", START, START + YEARS)
    check_cover(curve, START, START + YEARS)
    spans = iter(curve)
    span = next(spans)
    for instant, factor, window in readings(region, START, START + YEARS, timedelta(hours=1)):
        while span.end <= instant:
            span = next(spans)
        assert (span.price, span.window) == (factor, window), (zone, instant)


@pytest.mark.parametrize("zone", ZONES)
def test_every_second_around_each_edge(zone: str) -> None:
    """The last second before an edge and the first after it read as the curve says, on both sides."""
    chance = random.Random(f"{zone} edges")
    region, offer = place(zone, random_tariff(chance, seconds=True), random_country(chance))
    changes = [stretch.start for stretch in stretches(zone, START, START + YEARS)[1:]]
    middle = chance.choice(changes) if changes else START + timedelta(days=chance.randrange(700))
    start = middle - timedelta(days=3)
    for span in price_curve(region, offer, "on_demand", start, start + timedelta(days=6)):
        for instant in (span.start, span.end - timedelta(seconds=1)):
            assert (span.price, span.window) == multiplier(region, instant), (zone, instant)


def random_country(chance: random.Random) -> Holidays:
    return Holidays(country=chance.choice(["CN", "US", "DE", None]))


@settings(max_examples=200 if SOAK else 12, deadline=None)
@given(st.sampled_from(sorted(zone_names())), st.randoms(use_true_random=False), st.integers(0, 700 * 24))
def test_every_minute_of_three_days(zone: str, chance: random.Random, hours: int) -> None:
    region, offer = place(zone, random_tariff(chance), random_country(chance))
    start = START + timedelta(hours=hours)
    curve = price_curve(region, offer, "on_demand", start, start + timedelta(days=3))
    check_cover(curve, start, start + timedelta(days=3))
    for span in curve:
        for instant, factor, window in readings(region, span.start, span.end):
            assert (span.price, span.window) == (factor, window), (zone, instant)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_part_of_a_curve_is_the_curve_of_the_part(chance: random.Random, skip: int, first: int, second: int) -> None:
    region, offer = place(chance.choice(ODD), random_tariff(chance), Holidays())
    start = START + timedelta(seconds=skip * 50)
    middle, end = start + timedelta(seconds=first), start + timedelta(seconds=first + second)
    whole = price_curve(region, offer, "on_demand", start, end)
    left = price_curve(region, offer, "on_demand", start, middle)
    right = price_curve(region, offer, "on_demand", middle, end)
    for part, begin, until in ((left, start, middle), (right, middle, end)):
        clipped = [s for s in whole if s.end > begin and s.start < until]
        assert [(s.price, s.window) for s in clipped] == [(s.price, s.window) for s in part]


PROGRAM = """
import json, sys
from datetime import UTC, datetime
from regions.offers import price_curve
from tests.properties.worlds import place
from regions.model import Holidays, Tariff, Window
windows = (Window(name="office", days=("workday",), start="06:00", end="22:00", multiplier="2"),)
region, offer = place("America/Chicago", Tariff(windows=windows), Holidays(country="US"))
curve = price_curve(region, offer, "on_demand", datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))
print(json.dumps([[str(s.start), str(s.price), s.window] for s in curve]))
"""


def test_neither_the_process_zone_nor_the_systems_zone_data_matter() -> None:
    answers = set()
    for zone, path in (("UTC", None), ("Australia/Melbourne", None), ("America/New_York", ""), ("UTC", "")):
        environ = {**os.environ, "TZ": zone} | ({} if path is None else {"PYTHONTZPATH": path})
        root = Path(__file__).parents[2]
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, cwd=root, capture_output=True, check=True)
        answers.add(done.stdout)
    assert len(answers) == 1
    assert len(answers.pop()) > 10_000


def test_the_oracle_itself_can_disagree() -> None:
    """A window one minute longer is noticed: the comparison is no tautology."""
    window = Window(name="w", start="08:00", end="09:00", multiplier="2")
    region, offer = place("Europe/Berlin", Tariff(windows=(window,)), Holidays())
    longer, _ = place(
        "Europe/Berlin", Tariff(windows=(Window(name="w", start="08:00", end="09:01", multiplier="2"),)), Holidays()
    )
    curve = price_curve(region, offer, "on_demand", START, START + timedelta(days=1))
    wrong = [
        instant
        for span in curve
        for instant, factor, _ in readings(longer, span.start, span.end)
        if factor != span.price
    ]
    assert wrong == [START + timedelta(hours=8)]
