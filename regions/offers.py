"""What an offer costs, when: its curve over UTC time, and the exact price of an interval.

A curve is per whole instance and hour. Where a day's kind is not known yet (a year whose make-up days are unpublished)
the dearest price that may hold stands there, with basis "unknown": a bound, not a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction as Exact

from regions.calendar import NONE, Outcomes, timetable
from regions.days import unknown_years
from regions.errors import InternalError, PlanError
from regions.fields import BASES
from regions.model import Electricity, Fraction, Market, MarketName, Offer, Region, Reserved, Window
from regions.money import EXACT, Money, rounded
from regions.series import Series

UNKNOWN = "unknown"
"""The basis of a price that depends on days not published yet."""
SERIES = "series"
"""The window's name where a price series holds."""
_ONE = Decimal(1)
_ZERO = Decimal(0)
_HOUR = 3_600_000_000  # microseconds
_MICROSECOND = timedelta(microseconds=1)


class NoPrice(PlanError):
    """The offer is not sold so, or nobody wrote down for how much. Absent is not zero."""

    kind = "no-price"


@dataclass(frozen=True, slots=True)
class Span:
    """UTC time [start, end) at one price per whole instance and hour. `electricity` is the part of it that is power."""

    start: datetime
    end: datetime
    price: Decimal
    window: str | None
    basis: str
    electricity: Decimal = _ZERO

    @property
    def hours(self) -> Exact:
        """Return the span's exact length in hours."""
        return Exact((self.end - self.start) // _MICROSECOND, _HOUR)


Curve = tuple[Span, ...]
"""Contiguous spans that cover the asked time exactly; neighbours differ."""


def price_curve(
    region: Region, offer: Offer, market: MarketName, start: datetime, end: datetime, fraction: Fraction | None = None
) -> Curve:
    """Return the curve of an offer on a market over [start, end).

    Raises NoPrice where the market has none. With a fraction, prices are its share's (rounded to 1E-12), or its own.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    sold = _sold(region, offer, market)
    if start >= end:
        return ()
    if isinstance(sold, Reserved):
        return (Span(start, end, _ZERO, None, _basis(sold), _ZERO),)
    if fraction is not None and fraction.price is not None:
        sold = sold.model_copy(update={"price": fraction.price, "series": None})
        return _compute(region, sold, market, None, start, end)
    spans = _compute(region, sold, market, sold.prices, start, end)
    if region.electricity.billing == "owned":
        spans = _with_power(spans, region, offer, start, end)
    if fraction is not None:
        share = Exact(fraction.share) / offer.units
        spans = tuple(
            replace(
                span, price=rounded(Exact(span.price) * share), electricity=rounded(Exact(span.electricity) * share)
            )
            for span in spans
        )
    return spans


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
    whole = fraction is None or fraction.price is not None
    spans = price_curve(region, offer, market, start, until, None if not whole else fraction)
    amount = sum((Exact(span.price) * span.hours for span in spans), start=Exact(0))
    if fraction is not None and not whole:
        amount = amount * Exact(fraction.share) / offer.units
    return Money(rounded(amount), region.currency)


def billed(offer: Offer, length: timedelta) -> timedelta:
    """Return the time the seller bills for a length: nothing for nothing, else the minimum, in whole increments."""
    if length <= timedelta(0):
        return timedelta(0)
    increment = offer.billing.increment
    return -(-max(length, offer.billing.minimum) // increment) * increment


def capacity(offer: Offer, market: MarketName) -> int:
    """Return how many instances may be had on a market: the quota, or what is held of a reservation; 0 is none."""
    sold = offer.market(market)
    if sold is None or offer.quota is None:
        return 0
    return min(sold.held, offer.quota) if isinstance(sold, Reserved) else offer.quota


def why_not(region: Region, offer: Offer, market: MarketName) -> str | None:
    """Return why an offer cannot be had on a market, in words for a plan's `rejected`, or None where it can."""
    try:
        _sold(region, offer, market)
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


def _sold(region: Region, offer: Offer, market: MarketName) -> Market | Reserved:
    sold = offer.market(market)
    where = f"{offer.id} ({offer.accelerator}) {market} in {region.id}"
    if sold is None:
        raise NoPrice(f"no price for {where}", region=region.id, offer=offer.id, market=market)
    if isinstance(sold, Reserved):
        if not sold.held:
            per_month = sold.price_per_month
            price = f"it costs {per_month.money} per month" if per_month else "it has no price per month"
            raise NoPrice(f"no instance is held for {where}: {price}; set `held` once it is paid", region=region.id)
    elif sold.price is None and sold.prices is None:
        raise NoPrice(f"no price for {where}", region=region.id, offer=offer.id, market=market)
    return sold


def _compute(
    region: Region, sold: Market, market: MarketName, series: Series | None, start: datetime, end: datetime
) -> Curve:
    tariff = region.tariff
    multiplied = sold.tariff if sold.tariff is not None else market == "on_demand"
    windows = tariff.windows if multiplied else ()
    amount = sold.price.amount if sold.price is not None else None
    spans = []
    for begin, until, recorded in _recorded(series, start, end):
        if recorded is not None:
            spans.append(Span(begin, until, recorded, SERIES, _basis(sold)))
        elif amount is None:
            raise NoPrice(f"no price for {market} in {region.id} from {begin.isoformat()} to {until.isoformat()}")
        else:
            spans.extend(_by_windows(region, tariff.anchor, windows, amount, _basis(sold), begin, until))
    return merged(spans)


def _recorded(
    series: Series | None, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime, Decimal | None]]:
    return series.pieces(start, end) if series is not None else iter([(start, end, None)])


def _by_windows(
    region: Region,
    anchor: str,
    windows: tuple[Window, ...],
    amount: Decimal,
    basis: str,
    start: datetime,
    end: datetime,
) -> list[Span]:
    if not windows:
        return [Span(start, end, amount, None, basis)]
    rates: dict[Outcomes, tuple[Decimal, str | None, str]] = {}
    spans = []
    for piece in timetable(region.timezone, anchor, windows, region.holidays).pieces(start, end):
        if piece.outcomes not in rates:
            rates[piece.outcomes] = _rate(windows, piece.outcomes, amount, basis)
        spans.append(Span(piece.start, piece.end, *rates[piece.outcomes]))
    return spans


def _rate(
    windows: tuple[Window, ...], outcomes: Outcomes, amount: Decimal, basis: str
) -> tuple[Decimal, str | None, str]:
    """Return price, window name and basis of what may hold: the dearest, as unknown, where that is not one thing."""
    multipliers = [windows[index].multiplier if index != NONE else _ONE for index in outcomes]
    price = EXACT.multiply(amount, max(multipliers))
    if len(outcomes) > 1:
        return price, None, UNKNOWN
    if outcomes[0] == NONE:
        return price, None, basis
    window = windows[outcomes[0]]
    # A multiplied price is known no better than its multiplier; one that is multiplied by 1 stands as it was.
    weaker = basis if window.multiplier == 1 or window.basis is None else max(basis, window.basis, key=_weakness)
    return price, window.name, weaker


def _weakness(basis: str) -> int:
    return len(BASES) if basis == UNKNOWN else BASES.index(basis) if basis in BASES else 0


def _basis(sold: Market | Reserved) -> str:
    price = sold.price_per_month if isinstance(sold, Reserved) else sold.price
    return price.basis if price is not None else sold.basis or "observed"


def _with_power(spans: Curve, region: Region, offer: Offer, start: datetime, end: datetime) -> Curve:
    """Return the curve with the electricity of an owned machine on top."""
    joined = []
    power = iter(_power(region, offer, start, end))
    draw = next(power)
    for span in spans:
        here = span.start
        while here < span.end:
            while draw.end <= here:
                draw = next(power)
            until = min(span.end, draw.end)
            window = " + ".join(name for name in (span.window, draw.window) if name) or None
            # Free hardware on metered power is known as well as the power's price.
            basis = draw.basis if span.price == 0 else max(span.basis, draw.basis, key=_weakness)
            price = EXACT.add(span.price, draw.price)
            joined.append(Span(here, until, price, window, basis, draw.price))
            here = until
    return merged(joined)


def _power(region: Region, offer: Offer, start: datetime, end: datetime) -> Curve:
    """Return what an instance's electricity costs per hour."""
    electricity: Electricity = region.electricity
    price = electricity.price_per_kwh
    if offer.power is None or (price is None and electricity.prices is None):
        raise NoPrice(f"no electricity price for {offer.id} in {region.id}: it needs power and price_per_kwh")
    factor = EXACT.multiply(EXACT.divide(offer.power, Decimal(1000)), electricity.pue)
    basis = price.basis if price is not None else electricity.basis or "observed"
    spans = []
    for begin, until, recorded in _recorded(electricity.prices, start, end):
        if recorded is not None:
            spans.append(Span(begin, until, EXACT.multiply(recorded, factor), SERIES, basis))
        elif price is None:
            raise NoPrice(f"no electricity price in {region.id} from {begin.isoformat()} to {until.isoformat()}")
        else:
            amount = EXACT.multiply(price.amount, factor)
            spans.extend(_by_windows(region, electricity.anchor, electricity.windows, amount, basis, begin, until))
    return merged(spans)


def merged(spans: list[Span]) -> Curve:
    """Return contiguous spans with equal neighbours joined."""
    result: list[Span] = []
    for span in spans:
        if result and _same(result[-1], span):
            span = replace(span, start=result.pop().start)
        result.append(span)
    return tuple(result)


def _same(one: Span, other: Span) -> bool:
    return (one.price, one.window, one.basis, one.electricity) == (
        other.price, other.window, other.basis, other.electricity,
    )  # fmt: skip


def _hours_until(curve: Curve, cost: Exact) -> Decimal | None:
    paid, hours = Exact(0), Exact(0)
    for span in curve:
        here = Exact(span.price) * span.hours
        if here > 0 and paid + here >= cost:
            return rounded(hours + (cost - paid) / Exact(span.price))
        paid, hours = paid + here, hours + span.hours
    return None
