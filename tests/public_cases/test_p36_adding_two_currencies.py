"""P36: two currencies are never added or compared without a dated rate, and the plan names the rate it used."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from regions.errors import NightrelayError
from regions.money import CurrencyError, Money, total
from tests.regions.files import catalog, text
from tests.regions.wishes import planned

LINKS = "default: {price_per_gb: '0', currency: USD, bandwidth: 1 Gbit/s, basis: list, source: test}\n"
FX = "rates:\n  - {from: USD, to: CNY, rate: '7.20', as_of: 2026-11-30, basis: quote, source: a bank}\n"
A, B = text("a", currency="CNY", price='"14.00"'), text("b", currency="USD", price='"2.00"')


def test_without_a_rate_there_is_no_comparison(tmp_path: Path) -> None:
    loaded = catalog(tmp_path, a=A, b=B, links=LINKS)
    try:
        plan = planned(loaded, "2026-12-01T00:00Z", 60, home="a")
    except NightrelayError as error:
        assert "rate" in error.message
    else:
        assert {leg.region for leg in plan.legs} == {"a"}
        [reason] = [rejection.reason for rejection in plan.rejected if rejection.region == "b"]
        assert "rate" in reason
        assert "16" not in json.dumps(plan.document(), default=str).split('"cost"')[1][:20]
    with pytest.raises(CurrencyError, match="dated rate"):
        total([Money(Decimal(14), "CNY"), Money(Decimal(2), "USD")], "CNY")


@pytest.mark.parametrize("home", ["a", "b"])
def test_with_a_dated_rate_a_is_cheaper_and_the_rate_is_named(tmp_path: Path, home: str) -> None:
    loaded = catalog(tmp_path, a=A, b=B, links=LINKS, fx=FX)
    plan = planned(loaded, "2026-12-01T00:00Z", 60, home=home)
    assert [leg.region for leg in plan.legs] == ["a"]
    in_dollars = loaded.fx.convert(Money(Decimal(14), "CNY"), "USD")
    assert round(in_dollars.amount, 2) == Decimal("1.94")
    assert round(plan.cost, 2) == (Decimal("14.00") if home == "a" else Decimal("1.94"))
    [rate] = loaded.fx.path("CNY", "USD")
    assert str(rate) == "1 USD = 7.2 CNY of 2026-11-30 (quote: a bank)"
    told = json.dumps(plan.document(), default=str)
    assert "7.2" in told
    assert "2026-11-30" in told
