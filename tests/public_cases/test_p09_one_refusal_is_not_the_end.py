"""P09: a refused launch leads to the next offer; when all refuse, the run waits, and the reasons are named."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from regions.planning.problem import Refusal, Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run

PRICES = catalog(region("a", offer("1")), region("b", offer("2")), region("c", offer("3")))


def _refused(*names: str, until: datetime) -> Situation:
    refusals = tuple(Refusal(name, "gpu", until, f"{name} has no capacity") for name in names)
    return replace(Situation(submitted=MONDAY), refusals=refusals)


def test_the_next_offer_is_taken_and_the_reason_stays_visible() -> None:
    assert [leg.region for leg in plan(run(), PRICES, Situation(), MONDAY).legs] == ["a"]
    answer = plan(run(), PRICES, _refused("a", until=MONDAY + timedelta(days=9)), MONDAY)
    assert [leg.region for leg in answer.legs] == ["b"]
    assert any(item.region == "a" and "a has no capacity" in item.reason for item in answer.rejected)
    assert answer.cost == 10


def test_when_all_refuse_the_run_waits_within_its_deadline() -> None:
    soon = MONDAY + timedelta(hours=2)
    answer = plan(run(within="3 d"), PRICES, _refused("a", "b", "c", until=soon), MONDAY)
    assert answer.feasible and answer.legs[0].start >= soon


def test_when_nothing_opens_in_time_all_reasons_are_named() -> None:
    answer = plan(run(within="3 d"), PRICES, _refused("a", "b", "c", until=MONDAY + timedelta(days=90)), MONDAY)
    assert not answer.feasible
    reasons = " ".join(item.reason for item in answer.rejected)
    assert all(f"{name} has no capacity" in reasons for name in "abc")
