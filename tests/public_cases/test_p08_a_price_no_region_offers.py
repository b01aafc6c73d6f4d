"""P08: every total is the sum of the lines of one region, never of minima taken from several."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from regions.planning.problem import Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run

GB_MONTH_PER_GB_HOUR = 720


def _place(name: str, gpu: str, gigabyte_hour: str) -> dict[str, Any]:
    price = str(Decimal(gigabyte_hour) * GB_MONTH_PER_GB_HOUR)
    classes = {"standard": {"price_per_gb_month": price}}
    return region(name, offer(gpu), storage={"cold": {"url": "file:///tmp/x", "classes": classes}})


def test_the_estimate_is_one_region_s() -> None:
    prices = catalog(_place("a", "2.00", "3.00"), _place("b", "2.50", "1.00"))
    wish = {"size": "1 GB", "keep": {"last": 1}}
    answer = plan(run(regions={}, stage={"work": {"amount": 100}}, checkpoint=wish), prices, Situation(), MONDAY)
    assert {leg.region for leg in answer.legs} == {"b"}
    assert answer.cost == Decimal("3.5")
    assert answer.cost == sum(leg.cost.compute + leg.cost.storage for leg in answer.legs)
    assert [(item.region, item.would_cost) for item in answer.rejected] == [("a", Decimal(5))]
