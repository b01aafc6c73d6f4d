"""P36: 14.00 CNY and 2.00 USD are never 16.00; with a dated rate they are compared, and the rate is named."""

from __future__ import annotations

import pytest

from regions.money import CurrencyError
from regions.planning.problem import Situation
from regions.planning.single import plan
from tests.regions.planning.worlds import MONDAY, catalog, offer, region, run

CHINA = region("a", offer("14.00"), currency="CNY")
AMERICA = region("b", offer("2.00"), currency="USD")
BUDGET = {"amount": "100", "currency": "USD"}


def test_without_a_rate_they_are_not_compared() -> None:
    with pytest.raises(CurrencyError, match="no dated rate between"):
        plan(run(budget=BUDGET, stage={"work": {"amount": 100}}), catalog(CHINA, AMERICA), Situation(), MONDAY)


def test_with_a_rate_the_cheaper_one_is_taken_and_the_rate_is_named() -> None:
    rate = {"from": "USD", "to": "CNY", "rate": "7.20", "as_of": "2026-11-01", "basis": "quote", "source": "bank"}
    prices = catalog(CHINA, AMERICA, rates=(rate,))
    answer = plan(run(budget=BUDGET, stage={"work": {"amount": 100}}), prices, Situation(), MONDAY)
    assert [leg.region for leg in answer.legs] == ["a"]
    assert answer.cost is not None and f"{answer.cost:.2f}" == "1.94" and answer.currency == "USD"
    assert any("7.2" in warning and "2026-11-01" in warning for warning in answer.warnings)
