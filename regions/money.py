"""Amounts of money, never added to, compared with or shown as another currency without a dated rate on record.

Decimal to the end; an amount is rounded once, by `price_of`, to `PLACES`. There is no built-in rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from regions.errors import PlanError

EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
"""The one context of money arithmetic: wide enough that sums and products of real prices are never rounded."""

PLACES = Decimal("1E-12")
"""To what a computed amount is rounded, once: finer than any currency, so that sums of charges stay exact."""


class CurrencyError(PlanError):
    """Two currencies meet and no dated rate joins them."""

    kind = "no-rate"


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency (ISO 4217). Adding or comparing different currencies raises CurrencyError."""

    amount: Decimal
    currency: str

    def __add__(self, other: Money) -> Money:
        """Return the sum."""
        return Money(EXACT.add(self.amount, self._same(other)), self.currency)

    def __sub__(self, other: Money) -> Money:
        """Return the difference."""
        return Money(EXACT.subtract(self.amount, self._same(other)), self.currency)

    def __mul__(self, factor: Decimal | int) -> Money:
        """Return the amount so many times."""
        return Money(EXACT.multiply(self.amount, Decimal(factor)), self.currency)

    def __neg__(self) -> Money:
        """Return the amount with the other sign."""
        return Money(-self.amount, self.currency)

    def __lt__(self, other: Money) -> bool:
        """Tell whether this is the smaller amount."""
        return self.amount < self._same(other)

    def __le__(self, other: Money) -> bool:
        """Tell whether this is not the larger amount."""
        return self.amount <= self._same(other)

    def __str__(self) -> str:
        return f"{plain(self.amount)} {self.currency}"

    def _same(self, other: Money) -> Decimal:
        if other.currency != self.currency:
            raise CurrencyError(
                f"{self} and {other} cannot be added or compared without a dated rate between them",
                currencies=(self.currency, other.currency),
            )
        return other.amount


def total(amounts: Iterable[Money], currency: str) -> Money:
    """Return the sum of amounts that are all in that currency."""
    return sum(amounts, start=Money(Decimal(0), currency))


def plain(amount: Decimal) -> str:
    """Return a decimal as text without exponent or trailing zeros, as money stands in JSON ("277.933", "0")."""
    text = format(amount, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def rounded(amount: Fraction) -> Decimal:
    """Return an exact amount as a decimal of at most `PLACES`, half to even."""
    quotient = EXACT.divide(Decimal(amount.numerator), Decimal(amount.denominator))
    return quotient.quantize(PLACES, context=EXACT).normalize(EXACT)


@dataclass(frozen=True, slots=True)
class Rate:
    """What one unit of `source` bought in units of `target` on a date, and who says so."""

    source: str
    target: str
    rate: Decimal
    as_of: date
    basis: str
    origin: str

    def __str__(self) -> str:
        return f"1 {self.source} = {plain(self.rate)} {self.target} of {self.as_of} ({self.basis}: {self.origin})"


@dataclass(frozen=True, slots=True)
class FxTable:
    """Dated rates. A pair is joined directly, backwards, or through one third currency; else not at all."""

    rates: tuple[Rate, ...] = ()

    def convert(self, money: Money, currency: str, on: date | None = None) -> Money:
        """Return the amount in another currency, at the newest rates not after `on`; CurrencyError if none joins."""
        if money.currency == currency:
            return money
        factor = Fraction(1)
        here = money.currency
        for rate in self.path(money.currency, currency, on):
            forward = rate.source == here
            factor = factor * Fraction(rate.rate) if forward else factor / Fraction(rate.rate)
            here = rate.target if forward else rate.source
        return Money(rounded(Fraction(money.amount) * factor), currency)

    def path(self, source: str, target: str, on: date | None = None) -> tuple[Rate, ...]:
        """Return the rates a conversion uses (for reports: they name rate and date); CurrencyError if none joins."""
        if source == target:
            return ()
        direct = self._between(source, target, on)
        if direct is not None:
            return (direct,)
        for middle in sorted({rate.source for rate in self.rates} | {rate.target for rate in self.rates}):
            first, second = self._between(source, middle, on), self._between(middle, target, on)
            if first is not None and second is not None:
                return (first, second)
        raise CurrencyError(
            f"no dated rate between {source} and {target}: add one to fx.yaml, or keep them apart",
            currencies=(source, target),
        )

    def _between(self, one: str, other: str, on: date | None) -> Rate | None:
        """Return the newest rate of a pair that is not after `on`, else the oldest one there is."""
        rates = [rate for rate in self.rates if {rate.source, rate.target} == {one, other}]
        known = [rate for rate in rates if on is None or rate.as_of <= on]
        if known:
            return max(known, key=lambda rate: rate.as_of)
        return min(rates, key=lambda rate: rate.as_of, default=None)
