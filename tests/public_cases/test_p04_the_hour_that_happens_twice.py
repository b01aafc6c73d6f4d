"""P04: the repeated hour is in the window twice, and edges never stand still."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from regions.model import Catalog
from regions.offers import price_curve
from tests.regions.files import at, catalog, text
from tests.regions.wishes import planned


@pytest.fixture
def zurich(tmp_path: Path) -> Catalog:
    window = '{name: off-peak, days: [all], start: "01:30", end: "04:30", multiplier: "0.5"}'
    return catalog(tmp_path, here=text(zone="Europe/Zurich", price='"2.00"', windows=window))


def test_that_nights_window_is_four_hours_long(zurich: Catalog) -> None:
    plan = planned(zurich, "2023-10-28T20:00Z", 225, only="off-peak", within="12 h", home="here")
    assert plan.feasible
    [leg] = plan.legs
    assert (leg.start, leg.end - leg.start) == (at("2023-10-29T01:30+02:00"), timedelta(hours=3, minutes=45))
    assert plan.cost == Decimal("3.75")


def test_a_week_earlier_it_does_not_fit(zurich: Catalog) -> None:
    assert not planned(zurich, "2023-10-21T20:00Z", 225, only="off-peak", within="12 h", home="here").feasible
    assert planned(zurich, "2023-10-21T20:00Z", 180, only="off-peak", within="12 h", home="here").feasible


def test_in_spring_the_night_is_two_hours(zurich: Catalog) -> None:
    assert planned(zurich, "2024-03-30T20:00Z", 120, only="off-peak", within="12 h", home="here").feasible
    assert not planned(zurich, "2024-03-30T20:00Z", 121, only="off-peak", within="12 h", home="here").feasible


def test_the_next_fifty_edges_come_at_once_and_strictly_increase(zurich: Catalog) -> None:
    here, start = zurich.regions["here"], at("2023-10-29T02:55+02:00")
    began = time.perf_counter()
    curve = price_curve(here, here.offers[0], "on_demand", start, start + timedelta(days=26))
    assert time.perf_counter() - began < 1
    edges = [span.end for span in curve][:50]
    assert len(edges) == 50
    assert edges[0] == at("2023-10-29T04:30+01:00")
    assert all(one < other for one, other in pairwise([start, *edges]))
