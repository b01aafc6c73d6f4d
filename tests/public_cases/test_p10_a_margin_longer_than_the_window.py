"""P10: a stage that fits its window runs once and is done; a margin longer than the window is refused in numbers."""

from __future__ import annotations

from regions.planning.problem import Plan, Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run


def _planned(**margin: str) -> Plan:
    window = {"name": "short", "start": "02:00", "end": "02:08", "multiplier": "0.5", "basis": "contract"}
    prices = catalog(region("a", offer("6.00"), tariff={"windows": [window]}))
    stage = {"work": {"amount": 5}, "accelerators": {"GPU": {"rate": 60}}, "windows": ["short"]}
    return plan(run(stage=stage, **margin), prices, Situation(), MONDAY)


def test_it_runs_once_and_completes() -> None:
    answer = _planned(margin="1 min")
    assert answer.feasible and len(answer.legs) == 1
    leg = answer.legs[0]
    assert (leg.end - leg.start).total_seconds() == 300 and leg.start.hour == 2 and leg.end.minute <= 7
    assert answer.cost == leg.cost.compute and round(answer.cost, 6) == round(answer.cost.__class__("0.25"), 6)


def test_a_margin_of_ten_minutes_is_refused_with_both_numbers() -> None:
    answer = _planned(margin="10 min")
    assert not answer.feasible and answer.legs == ()
    reason = next(item.reason for item in answer.rejected if item.region == "a")
    assert "10 min" in reason and "8 min" in reason
