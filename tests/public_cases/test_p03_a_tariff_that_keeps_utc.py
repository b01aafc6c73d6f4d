"""P03: a window anchored to UTC keeps UTC all year: an hour later on the wall in summer."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.load import inspect
from regions.model import Catalog
from regions.offers import price_curve
from tests.regions.files import at, catalog, text, write
from tests.regions.wishes import planned

CHEAP = '{name: cheap, days: [all], start: "00:30", end: "07:30", multiplier: "0.5"}'


@pytest.fixture
def london(tmp_path: Path) -> Catalog:
    return catalog(tmp_path, here=text(zone="Europe/London", anchor="utc", windows=CHEAP))


@pytest.mark.parametrize(
    ("now", "start", "last"),
    [
        ("2025-01-15T00:40+00:00", "2025-01-15T00:40+00:00", "2025-01-15T07:30+00:00"),
        ("2025-07-15T00:40+01:00", "2025-07-15T01:30+01:00", "2025-07-15T08:30+01:00"),
    ],
)
def test_winter_starts_at_once_and_summer_an_hour_later(london: Catalog, now: str, start: str, last: str) -> None:
    [leg] = planned(london, now, 60, only="cheap", within="12 h", home="here").legs
    assert leg.start == at(start)
    minutes = int((at(last) - at(start)).total_seconds() // 60)
    [whole] = planned(london, now, minutes, only="cheap", within="12 h", home="here").legs
    assert (whole.start, whole.end) == (at(start), at(last))


def test_its_weekdays_are_utcs_too(tmp_path: Path) -> None:
    monday = '{name: monday, days: [mon], start: "00:00", end: "24:00", multiplier: "0.5"}'
    here = catalog(tmp_path, here=text(zone="Asia/Tokyo", anchor="utc", windows=monday)).regions["here"]
    curve = price_curve(here, here.offers[0], "on_demand", at("2026-11-28T00:00Z"), at("2026-12-03T00:00Z"))
    [span] = [span for span in curve if span.window == "monday"]
    assert (span.start, span.end) == (at("2026-11-30T00:00Z"), at("2026-12-01T00:00Z"))


def test_an_anchor_that_is_not_known_is_refused(tmp_path: Path) -> None:
    [fault] = inspect(write(tmp_path, here=text(anchor="UTC", windows=CHEAP)))[1]
    assert (fault.field, fault.hint) == ("tariff.anchor", "did you mean utc?")
