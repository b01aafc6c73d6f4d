"""Tables as people read them: amounts, local times, the plan, and what legs cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.render.tables import bill_rows, cost_rows, leg_rows, local, money, plan_rows, size, utc
from tests.flows.test_ledger import T0, a_leg

ZONES = {"a": "Asia/Shanghai", "b": "America/Los_Angeles"}


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0.00 CNY"),
        ("0.12345", "0.1235 CNY"),
        ("-0.5", "-0.5000 CNY"),
        ("1", "1.00 CNY"),
        ("1234567.895", "1,234,567.90 CNY"),
        (None, "-"),
    ],
)
def test_small_amounts_keep_four_decimals(amount: str | None, text: str) -> None:
    assert money(amount, "CNY") == text


def test_an_amount_whose_currency_is_not_known_yet_stands_alone() -> None:
    assert money(Decimal(0), "") == "0.00"


@given(st.integers(0, 1 << 60))
def test_sizes_stay_short(count: int) -> None:
    number, unit = size(count).split(" ")
    assert unit in ("B", "KiB", "MiB", "GiB", "TiB")
    assert unit == "TiB" or float(number.replace(",", "")) <= 1024


def test_a_time_is_told_by_the_clock_on_the_regions_wall() -> None:
    assert local(T0, "Asia/Shanghai") == "30 Nov 21:00"
    assert local(T0.isoformat(), "America/Los_Angeles") == "30 Nov 05:00"
    assert (local(None, "UTC"), utc(None), utc(T0)) == ("-", "never", "30 Nov 13:00 UTC")


def planned(region: str, cost: str, handoff: dict[str, Any]) -> dict[str, Any]:
    return {
        "stage": "s", "region": region, "offer": "cpu", "market": "spot", "start": T0.isoformat(),
        "end": (T0 + timedelta(hours=2)).isoformat(), "work": "1700", "handoff": handoff, "cost": {"total": cost},
    }  # fmt: skip


def test_a_plan_is_a_row_per_leg_and_a_total() -> None:
    legs = [
        planned("a", "2.5", {"source": None, "bytes": 0}),
        planned("b", "1.5", {"source": "a", "bytes": 3 << 20}),
    ]
    first, second, total = plan_rows({"currency": "CNY", "cost": "4", "legs": legs}, ZONES)
    assert (first["start (local)"], first["end (local)"]) == ("30 Nov 21:00", "30 Nov 23:00")
    assert (first["handoff"], second["handoff"]) == ("-", "3.0 MiB from a")
    assert (first["work"], first["offer"], second["cost"]) == ("1,700", "cpu, spot", "1.50 CNY")
    assert (total["stage"], total["cost"]) == ("total", "4.00 CNY")
    assert list(first) == list(second) == list(total), "one set of columns"


def test_a_plan_that_fits_nowhere_is_a_total_without_an_amount() -> None:
    assert plan_rows({"currency": "CNY", "cost": None, "legs": []}, ZONES) == [{"stage": "total", "cost": "-"}]


def charge(leg: int, total: str, **more: str) -> dict[str, Any]:
    return {"leg": leg, "total": Decimal(total), "total_currency": "CNY", **more}


def test_legs_show_what_they_did_and_cost() -> None:
    ended = replace(
        a_leg("b"), number=1, state="ended", outcome="handed_off", from_step=0, to_step=30, started_at=T0, ended_at=T0
    )
    lost = replace(ended, number=2, outcome="lost", estimated=True)
    opened = replace(a_leg("b"), number=3, state="open")
    first, second, third = leg_rows([ended, lost, opened], [charge(1, "2"), charge(1, "0.5"), charge(2, "1")], ZONES)
    assert (first["steps"], first["outcome"], first["cost"]) == ("0 to 30", "handed off", "2.50 CNY")
    assert (second["outcome"], second["cost"]) == ("lost (estimated end)", "1.00 CNY")
    assert (third["start (local)"], third["steps"], third["outcome"], third["cost"]) == ("-", "-", "open", "-")


def test_a_bill_ends_with_its_total() -> None:
    leg = replace(a_leg("b"), number=1, state="ended", outcome="finished", from_step=0, to_step=3)
    *_, total = bill_rows([leg], [charge(1, "2"), charge(1, "0.5")], ZONES)
    assert (total["leg"], total["cost"]) == ("total", "2.50 CNY")
    assert bill_rows([leg], [], ZONES) == leg_rows([leg], [], ZONES), "nothing was charged: no total"


def test_costs_are_summed_by_what_one_asks_for_and_the_dearest_comes_first() -> None:
    charges = [charge(1, "1", region="a"), charge(2, "3", region="b"), charge(3, "1", region="a")]
    assert cost_rows(charges, ["region"]) == [
        {"region": "b", "cost": Decimal(3), "currency": "CNY"},
        {"region": "a", "cost": Decimal(2), "currency": "CNY"},
    ]
