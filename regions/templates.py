"""Which offers suit a kind of stage where the run does not say, cheapest per unit of work first.

The policy's templates say what is acceptable (accelerators with their relative rates, memory, share); what is taken
among them is decided by price per unit of work alone, never by the name of a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction as Exact

from regions.model import Catalog, Fraction, MarketName, Offer, Region
from regions.money import CurrencyError, FxTable, Money, rounded
from regions.offers import currency_of, price_curve, why_not
from regions.policy import ModelClass, StageKind, Template

_A_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer, or a fraction of one, that a template takes, and what a unit of its work costs at an instant."""

    region: str
    offer: str
    accelerator: str
    fraction: Fraction | None
    price: Money
    """Per hour of the instance or the fraction."""
    rate: Exact
    """Units of work per hour, in the template's measure."""
    per_work: Money


@dataclass(frozen=True, slots=True)
class Unsuited:
    """An offer that a template or the market leaves out, and why."""

    region: str
    offer: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What a template takes, cheapest per unit of work first, and what it leaves out."""

    model: ModelClass
    candidates: tuple[Candidate, ...]
    unsuited: tuple[Unsuited, ...]


def choose(
    catalog: Catalog, kind: StageKind, parameters: int | None, market: MarketName, at: datetime, currency: str
) -> Choice:
    """Return the offers that suit a stage kind for a model of so many parameters, at their prices of an instant.

    Offers whose price cannot be converted to `currency` are left out by name.
    """
    template = catalog.policy.template(kind, parameters)
    candidates: list[Candidate] = []
    unsuited: list[Unsuited] = []
    for region in catalog.regions.values():
        for offer in region.offers if region.status != "retired" else ():
            reason = _unfit(template, offer) or why_not(region, offer, market)
            if reason is None and template is not None:
                try:
                    candidates += _priced(catalog.fx, template, region, offer, market, at, currency)
                except CurrencyError as error:
                    reason = error.message
            if reason is not None:
                unsuited.append(Unsuited(region.id, offer.id, reason))
    candidates.sort(key=lambda each: (each.per_work.amount, each.region, each.offer))
    return Choice(catalog.policy.model_class(parameters), tuple(candidates), tuple(unsuited))


def _unfit(template: Template | None, offer: Offer) -> str | None:
    """Return why a template does not take an offer, or None where it does."""
    if template is None:
        return "policy.yaml has no template for it"
    if offer.accelerator not in template.accelerators:
        return f"{offer.accelerator} is not among {', '.join(template.accelerators)}"
    needed, there = template.min_memory, offer.accelerator_memory
    if needed is not None and there is not None and there < needed:
        return f"{there / 2**30:g} GiB per accelerator, {needed / 2**30:g} GiB needed"
    return None


def _priced(
    fx: FxTable, template: Template, region: Region, offer: Offer, market: MarketName, at: datetime, currency: str
) -> Iterator[Candidate]:
    """Yield the whole offer and, where a fraction is enough, the smallest that is."""
    part = _enough(template, offer)
    for fraction in (None,) if part is None else (None, part):
        price = Money(
            price_curve(region, offer, market, at, at + _A_SECOND, fraction)[0].price,
            currency_of(region, offer, market, fraction),
        )
        share = Exact(offer.units) if fraction is None else fraction.share
        rate = Exact(template.accelerators[offer.accelerator].rate) * share
        yield Candidate(
            region=region.id,
            offer=offer.id,
            accelerator=offer.accelerator,
            fraction=fraction,
            price=price,
            rate=rate,
            per_work=Money(rounded(Exact(fx.convert(price, currency, at.date()).amount) / rate), currency),
        )


def _enough(template: Template, offer: Offer) -> Fraction | None:
    fitting = [
        part
        for part in offer.fractions
        if template.fraction is not None
        and part.share >= template.fraction
        and (template.min_memory is None or part.memory is None or part.memory >= template.min_memory)
    ]
    return min(fitting, key=lambda part: part.share, default=None)
