"""What fits: every way to rent for a stage (region x offer x market x width), and why the others do not.

A site's rents are spans of time with one price each; where there is no span the site is closed (outside the stage's
windows, above its price ceiling, taken by others, or refused lately). A price that is absent closes a market by name,
it never counts as nothing; "0" is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from regions.model import Catalog, MarketName, Offer, Region
from regions.model import Fraction as Part
from regions.money import Money
from regions.offers import Curve, NoPrice, Span, capacity, currency_of, price_curve
from regions.planning.problem import Rejection, Situation
from regions.planning.request import RunRequest, Stage
from regions.units import duration_text

UNKNOWN_INTERRUPTIONS = Fraction(1, 20)
"""Expected interruptions per hour of a spot market that does not say."""


@dataclass(frozen=True, slots=True)
class Rent:
    """A span [start, end) of epoch seconds at one price: money per hour for the whole site, plan currency."""

    start: int
    end: int
    price: Fraction
    electricity: Fraction
    """The part of the price that is power."""
    basis: str
    window: str | None


@dataclass(frozen=True, slots=True)
class Site:
    """One way to rent for one stage (its number). Seconds throughout; `speed` is work per second while working."""

    stage: int
    region: str
    offer: str
    market: str
    accelerator: str
    width: int
    capacity: Fraction
    """Instances it takes of the offer's quota (a share of one for a part of an accelerator)."""
    speed: Fraction
    startup: int
    minimum: int
    increment: int
    rents: tuple[Rent, ...]

    @property
    def name(self) -> tuple[str, str, str, int]:
        """What is rented: (region, offer, market, width)."""
        return (self.region, self.offer, self.market, self.width)


@dataclass(frozen=True, slots=True)
class Question:
    """What sites are asked for: the period, the plan's currency and everything the rules need."""

    request: RunRequest
    catalog: Catalog
    situation: Situation
    start: datetime
    end: datetime
    currency: str

    def exchange(self, amount: Decimal, currency: str) -> Fraction:
        """Return an amount in the plan's currency; CurrencyError where no dated rate joins the two."""
        return Fraction(self.catalog.fx.convert(Money(amount, currency), self.currency, self.start.date()).amount)


def sites_of(question: Question, number: int, stage: Stage, region: Region) -> Iterator[Site | Rejection]:
    """Yield each way the region could do the stage, and why an offer of it cannot."""
    known = [offer for offer in region.offers if offer.accelerator in stage.accelerators]
    if not known:
        yield Rejection(region.id, "", f"sells no {' or '.join(stage.accelerators)}, which {stage.id} needs")
    for offer in known:
        found: list[Site] = []
        reasons: list[str] = []
        for market in stage.markets:
            answer = _market_sites(question, number, stage, region, offer, market)
            if isinstance(answer, str):
                reasons.append(answer)
            else:
                found += answer
        yield from found
        if not found:
            yield Rejection(region.id, offer.id, "; ".join(dict.fromkeys(reasons)))


def _market_sites(
    question: Question, number: int, stage: Stage, region: Region, offer: Offer, market: MarketName
) -> list[Site] | str:
    """Return the sites of an offer on a market, or the reason there is none."""
    if offer.quota is None:
        return "not offered now (quota is null)"
    part = _part(stage, offer)
    if stage.fraction is not None and part is None and offer.units != 1:
        return f"sells no part of an {offer.accelerator} of {stage.fraction} or more"
    try:
        curve = price_curve(region, offer, market, question.start, question.end, part)
    except NoPrice as missing:
        return missing.message
    loss = _expected_loss(question, stage, offer, market)
    if loss >= 1:
        return f"{market} is interrupted more often than it gets work done"
    available = max(capacity(offer, market), _reserved(question, region, offer) if market == "reserved" else 0)
    sites, reason = [], "no width fits"
    for width in _widths(stage, offer):
        taken = part.share / offer.units if part else Fraction(math.ceil(Fraction(width, offer.units)))
        if taken > available:
            reason = f"{width} x {offer.accelerator} need a quota of {math.ceil(taken)}, it is {available}"
            continue
        times = taken if part is None else Fraction(1)
        rents = tuple(_within_margin(question, stage, _rents(question, stage, region, offer, market, curve, times)))
        free = tuple(_while_free(question, region, offer, taken, available, rents))
        if free:
            speed = _speed(question, stage, offer, width) * (1 - loss)
            sites.append(_site(number, region, offer, market, width, taken, speed, free))
        else:
            reason = _closed(question, stage, region, offer, curve, rents)
    return sites or reason


def _site(
    number: int,
    region: Region,
    offer: Offer,
    market: str,
    width: int,
    taken: Fraction,
    speed: Fraction,
    rents: tuple[Rent, ...],
) -> Site:
    startup, minimum = (math.ceil(length.total_seconds()) for length in (offer.startup, offer.billing.minimum))
    increment = max(1, math.ceil(offer.billing.increment.total_seconds()))
    return Site(
        number, region.id, offer.id, market, offer.accelerator, width, taken, speed, startup, minimum, increment, rents
    )


def _part(stage: Stage, offer: Offer) -> Part | None:
    """Return the smallest part of an accelerator on sale that is as large as the stage asks for."""
    if stage.fraction is None:
        return None
    large_enough = [part for part in offer.fractions if part.share >= stage.fraction]
    return min(large_enough, key=lambda part: part.share, default=None)


def _widths(stage: Stage, offer: Offer) -> list[int]:
    if stage.fraction is not None:
        return [1]
    if stage.width is None:
        return [offer.units]
    # Without a scaling table only the minimum's speed is known; with one, exactly its widths are.
    return sorted({stage.width.min, *stage.width.scaling})


def _reserved(question: Question, region: Region, offer: Offer) -> int:
    mine = (item for item in question.situation.reservations if (item.region, item.offer) == (region.id, offer.id))
    return sum(item.instances for item in mine)


def _expected_loss(question: Question, stage: Stage, offer: Offer, market: str) -> Fraction:
    """Return the share of rented time that interruptions waste: half a checkpoint interval and a start for each."""
    sold = offer.markets.spot
    if market != "spot" or sold is None:
        return Fraction(0)
    stated = sold.interruption_per_hour
    rate = UNKNOWN_INTERRUPTIONS if stated is None else Fraction(stated)
    lost = question.request.checkpoint_of(stage).every / 2 + offer.startup
    return rate * Fraction(lost // timedelta(seconds=1), 3600)


def _speed(question: Question, stage: Stage, offer: Offer, width: int) -> Fraction:
    """Return work per second of the whole width."""
    stated = stage.accelerators[offer.accelerator].rate
    rate = question.situation.rates.get((stage.id, offer.accelerator), stated)
    if stage.fraction is not None:
        return rate * stage.fraction / 3600
    scaling = stage.width.scaling if stage.width is not None else {}
    efficiency = scaling.get(width, Fraction(1)) / scaling.get(min(scaling, default=width), Fraction(1))
    return rate * width * efficiency / 3600


def _rents(
    question: Question, stage: Stage, region: Region, offer: Offer, market: MarketName, curve: Curve, times: Fraction
) -> Iterator[Rent]:
    currency = currency_of(region, offer, market, _part(stage, offer))
    devices = Fraction(1) if stage.fraction is not None else Fraction(offer.units)
    for span in curve:
        if not _within(stage, span):
            continue
        price, power = question.exchange(span.price, currency), question.exchange(span.electricity, currency)
        if price <= _ceiling(question, stage) * devices:
            start, end = math.ceil(span.start.timestamp()), math.ceil(span.end.timestamp())
            yield Rent(start, end, price * times, power * times, span.basis, span.window)


def _within_margin(question: Question, stage: Stage, rents: Iterator[Rent]) -> Iterator[Rent]:
    """End a stage that may not leave its windows a margin before each of them closes."""
    margin = math.ceil(question.request.margin.total_seconds()) if stage.windows is not None else 0
    spans = list(rents)
    for rent, following in zip(spans, [*spans[1:], None], strict=True):
        goes_on = following is not None and following.start == rent.end
        end = rent.end if goes_on or rent.end >= _second(question.end) else rent.end - margin
        if end > rent.start:
            yield replace(rent, end=end)


def _ceiling(question: Question, stage: Stage) -> Fraction | float:
    """Return the most an accelerator-hour may cost: the stage's own limit or the policy's, whichever is lower."""
    limits = [
        (limit.per_accelerator_hour, limit.currency)
        for limit in question.catalog.policy.limits
        if limit.per_accelerator_hour is not None
    ]
    if stage.max_price is not None:
        limits.append((stage.max_price.amount, stage.max_price.currency))
    return min((question.exchange(amount, currency) for amount, currency in limits), default=math.inf)


def _while_free(
    question: Question, region: Region, offer: Offer, wanted: Fraction, available: int, rents: tuple[Rent, ...]
) -> Iterator[Rent]:
    """Cut the rents to when enough instances are free and nobody has just refused us."""
    here, situation = (region.id, offer.id), question.situation
    taken = [
        (_second(busy.start), _second(busy.end or question.end), busy.instances)
        for busy in situation.busy
        if (busy.region, busy.offer) == here
    ]
    taken += [
        (_second(question.start), _second(refusal.until), Fraction(available))
        for refusal in situation.refusals
        if (refusal.region, refusal.offer) == here
    ]
    edges = sorted({edge for start, end, _ in taken for edge in (start, end)})
    for rent in rents:
        cuts = [rent.start, *(edge for edge in edges if rent.start < edge < rent.end), rent.end]
        for start, end in pairwise(cuts):
            used = sum((amount for begin, until, amount in taken if begin <= start < until), Fraction(0))
            if used + wanted <= available:
                yield replace(rent, start=start, end=end)


def _closed(
    question: Question, stage: Stage, region: Region, offer: Offer, curve: Curve, rents: tuple[Rent, ...]
) -> str:
    """Say why a site is closed for the whole period; `rents` are those before others' use was taken off."""
    for refusal in reversed(question.situation.refusals):
        if rents and (refusal.region, refusal.offer) == (region.id, offer.id):
            return f"{refusal.reason}; not asked again before {refusal.until.isoformat()}"
    if rents:
        return "all instances are taken for the whole period"
    if stage.windows is None:
        return "above the price ceiling at all times"
    lengths = [span.end - span.start for span in curve if _within(stage, span)]
    if not lengths:
        return f"no window {' or '.join(stage.windows)} opens there in time"
    margin = duration_text(question.request.margin)
    return f"its windows last {duration_text(max(lengths))} at most, the margin before they close is {margin}"


def _within(stage: Stage, span: Span) -> bool:
    """Tell whether a span lies in one of the windows the stage keeps to (named a + b where tariffs meet)."""
    return stage.windows is None or bool(set((span.window or "").split(" + ")) & set(stage.windows))


def _second(instant: datetime) -> int:
    return math.ceil(instant.timestamp())
