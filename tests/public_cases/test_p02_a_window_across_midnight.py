"""P02: a window across midnight is one window, its end excluded, and a leg is not cut at midnight."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from regions.model import Catalog
from regions.offers import price_curve
from tests.regions.files import at, catalog, text
from tests.regions.wishes import planned


@pytest.fixture
def night(tmp_path: Path) -> Catalog:
    window = '{name: off-peak, days: [all], start: "23:00", end: "01:00", multiplier: "0.5"}'
    return catalog(tmp_path, here=text(zone="Europe/Berlin", price='"4.00"', windows=window))


@pytest.mark.parametrize(
    ("reading", "window"),
    [
        ("22:59", None),
        ("23:00", "off-peak"),
        ("00:30", "off-peak"),
        ("00:59", "off-peak"),
        ("00:59:59", "off-peak"),
        ("01:00", None),
    ],
)
def test_the_rate_at_each_edge(night: Catalog, reading: str, window: str | None) -> None:
    day = "2026-12-02" if reading < "12" else "2026-12-01"
    instant = at(f"{day}T{reading}+01:00")
    here = night.regions["here"]
    curve = price_curve(here, here.offers[0], "on_demand", at("2026-12-01T00:00Z"), at("2026-12-03T00:00Z"))
    [span] = [span for span in curve if span.start <= instant < span.end]
    assert (span.window, span.price) == (window, Decimal(2) if window else Decimal(4))


def test_one_leg_from_eleven_to_half_past_midnight(night: Catalog) -> None:
    plan = planned(night, "2026-12-01T22:30+01:00", 90, only="off-peak", home="here")
    [leg] = plan.legs
    assert (leg.start, leg.end) == (at("2026-12-01T23:00+01:00"), at("2026-12-02T00:30+01:00"))
    assert plan.cost == Decimal("1.5") * 2


def test_a_stage_longer_than_the_window_waits_for_the_next_night(night: Catalog) -> None:
    plan = planned(night, "2026-12-01T22:30+01:00", 150, only="off-peak", home="here")
    assert plan.feasible
    assert all(
        leg.end <= at("2026-12-02T01:00+01:00") or leg.start >= at("2026-12-02T23:00+01:00") for leg in plan.legs
    )
    assert plan.cost == Decimal("2.5") * 2
