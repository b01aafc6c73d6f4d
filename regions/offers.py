"""What an interval of an offer costs exactly, what the seller bills for it, how much there is, and when a term pays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction as Exact

from regions.curves import SERIES, UNKNOWN, Curve, NoPrice, Span, merged, own_price, price_curve, sold
from regions.days import unknown_years
from regions.errors import InternalError
from regions.model import Fraction, MarketName, Offer, Region, Reserved
from regions.money import Money, rounded

__all__ = [
    "SERIES", "UNKNOWN", "BreakEven", "Curve", "NoPrice", "Span", "billed", "break_even", "capacity", "currency_of",
    "merged", "price_curve", "price_of", "uncertain_years", "why_not",
]  # fmt: skip

_ONE = Decimal(1)
_MICROSECOND = timedelta(microseconds=1)


def price_of(
    region: Region, offer: Offer, market: MarketName, start: datetime, end: datetime, fraction: Fraction | None = None
) -> Money:
    """Return what an instance (or a fraction of one) costs from start until end.

    The seller's increments and minimum are applied once, to the whole interval; time billed beyond `end` costs what it
    costs then. The integral is exact and rounded once, to 1E-12. Raises NoPrice where the market has none.
    """
    if end < start:
        raise InternalError(f"an interval that ends ({end}) before it starts ({start})")
    until = start + billed(offer, end - start)
    listed = own_price(fraction, market) is not None
    spans = price_curve(region, offer, market, start, until, fraction if listed else None)
    amount = sum((Exact(span.price) * span.hours for span in spans), start=Exact(0))
    if fraction is not None and not listed:
        amount = amount * Exact(fraction.share) / offer.units
    return Money(rounded(amount), currency_of(region, offer, market, fraction))


def billed(offer: Offer, length: timedelta) -> timedelta:
    """Return the time the seller bills for a length: nothing for nothing, else the minimum, in whole increments."""
    if length <= timedelta(0):
        return timedelta(0)
    increment = offer.billing.increment
    return -(-max(length, offer.billing.minimum) // increment) * increment


def capacity(offer: Offer, market: MarketName) -> int:
    """Return how many instances may be had on a market: the quota, or what is held of a reservation; 0 is none."""
    found = offer.market(market)
    if found is None or offer.quota is None:
        return 0
    return min(found.held, offer.quota) if isinstance(found, Reserved) else offer.quota


def why_not(region: Region, offer: Offer, market: MarketName) -> str | None:
    """Return why an offer cannot be had on a market, in words for a plan's `rejected`, or None where it can."""
    try:
        sold(region, offer, market)
    except NoPrice as error:
        return error.message
    if offer.quota is None or capacity(offer, market) == 0:
        return f"{offer.id} in {region.id} has no quota now"
    return None


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From how many hours within its commitment a reserved term is cheaper than on demand."""

    term: timedelta
    cost: Money
    hours: Decimal | None
    """Running without a pause from `start`; None: on demand stays cheaper for the whole commitment."""


def break_even(region: Region, offer: Offer, start: datetime) -> tuple[BreakEven, ...]:
    """Return the break-even of an offer's reserved terms against its on-demand curve from an instant on.

    Raises NoPrice where either market has no price.
    """
    reserved = offer.markets.reserved
    if reserved is None or reserved.price_per_month is None:
        raise NoPrice(f"no price per month for {offer.id} in {region.id}")
    terms = [(reserved.commitment, _ONE)] + [(term.commitment, term.multiplier) for term in reserved.terms]
    month = timedelta(days=30)
    results = []
    for term, multiplier in terms:
        months = Exact(term // _MICROSECOND, month // _MICROSECOND)
        cost = Exact(reserved.price_per_month.amount) * Exact(multiplier) * months
        hours = _hours_until(price_curve(region, offer, "on_demand", start, start + term), cost)
        results.append(BreakEven(term, Money(rounded(cost), reserved.price_per_month.currency), hours))
    return tuple(results)


def uncertain_years(region: Region, start: datetime, end: datetime) -> tuple[int, ...]:
    """Return the years of [start, end) whose kinds of days are unknown and matter to the region's prices."""
    windows = region.tariff.windows
    if region.electricity.billing == "owned":
        windows += region.electricity.windows
    if not any(word in ("workday", "weekend") or word.startswith("holiday") for w in windows for word in w.days):
        return ()
    return unknown_years(region.holidays, start.year, end.year)


def currency_of(region: Region, offer: Offer, market: MarketName, fraction: Fraction | None = None) -> str:
    """Return the currency of an offer's prices on a market: the region's, unless the price carries its own."""
    found = offer.market(market)
    own = own_price(fraction, market)
    if own is None and found is not None:
        own = found.price_per_month if isinstance(found, Reserved) else found.price
    return own.currency if own is not None else (found.currency if found else None) or region.currency


def _hours_until(curve: Curve, cost: Exact) -> Decimal | None:
    paid, hours = Exact(0), Exact(0)
    for span in curve:
        here = Exact(span.price) * span.hours
        if here > 0 and paid + here >= cost:
            return rounded(hours + (cost - paid) / Exact(span.price))
        paid, hours = paid + here, hours + span.hours
    return None
