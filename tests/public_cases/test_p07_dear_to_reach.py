"""P07: the cheap region that is dear to reach. A holds the input at 4.00, B asks 3.00; the way costs 0.05 per GB."""

from __future__ import annotations

from decimal import Decimal

from regions.planning.problem import Plan, Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, link, offer, region, run


def _planned(size: str) -> Plan:
    eight = {"accelerator": "GPU", "count": 8}
    prices = catalog(
        region("a", offer("32.00", **eight)),
        region("b", offer("24.00", **eight)),
        links=(link("a", "b", "0.05", "1 Gbit/s"),),
    )
    stage = {"work": {"amount": 4000}, "width": {"min": 8, "max": 8}, "inputs": {"data": "dataset"}}
    request = run(within="6 h", stage=stage, dataset={"url": "x", "size": size, "may_leave": ["here"]})
    return plan(request, prices, Situation(), MONDAY)


def test_100_gb_are_worth_the_way() -> None:
    answer = _planned("100 GB")
    assert [leg.region for leg in answer.legs] == ["b"]
    assert answer.cost == 125
    assert answer.legs[0].cost.transfer == 5
    assert [item.would_cost for item in answer.rejected if item.region == "a"] == [Decimal(160)]


def test_2000_gb_are_not_and_would_not_fit() -> None:
    answer = _planned("2000 GB")
    assert [leg.region for leg in answer.legs] == ["a"] and answer.cost == 160
    lost = next(item for item in answer.rejected if item.region == "b")
    assert lost.would_cost == 220
    assert "4.4 h of transfer + 5.0 h" in lost.reason and "6.0 h" in lost.reason
