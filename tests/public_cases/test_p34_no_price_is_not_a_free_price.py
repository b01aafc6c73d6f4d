"""P34: a region without a price is not taken, by name; an explicit "0" is free."""

from __future__ import annotations

import pytest

from regions.planning.problem import Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run


@pytest.mark.parametrize("absent", [None, ""])
def test_an_absent_price_closes_the_region(absent: str | None) -> None:
    prices = catalog(region("a", offer("4")), region("b", offer(absent)))
    answer = plan(run(), prices, Situation(), MONDAY)
    assert [leg.region for leg in answer.legs] == ["a"]
    assert any(item.region == "b" and "no price" in item.reason for item in answer.rejected)


def test_a_market_left_out_closes_the_region() -> None:
    prices = catalog(region("a", offer("4")), region("b", offer(markets={})))
    answer = plan(run(), prices, Situation(), MONDAY)
    assert any(item.region == "b" and "no price" in item.reason for item in answer.rejected)


def test_nothing_is_a_price() -> None:
    answer = plan(run(), catalog(region("a", offer("4")), region("b", offer("0"))), Situation(), MONDAY)
    assert [leg.region for leg in answer.legs] == ["b"] and answer.cost == 0
