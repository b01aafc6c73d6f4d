"""Many runs on shared capacity: nothing is taken twice, and the certificate holds."""

from __future__ import annotations

import random
from datetime import timedelta
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest

from regions.errors import RequestError
from regions.planning.grid import Detail
from regions.planning.joint import Effort, JointPlan, Wanted, insert, plan_many
from regions.planning.sharing import Use
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run

SMALL = Effort(price_steps=12, rounds=6, ruin=3, detail=Detail(slots=48, quanta=250, states=500_000))
NIGHT = {"windows": [{"start": "00:00", "end": "08:00", "multiplier": "0.5", "basis": "contract"}]}


def _runs(count: int, **changes: Any) -> list[Wanted]:
    return [Wanted(run(id=f"r{number}", **changes)) for number in range(count)]


def _overtaken(plan: JointPlan, quota: int) -> list[str]:
    """Return the places and instants at which more instances are planned than there are."""
    legs = [leg for mine in plan.legs.values() for leg in mine]
    return [
        f"{leg.region} at {leg.start}"
        for leg in legs
        if sum(other.region == leg.region and other.start <= leg.start < other.end for other in legs) > quota
    ]


@pytest.mark.parametrize("seed", range(3))
def test_no_instance_is_promised_twice_and_the_bound_is_below(seed: int) -> None:
    rng = random.Random(seed)
    prices = catalog(
        region("a", offer("4", quota=2, startup="5 min"), tariff=NIGHT),
        region("b", offer("5", quota=1, startup="5 min")),
    )
    wanted = [Wanted(run(id=f"r{i}", stage={"work": {"amount": rng.randint(100, 600)}})) for i in range(5)]
    answer = plan_many(wanted, prices, MONDAY, random.Random(seed), SMALL)
    assert answer.unplaced == () and _overtaken(answer, 2) == []
    assert answer.lower_bound is not None and answer.lower_bound <= answer.cost
    assert answer.gap is not None and answer.gap < Fraction(15, 100)
    assert answer == plan_many(wanted, prices, MONDAY, random.Random(seed), SMALL)


def test_it_is_no_dearer_than_the_best_order_of_insertion() -> None:
    prices = catalog(region("a", offer("4", quota=1), tariff=NIGHT))
    wanted = [Wanted(run(id=f"r{hours}", stage={"work": {"amount": 100 * hours}})) for hours in (2, 4, 5)]
    answer = plan_many(wanted, prices, MONDAY, random.Random(0), SMALL)
    costs = []
    for order in permutations(wanted):
        uses: list[Use] = []
        cost = 0
        for item in order:
            legs = insert(item, uses, prices, MONDAY, SMALL.detail)
            cost += sum(leg.cost.total for leg in legs)
            uses += [
                Use(("a", "gpu"), Fraction(1), int(leg.start.timestamp()), int(leg.end.timestamp())) for leg in legs
            ]
        costs.append(cost)
    assert answer.cost <= min(costs)


def test_a_core_run_is_placed_before_a_normal_one() -> None:
    prices = catalog(region("a", offer("4", quota=1)))
    wanted = [Wanted(run(id="low", within="6 h")), Wanted(run(id="high", within="6 h", priority="core"))]
    answer = plan_many(wanted, prices, MONDAY, random.Random(0), SMALL)
    assert set(answer.legs) == {"high"} and answer.unplaced == ("low",) and answer.lower_bound is None


def test_a_run_that_waited_long_enough_goes_first() -> None:
    prices = catalog(region("a", offer("4", quota=1)))
    patient = Wanted(run(id="patient", within="6 h"), waiting_since=MONDAY - timedelta(days=365))
    answer = plan_many(
        [Wanted(run(id="young", within="6 h", priority="important")), patient], prices, MONDAY, random.Random(0), SMALL
    )
    assert set(answer.legs) == {"patient"}


def test_room_for_all_needs_no_tolls_and_costs_what_each_costs_alone() -> None:
    prices = catalog(region("a", offer("4", quota=8)))
    answer = plan_many(_runs(3), prices, MONDAY, random.Random(0), SMALL)
    assert answer.tolls == () and answer.cost == 60


def test_runs_in_different_currencies_are_refused() -> None:
    prices = catalog(region("a"), region("b", currency="CNY"), rates=())
    alone = [
        Wanted(run(id="usd", regions={"home": "a", "allow": ["a"]})),
        Wanted(run(id="cny", regions={"home": "b", "allow": ["b"]})),
    ]
    with pytest.raises(RequestError, match="cny is planned in CNY"):
        plan_many(alone, prices, MONDAY, random.Random(0), SMALL)
