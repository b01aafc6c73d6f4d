"""P01: a window whose start equals its end is the whole day, never no hour at all."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from regions.load import inspect
from regions.offers import price_curve
from tests.regions.files import at, catalog, text, write
from tests.regions.wishes import planned


@pytest.mark.parametrize("end", ["00:00", "24:00"])
def test_the_estimate_is_two(tmp_path: Path, end: str) -> None:
    window = f'{{name: off-peak, days: [all], start: "00:00", end: "{end}", multiplier: "0.5"}}'
    loaded = catalog(tmp_path, here=text(price='"2.00"', windows=window))
    plan = planned(loaded, "2026-12-01T14:00Z", 120, home="here")
    assert plan.feasible
    assert plan.cost == Decimal(2)
    here = loaded.regions["here"]
    [span] = price_curve(here, here.offers[0], "on_demand", at("2026-12-01T00:00Z"), at("2026-12-31T00:00Z"))
    assert (span.price, span.window) == (Decimal(1), "off-peak")


@pytest.mark.parametrize("hour", range(24))
def test_the_same_time_twice_is_a_day_from_that_time(tmp_path: Path, hour: int) -> None:
    window = f'{{name: off-peak, days: [mon], start: "{hour:02}:00", end: "{hour:02}:00", multiplier: "0.5"}}'
    loaded = catalog(tmp_path, here=text(windows=window)).regions["here"]
    curve = price_curve(loaded, loaded.offers[0], "on_demand", at("2026-11-28T00:00Z"), at("2026-12-04T00:00Z"))
    [off] = [span for span in curve if span.window == "off-peak"]
    assert off.hours == 24
    assert off.start == at(f"2026-11-30T{hour:02}:00Z")


def test_a_start_at_the_days_end_is_refused_not_empty(tmp_path: Path) -> None:
    window = '{name: off-peak, start: "24:00", end: "24:00", multiplier: "0.5"}'
    [fault] = inspect(write(tmp_path, here=text(windows=window)))[1]
    assert (fault.field, "24:00" in fault.expected) == ("tariff.windows[0].start", True)
