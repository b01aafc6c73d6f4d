"""Whole plans: no rule broken on random worlds, and the properties that any right planner has."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

from regions.errors import RequestError
from regions.planning.grid import Detail
from regions.planning.problem import Busy, CurrentLeg, Located, Plan, Refusal, Situation
from regions.planning.single import plan
from tests.regions.planning.checker import violations
from tests.regions.planning.worlds import MONDAY, catalog, link, offer, random_world, region, run

FRESH = Situation()
QUICK = Detail(slots=250, quanta=250, states=2_000_000)
"""Fine enough for rules to be broken, coarse enough for many worlds."""


@pytest.mark.parametrize("seed", range(16))
def test_no_plan_breaks_a_rule(seed: int) -> None:
    prices, request = random_world(seed)
    answer = plan(request, prices, FRESH, MONDAY, detail=QUICK)
    assert violations(answer, request, prices, FRESH, MONDAY) == []
    assert answer == plan(request, prices, FRESH, MONDAY, detail=QUICK), "the same question twice"


@pytest.mark.parametrize("seed", range(8))
def test_going_on_from_the_middle_of_a_leg_keeps_the_plan(seed: int) -> None:
    prices, request = random_world(seed)
    first = plan(request, prices, FRESH, MONDAY, detail=QUICK)
    if not first.feasible:
        pytest.skip("does not fit")
    leg = first.legs[0]
    now = leg.start + timedelta(seconds=leg.startup) + (leg.end - leg.start - timedelta(seconds=leg.startup)) / 2
    now = now.replace(microsecond=0)
    done = (
        Fraction((now - leg.start) // timedelta(seconds=1) - leg.startup)
        * leg.work
        / (Fraction((leg.end - leg.start) // timedelta(seconds=1)) - leg.startup)
    )
    current = CurrentLeg(leg.stage, leg.region, leg.offer, leg.market, leg.width, leg.start, leg.end)
    situation = Situation(progress={leg.stage: done}, leg=current, submitted=MONDAY, revision=2)
    again = plan(request, prices, situation, now, detail=QUICK)
    assert violations(again, request, prices, situation, now) == []
    assert again.legs[0].site == leg.site and again.revision == 2
    assert [item.region for item in again.legs] == [item.region for item in first.legs]


@pytest.mark.parametrize("seed", range(5))
def test_a_lifted_rule_never_makes_a_plan_dearer(seed: int) -> None:
    prices, request = random_world(seed)
    before = _cost(plan(request, prices, FRESH, MONDAY, detail=QUICK))
    open_data = request.dataset.model_copy(update={"may_leave": ("here", "there")}) if request.dataset else None
    for eased in ({"within": timedelta(hours=60)}, {"dataset": open_data}):
        after = _cost(plan(request.model_copy(update=eased), prices, FRESH, MONDAY, detail=QUICK))
        # A longer horizon has a coarser grid; what that may cost is one slot's rent.
        assert after <= before * Decimal("1.01")


def test_prices_twice_as_high_cost_twice_as_much() -> None:
    cheap = plan(run(), catalog(region("a", offer("1.50")), region("b", offer("1.40"))), FRESH, MONDAY)
    dear = plan(run(), catalog(region("a", offer("3.00")), region("b", offer("2.80"))), FRESH, MONDAY)
    assert cheap.cost is not None and dear.cost == 2 * cheap.cost


def test_names_of_regions_do_not_matter() -> None:
    one = plan(run(), catalog(region("a", offer("2")), region("b", offer("1"))), FRESH, MONDAY)
    other = plan(run(), catalog(region("a", offer("2")), region("z", offer("1"))), FRESH, MONDAY)
    assert one.cost == other.cost == 5


def test_a_move_that_does_not_pay_is_not_made() -> None:
    prices = catalog(region("a", offer("4")), region("b", offer("3.999")), links=(link("a", "b", "0.05"),))
    answer = plan(
        run(dataset={"url": "x", "size": "100 GB"}, stage={"inputs": {"data": "dataset"}}), prices, FRESH, MONDAY
    )
    assert [leg.region for leg in answer.legs] == ["a"]
    assert [(item.region, item.would_cost) for item in answer.rejected] == [("b", Decimal("24.995"))]


def test_capacity_taken_by_others_is_waited_for() -> None:
    prices = catalog(region("a", offer("4", quota=1)))
    busy = (Busy("a", "gpu", Fraction(1), MONDAY, MONDAY + timedelta(hours=3)),)
    answer = plan(run(), prices, replace(FRESH, busy=busy), MONDAY)
    assert answer.legs[0].start == MONDAY + timedelta(hours=3)


def test_a_region_that_refused_is_left_alone_for_a_while() -> None:
    prices = catalog(region("a", offer("4")), region("b", offer("3")))
    refusal = Refusal("b", "gpu", MONDAY + timedelta(days=30), "no capacity")
    answer = plan(run(), prices, replace(FRESH, refusals=(refusal,)), MONDAY)
    assert [leg.region for leg in answer.legs] == ["a"]
    assert "no capacity" in next(item.reason for item in answer.rejected if item.region == "b")


def test_a_deadline_that_cannot_be_met_says_what_could() -> None:
    answer = plan(run(within="4 h"), catalog(region("a")), FRESH, MONDAY)
    assert not answer.feasible and answer.legs == ()
    assert answer.binding is not None and answer.binding.startswith("deadline")
    assert answer.nearest[0].finish == MONDAY + timedelta(hours=5) and answer.nearest[0].cost == 20


def test_a_budget_that_is_too_small_says_what_would_do() -> None:
    answer = plan(run(budget={"amount": "19", "currency": "USD"}), catalog(region("a")), FRESH, MONDAY)
    assert not answer.feasible and answer.binding is not None and answer.binding.startswith("budget")
    assert answer.nearest[0].cost == 20 and "20" in answer.nearest[0].change


def test_residency_that_stands_in_the_way_is_named() -> None:
    away = region("b", residency={"jurisdiction": "there", "export_allowed": True})
    prices = catalog(region("a", offer(quota=None)), away, links=(link("a", "b"),))
    request = run(dataset={"url": "x", "size": "1 GB"}, stage={"inputs": {"data": "dataset"}})
    answer = plan(request, prices, FRESH, MONDAY, detail=QUICK)
    assert not answer.feasible
    assert any("residency" in item.reason for item in answer.rejected if item.region == "b")
    assert any("residency" in wish.change and "b" in wish.change for wish in answer.nearest)


def test_the_soonest_plan_within_a_budget_is_another_point_of_the_same_frontier() -> None:
    night = {"windows": [{"start": "06:00", "end": "12:00", "multiplier": "0.5", "basis": "contract"}]}
    prices = catalog(region("a", offer("4"), tariff=night))
    cheap = plan(run(), prices, FRESH, MONDAY)
    soon = plan(run(objective="time", budget={"amount": "30", "currency": "USD"}), prices, FRESH, MONDAY)
    assert cheap.cost == 10 and soon.cost == 20
    assert soon.finish == MONDAY + timedelta(hours=5)
    assert {point.cost for point in soon.frontier} == {point.cost for point in cheap.frontier} >= {10, 20}


def test_a_run_that_is_done_needs_no_legs() -> None:
    answer = plan(run(), catalog(region("a")), Situation(progress={"train": Fraction(500)}), MONDAY)
    assert answer.feasible and answer.legs == () and answer.cost == 0


def test_a_stage_that_reads_what_the_one_before_made_stays_with_it() -> None:
    stages = [
        {"id": "prepare", "kind": "preprocess", "command": ["x"], "outputs": [{"name": "tokens", "size": "500 GB"}],
         "work": {"amount": 100}, "accelerators": {"GPU": {"rate": 100}}},
        {"id": "train", "kind": "pretrain", "command": ["x"], "inputs": {"data": "prepare.tokens"},
         "work": {"amount": 200}, "accelerators": {"GPU": {"rate": 100}}},
    ]  # fmt: skip
    links = (link("a", "b", "0.05", "10 Gbit/s"), link("b", "a", "0.05", "10 Gbit/s"))
    prices = catalog(region("a", offer("2")), region("b", offer("1")), links=links)
    answer = plan(run(stages=stages), prices, FRESH, MONDAY)
    assert [(leg.stage, leg.region) for leg in answer.legs] == [("prepare", "b"), ("train", "b")]
    assert answer.cost == 3


def test_the_checkpoint_is_carried_and_paid_for() -> None:
    prices = catalog(region("a", offer("4")), region("b", offer("1")), links=(link("a", "b", "0.1"),))
    situation = Situation(
        progress={"train": Fraction(100)}, checkpoint=Located("a", 10**10), submitted=MONDAY, revision=3
    )
    answer = plan(run(checkpoint={"size": "10 GB"}), prices, situation, MONDAY)
    assert [leg.region for leg in answer.legs] == ["b"]
    assert answer.legs[0].handoff.bytes == 10**10 and answer.legs[0].handoff.seconds == 80
    assert answer.cost == 5


def test_a_width_with_scaling_is_chosen_when_time_is_short() -> None:
    stage = {"width": {"min": 1, "max": 4, "scaling": {1: "1.0", 2: "0.9", 4: "0.7"}}}
    relaxed = plan(run(stage=stage), catalog(region("a")), FRESH, MONDAY)
    hurried = plan(run(stage=stage, within="2 h"), catalog(region("a")), FRESH, MONDAY)
    assert {leg.width for leg in relaxed.legs} == {1} and relaxed.cost == 20
    assert 4 in {leg.width for leg in hurried.legs} and hurried.feasible


def test_expected_interruptions_count_into_a_spot_price() -> None:
    spot = {"price": "3.9", "basis": "list", "interruption_per_hour": "0.5"}
    both = offer("4")
    both["markets"]["spot"] = spot
    both["startup"] = "6 min"
    answer = plan(run(stage={"markets": ["on_demand", "spot"]}), catalog(region("a", both)), FRESH, MONDAY)
    assert {leg.market for leg in answer.legs} == {"on_demand"}
    spot["price"] = "1"
    answer = plan(run(stage={"markets": ["on_demand", "spot"]}), catalog(region("a", both)), FRESH, MONDAY)
    assert {leg.market for leg in answer.legs} == {"spot"}


def test_a_region_the_catalog_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="atlantis"):
        plan(run(regions={"home": "atlantis"}), catalog(region("a")), FRESH, MONDAY)


def test_a_dataset_of_unknown_size_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match=r"dataset\.size"):
        plan(run(dataset={"url": "x"}, stage={"inputs": {"d": "dataset"}}), catalog(region("a")), FRESH, MONDAY)


def _cost(answer: Plan) -> Decimal:
    return answer.cost if answer.cost is not None else Decimal("Infinity")


def test_more_regions_than_replicas_can_be_remembered_for_still_give_a_checked_plan() -> None:
    names = "abcdefg"
    prices = catalog(
        *(region(name, offer(f"{4 - index * 0.3:.2f}")) for index, name in enumerate(names)),
        links=tuple(link(source, target, "0.001") for source in names for target in names if source != target),
    )
    request = run(dataset={"url": "x", "size": "10 GB"}, stage={"inputs": {"data": "dataset"}})
    answer = plan(request, prices, FRESH, MONDAY, detail=QUICK)
    assert violations(answer, request, prices, FRESH, MONDAY) == []
    assert [leg.region for leg in answer.legs] == ["g"]
    assert answer.lower_bound is not None and answer.cost is not None
    assert Decimal("0.95") * answer.cost < answer.lower_bound <= answer.cost
