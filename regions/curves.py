"""What an offer costs, when: its price as piecewise-constant curve over UTC time.

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
from regions.errors import PlanError
from regions.fields import BASES
from regions.model import Electricity, Fraction, Market, MarketName, Offer, Price, Region, Reserved, Window
from regions.money import EXACT, rounded
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
    how = sold(region, offer, market)
    if start >= end:
        return ()
    if isinstance(how, Reserved):
        return (Span(start, end, _ZERO, None, _basis(how), _ZERO),)
    own = own_price(fraction, market)
    if own is not None:
        how = how.model_copy(update={"price": own, "series": None})
        return _compute(region, how, market, None, start, end)
    spans = _compute(region, how, market, how.prices, start, end)
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


def own_price(fraction: Fraction | None, market: MarketName) -> Price | None:
    """Return the seller's own price of a fraction, where it has one: it is a list price, so on demand only."""
    return fraction.price if fraction is not None and market == "on_demand" else None


def sold(region: Region, offer: Offer, market: MarketName) -> Market | Reserved:
    """Return a market of an offer that has a price; NoPrice says why there is none."""
    found = offer.market(market)
    where = f"{offer.id} ({offer.accelerator}) {market} in {region.id}"
    if found is None:
        raise NoPrice(f"no price for {where}", region=region.id, offer=offer.id, market=market)
    if isinstance(found, Reserved):
        if not found.held:
            per_month = found.price_per_month
            price = f"it costs {per_month.money} per month" if per_month else "it has no price per month"
            raise NoPrice(f"no instance is held for {where}: {price}; set `held` once it is paid", region=region.id)
    elif found.price is None and found.prices is None:
        raise NoPrice(f"no price for {where}", region=region.id, offer=offer.id, market=market)
    return found


def _compute(
    region: Region, how: Market, market: MarketName, series: Series | None, start: datetime, end: datetime
) -> Curve:
    tariff = region.tariff
    multiplied = how.tariff if how.tariff is not None else market == "on_demand"
    windows = tariff.windows if multiplied else ()
    amount = how.price.amount if how.price is not None else None
    spans = []
    for begin, until, recorded in _recorded(series, start, end):
        if recorded is not None:
            spans.append(Span(begin, until, recorded, SERIES, _basis(how)))
        elif amount is None:
            raise NoPrice(f"no price for {market} in {region.id} from {begin.isoformat()} to {until.isoformat()}")
        else:
            spans.extend(_by_windows(region, tariff.anchor, windows, amount, _basis(how), begin, until))
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
    if len(set(multipliers)) > 1:
        return price, None, UNKNOWN
    matched = [windows[index] for index in outcomes if index != NONE]
    # A multiplied price is known no better than its multiplier; one that is multiplied by 1 stands as it was.
    others = [window.basis for window in matched if window.basis is not None and window.multiplier != 1]
    names = dict.fromkeys(window.name for window in matched)
    return price, " or ".join(names) or None, max([basis, *others], key=_weakness)


def _weakness(basis: str) -> int:
    return len(BASES) if basis == UNKNOWN else BASES.index(basis) if basis in BASES else 0


def _basis(how: Market | Reserved) -> str:
    price = how.price_per_month if isinstance(how, Reserved) else how.price
    return price.basis if price is not None else how.basis or "observed"


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
