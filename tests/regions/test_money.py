from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.money import CurrencyError, FxTable, Money, Rate, plain, rounded, total


def rate(source: str, target: str, amount: str, day: str = "2026-11-30") -> Rate:
    return Rate(source, target, Decimal(amount), date.fromisoformat(day), "list", "test")


def test_different_currencies_never_meet_by_themselves() -> None:
    yuan, dollar = Money(Decimal(14), "CNY"), Money(Decimal(2), "USD")
    for meeting in (lambda: yuan + dollar, lambda: yuan - dollar, lambda: yuan < dollar, lambda: total([yuan], "USD")):
        with pytest.raises(CurrencyError, match="dated rate"):
            meeting()


def test_a_rate_serves_both_ways_and_through_one_third() -> None:
    table = FxTable((rate("USD", "CNY", "7.20"), rate("EUR", "CNY", "8.00")))
    assert table.convert(Money(Decimal("7.20"), "CNY"), "USD") == Money(Decimal(1), "USD")
    assert table.convert(Money(Decimal(9), "EUR"), "USD") == Money(Decimal(10), "USD")
    assert [each.source for each in table.path("EUR", "USD")] == ["EUR", "USD"]
    with pytest.raises(CurrencyError, match="JPY"):
        table.convert(Money(Decimal(1), "USD"), "JPY")


def test_the_newest_rate_not_after_the_day_is_used() -> None:
    table = FxTable((rate("USD", "CNY", "7.0", "2026-01-01"), rate("USD", "CNY", "7.2", "2026-06-01")))
    dollar = Money(Decimal(1), "USD")
    assert table.convert(dollar, "CNY", date(2026, 3, 1)).amount == Decimal("7.0")
    assert table.convert(dollar, "CNY", date(2026, 6, 1)).amount == Decimal("7.2")
    assert table.convert(dollar, "CNY").amount == Decimal("7.2")
    assert table.convert(dollar, "CNY", date(2025, 1, 1)).amount == Decimal("7.0"), "the oldest, with its date to see"
    assert "2026-06-01" in str(table.path("USD", "CNY")[0])


@pytest.mark.parametrize(
    ("amount", "text"),
    [("277.933", "277.933"), ("3.00", "3"), ("0", "0"), ("-0.0", "0"), ("1E+2", "100"), ("1E-12", "0.000000000001")],
)
def test_money_as_text_has_no_exponent(amount: str, text: str) -> None:
    assert plain(Decimal(amount)) == text


@given(st.fractions(min_value=0, max_value=10**9))
def test_rounding_is_off_by_half_a_place_at_most(amount: Fraction) -> None:
    assert abs(Fraction(rounded(amount)) - amount) <= Fraction(1, 2 * 10**12)


def test_sums_are_exact() -> None:
    tenth = Money(Decimal("0.1"), "EUR")
    assert total([tenth] * 3, "EUR") == Money(Decimal("0.3"), "EUR")
    assert tenth * 3 - Money(Decimal("0.3"), "EUR") == Money(Decimal("0.0"), "EUR")
