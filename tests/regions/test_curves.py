"""Curves and exact prices of offers."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.model import Offer, Region
from regions.money import Money
from regions.offers import (
    NoPrice,
    Span,
    billed,
    break_even,
    capacity,
    currency_of,
    price_curve,
    price_of,
    uncertain_years,
    why_not,
)
from tests.regions.files import at, region

NIGHT = '{name: night, start: "22:00", end: "08:00", multiplier: "0.5", basis: claim}'
Sold = tuple[Region, Offer]


def rows(sold: Sold, start: str, end: str, market: str = "on_demand") -> list[tuple[str, str, str | None, str]]:
    spans = price_curve(*sold, market, at(start), at(end))  # type: ignore[arg-type]
    assert spans[0].start == at(start)
    assert spans[-1].end == at(end)
    assert all(one.end == other.start for one, other in pairwise(spans))
    return [(f"{span.start:%m-%d %H:%M}", f"{span.price.normalize():f}", span.window, span.basis) for span in spans]


def test_first_match_wins_and_a_window_belongs_to_the_day_it_starts(tmp_path: Path) -> None:
    sold = region(
        tmp_path,
        windows="""{name: late friday, days: [fri], start: "20:00", end: "02:00", multiplier: "0.1"}
        {name: saturday, days: [sat], start: "00:00", end: "00:00", multiplier: "2"}
        {name: night, start: "22:00", end: "08:00", multiplier: "0.5"}""",
    )
    assert rows(sold, "2026-12-04T12:00Z", "2026-12-06T12:00Z") == [
        ("12-04 12:00", "3", None, "list"),
        ("12-04 20:00", "0.3", "late friday", "list"),
        ("12-05 02:00", "6", "saturday", "list"),
        ("12-06 00:00", "1.5", "night", "list"),
        ("12-06 08:00", "3", None, "list"),
    ]


def test_months_belong_to_the_starting_day(tmp_path: Path) -> None:
    sold = region(tmp_path, windows='{name: w, months: [12], start: "22:00", end: "08:00", multiplier: "0.5"}')
    assert [row[:3] for row in rows(sold, "2026-11-30T12:00Z", "2026-12-02T00:00Z")] == [
        ("11-30 12:00", "3", None), ("12-01 22:00", "1.5", "w"),
    ]  # fmt: skip
    assert [row[:3] for row in rows(sold, "2026-12-31T12:00Z", "2027-01-02T00:00Z")] == [
        ("12-31 12:00", "3", None), ("12-31 22:00", "1.5", "w"), ("01-01 08:00", "3", None),
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["00:00", "24:00"])
def test_a_whole_day(tmp_path: Path, end: str) -> None:
    sold = region(tmp_path, windows=f'{{name: all, start: "00:00", end: "{end}", multiplier: "0.5"}}')
    assert rows(sold, "2026-12-01T00:00Z", "2026-12-09T00:00Z") == [("12-01 00:00", "1.5", "all", "list")]


@pytest.mark.parametrize(
    ("zone", "start", "end", "hours"),
    [
        ("Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T12:00Z", 9),  # 23-hour day: 02-03 does not exist
        ("Europe/Berlin", "2026-10-24T12:00Z", "2026-10-25T12:00Z", 11),  # 25-hour day: 02-03 twice
        ("Australia/Lord_Howe", "2026-04-04T02:00Z", "2026-04-05T02:00Z", 10.5),  # a day of 24.5 hours
        ("Australia/Lord_Howe", "2026-10-03T02:00Z", "2026-10-04T02:00Z", 9.5),
        ("Asia/Kathmandu", "2026-12-01T12:00Z", "2026-12-02T12:00Z", 10),  # +05:45
        ("Asia/Kolkata", "2026-12-01T12:00Z", "2026-12-02T12:00Z", 10),
        ("Pacific/Chatham", "2026-04-04T04:00Z", "2026-04-05T04:00Z", 11),  # +12:45/+13:45
    ],
)
def test_the_night_is_as_long_as_the_wall_says(tmp_path: Path, zone: str, start: str, end: str, hours: float) -> None:
    sold = region(tmp_path, zone=zone, windows=NIGHT)
    spans = price_curve(*sold, "on_demand", at(start), at(end))
    assert float(sum(span.hours for span in spans if span.window == "night")) == hours


def test_a_skipped_hour_is_in_no_window_and_a_repeated_one_twice(tmp_path: Path) -> None:
    two = region(tmp_path, zone="Europe/Berlin", windows='{name: two, start: "02:00", end: "03:00", multiplier: "0"}')
    assert rows(two, "2026-03-28T23:00Z", "2026-03-29T22:00Z") == [("03-28 23:00", "3", None, "list")]
    assert [row[:2] for row in rows(two, "2026-10-24T22:00Z", "2026-10-25T12:00Z")] == [
        ("10-24 22:00", "3"), ("10-25 00:00", "0"), ("10-25 02:00", "3"),
    ]  # fmt: skip


def test_the_basis_of_a_price_is_its_weakest_part(tmp_path: Path) -> None:
    sold = region(
        tmp_path, windows=NIGHT + '\n{name: day, start: "00:00", end: "00:00", multiplier: "1", basis: claim}'
    )
    assert {row[2]: row[3] for row in rows(sold, "2026-12-01T00:00Z", "2026-12-02T00:00Z")} == {
        "night": "claim", "day": "list",
    }  # fmt: skip


def test_the_tariff_is_for_on_demand_unless_the_market_says_so(tmp_path: Path) -> None:
    spot = '      spot: {price: "1.00", basis: observed}'
    sold = region(tmp_path, windows=NIGHT, markets=spot)
    assert rows(sold, "2026-12-01T00:00Z", "2026-12-02T00:00Z", "spot") == [("12-01 00:00", "1", None, "observed")]
    told = region(tmp_path, windows=NIGHT, markets=spot.replace("}", ", tariff: true}"))
    assert len(rows(told, "2026-12-01T00:00Z", "2026-12-02T00:00Z", "spot")) == 3
    flat = region(tmp_path, windows=NIGHT, market='{price: "3.00", tariff: false}')
    assert len(rows(flat, "2026-12-01T00:00Z", "2026-12-02T00:00Z")) == 1


def test_a_series_replaces_price_and_tariff_in_its_span_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(
        "instant,price\n2026-12-01T01:00Z,-0.5\n2026-12-01T01:15Z,\n2026-12-01T02:00Z,9\n2026-12-01T03:00Z,8\n"
    )
    sold = region(tmp_path, windows=NIGHT, market='{price: "3.00", basis: list, series: s.csv}')
    assert rows(sold, "2026-12-01T00:00Z", "2026-12-01T05:00Z") == [
        ("12-01 00:00", "1.5", "night", "claim"),
        ("12-01 01:00", "-0.5", "series", "list"),
        ("12-01 01:15", "1.5", "night", "claim"),
        ("12-01 02:00", "9", "series", "list"),
        ("12-01 03:00", "8", "series", "list"),
        ("12-01 04:00", "1.5", "night", "claim"),
    ]
    alone = region(tmp_path, market="{series: s.csv}")
    with pytest.raises(NoPrice, match="from 2026-12-01T04:00:00"):
        rows(alone, "2026-12-01T03:00Z", "2026-12-01T05:00Z")


def test_owned_machines_pay_electricity_on_top(tmp_path: Path) -> None:
    power = """electricity:
  billing: owned
  price_per_kwh: {price: "0.50", basis: contract}
  pue: "1.2"
  windows: [{name: valley, start: "00:00", end: "07:00", multiplier: "0.4"}]
"""
    free = region(tmp_path, price='"0"', more=power, offer="    power: 2.5 kW")
    assert rows(free, "2026-12-01T00:00Z", "2026-12-02T00:00Z") == [
        ("12-01 00:00", "0.6", "valley", "contract"), ("12-01 07:00", "1.5", None, "contract"),
    ]  # fmt: skip
    both = region(tmp_path, windows=NIGHT, more=power, offer="    power: 2.5 kW")
    assert [row[:3] for row in rows(both, "2026-12-01T00:00Z", "2026-12-02T00:00Z")] == [
        ("12-01 00:00", "2.1", "night + valley"), ("12-01 07:00", "3", "night"), ("12-01 08:00", "4.5", None),
        ("12-01 22:00", "3", "night"),
    ]  # fmt: skip
    [first, *_] = price_curve(*both, "on_demand", at("2026-12-01T00:00Z"), at("2026-12-02T00:00Z"))
    assert first.electricity == Decimal("0.6")
    rented = region(tmp_path, more=power.replace("owned", "included"))
    assert len(rows(rented, "2026-12-01T00:00Z", "2026-12-02T00:00Z")) == 1


def test_fractions_cost_their_share_or_their_own_price(tmp_path: Path) -> None:
    parts = """    fractions:
      - {method: mig, profile: 1g.10gb, share: "1/7", memory: 10 GiB}
      - {method: vgpu, share: "1/3", memory: 8 GiB, price: {price: "1.50", basis: list}}"""
    here, offer = region(tmp_path, count="8", windows=NIGHT, offer=parts)  # type: ignore[arg-type]
    mig, vgpu = offer.fractions
    day = at("2026-12-01T10:00Z"), at("2026-12-01T17:00Z")
    assert price_of(here, offer, "on_demand", *day, mig).amount == Decimal("0.375"), "7 h x 3 / 8 / 7, exactly"
    assert price_of(here, offer, "on_demand", *day, vgpu).amount == Decimal("10.5")
    assert price_curve(here, offer, "on_demand", *day, vgpu)[0].price == Decimal("1.50")
    assert mig.share == Fraction(1, 7)


def test_billing_is_applied_once_to_the_whole(tmp_path: Path) -> None:
    here, offer = region(tmp_path, windows=NIGHT)
    sold = here, offer.model_copy(update={"billing": offer.billing.model_copy(
        update={"increment": timedelta(hours=1), "minimum": timedelta(hours=2)})})  # fmt: skip

    def cost(start: str, end: str) -> Decimal:
        return price_of(*sold, "on_demand", at(start), at(end)).amount

    assert billed(sold[1], timedelta(0)) == timedelta(0)
    assert billed(sold[1], timedelta(microseconds=1)) == timedelta(hours=2)
    assert billed(sold[1], timedelta(hours=2, seconds=1)) == timedelta(hours=3)
    assert cost("2026-12-01T10:00Z", "2026-12-01T10:00Z") == 0
    assert cost("2026-12-01T10:00Z", "2026-12-01T10:01Z") == 6, "two hours at 3"
    assert cost("2026-12-01T21:30Z", "2026-12-01T23:00Z") == Decimal("3.75"), "half an hour at 3, and 1.5 h at 1.5"


def test_markets_without_a_price_are_named(tmp_path: Path) -> None:
    here, offer = region(tmp_path, market="{price: null}", markets="      spot: {price: '0'}")
    for market, expected in (("on_demand", "no price for gpu"), ("reserved", "no price for gpu"), ("spot", None)):
        reason = why_not(here, offer, market)  # type: ignore[arg-type]
        assert reason == expected or (expected and reason and reason.startswith(expected))
    assert price_curve(here, offer, "spot", at("2026-12-01T00:00Z"), at("2026-12-02T00:00Z"))[0].price == 0


def test_quota_and_what_is_held(tmp_path: Path) -> None:
    reserved = '      reserved: {price_per_month: "1440", held: 2}'
    here, offer = region(tmp_path, windows=NIGHT, markets=reserved)
    assert [capacity(offer, market) for market in ("on_demand", "reserved", "spot")] == [4, 2, 0]
    assert rows((here, offer), "2026-12-01T00:00Z", "2026-12-02T00:00Z", "reserved")[0][1] == "0", "sunk"
    none = offer.model_copy(update={"quota": None})
    assert "no quota" in (why_not(here, none, "on_demand") or "")


def test_a_term_pays_from_its_break_even_hours_on(tmp_path: Path) -> None:
    reserved = '      reserved: {price_per_month: "1440", terms: [{commitment: 1 year, multiplier: "0.5"}]}'
    flat = region(tmp_path, markets=reserved)
    month, year = break_even(*flat, at("2026-12-01T00:00Z"))
    assert (month.hours, month.cost) == (Decimal(480), Money(Decimal(1440), "USD"))
    assert year.hours == Decimal(1440) * 365 / 30 / 2 / 3
    cheap_nights = region(tmp_path, markets=reserved, windows=NIGHT)
    hours = break_even(*cheap_nights, at("2026-12-01T00:00Z"))[0].hours
    assert hours is not None
    assert price_of(*cheap_nights, "on_demand", at("2026-12-01T00:00Z"),
                    at("2026-12-01T00:00Z") + timedelta(hours=float(hours))).amount == Decimal(1440)  # fmt: skip
    dear = region(tmp_path, markets=reserved.replace('"1440"', '"9999"'))
    assert break_even(*dear, at("2026-12-01T00:00Z"))[0].hours is None
    with pytest.raises(NoPrice, match="9999 USD per month"):
        price_curve(*dear, "reserved", at("2026-12-01T00:00Z"), at("2026-12-02T00:00Z"))


def test_prices_may_carry_their_own_currency(tmp_path: Path) -> None:
    sold = region(tmp_path, market='{price: {price: "3.00", currency: CNY}}')
    assert currency_of(*sold, "on_demand") == "CNY"
    assert price_of(*sold, "on_demand", at("2026-12-01T00:00Z"), at("2026-12-01T01:00Z")) == Money(Decimal(3), "CNY")


def test_what_depends_on_unpublished_days_is_the_dearest_and_called_unknown(tmp_path: Path) -> None:
    windows = """{name: rest, days: [weekend, holiday], start: "00:00", end: "00:00", multiplier: "0.5"}
    {name: night, start: "22:00", end: "08:00", multiplier: "0.5"}"""
    sold = region(tmp_path, holidays="{country: CN}", windows=windows)
    assert rows(sold, "2027-03-03T06:00Z", "2027-03-03T23:00Z") == [
        ("03-03 06:00", "1.5", "rest or night", "list"),
        ("03-03 08:00", "3", None, "unknown"),
        ("03-03 22:00", "1.5", "rest or night", "list"),
    ]
    assert uncertain_years(sold[0], at("2026-12-01T00:00Z"), at("2027-02-01T00:00Z")) == (2027,)
    nights = region(tmp_path, holidays="{country: CN}", windows=NIGHT)
    assert uncertain_years(nights[0], at("2026-12-01T00:00Z"), at("2027-02-01T00:00Z")) == ()


PRICES = st.decimals(0, 1000, places=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**10), PRICES), min_size=1, max_size=6))
def test_the_price_of_a_whole_is_the_sum_of_its_parts(pieces: list[tuple[int, Decimal]]) -> None:
    from regions.curves import merged

    start, spans = at("2026-12-01T00:00Z"), []
    for length, price in pieces:
        end = start + timedelta(microseconds=length)
        spans.append(Span(start, end, price, None, "list"))
        start = end
    assert sum(Fraction(s.price) * s.hours for s in merged(spans)) == sum(Fraction(s.price) * s.hours for s in spans)
