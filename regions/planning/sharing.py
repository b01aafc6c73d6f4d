"""A world as one run sees it while others use the same machines: less capacity, or capacity at a price.

A toll is money in the search alone: what an hour of an instance is worth to the other runs. It steers; nobody pays it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from regions.model import Catalog
from regions.offers import capacity
from regions.planning.problem import PlannedLeg
from regions.planning.sites import Rent, Site
from regions.planning.world import World

Place = tuple[str, str]
"""Region and offer: what capacity is counted by."""


@dataclass(frozen=True, slots=True)
class Use:
    """Instances of a place that a run has over [start, end), in epoch seconds."""

    place: Place
    instances: Fraction
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Toll:
    """A price on an instance-hour of a place over [start, end), in the plan's currency."""

    place: Place
    price: Fraction
    start: int
    end: int


def quotas_of(catalog: Catalog) -> dict[Place, int]:
    """Return how many instances of each place may be had at once, over all its markets."""
    return {
        (region.id, offer.id): max(capacity(offer, market) for market in ("on_demand", "spot", "reserved"))
        for region in catalog.regions.values()
        for offer in region.offers
    }


def uses_of(world: World, legs: Iterable[PlannedLeg]) -> tuple[Use, ...]:
    """Return what legs planned in a world take of its capacity."""
    taken = {site.name: site.capacity for site in world.sites}
    return tuple(
        Use((leg.region, leg.offer), taken[leg.site], int(leg.start.timestamp()), int(leg.end.timestamp()))
        for leg in legs
    )


def left_over(world: World, uses: Iterable[Use], quotas: Mapping[Place, int]) -> World:
    """Return the world with its sites closed wherever too few instances are left for them."""
    by_place: dict[Place, list[Use]] = {}
    for use in uses:
        by_place.setdefault(use.place, []).append(use)
    return _with_rents(world, lambda site, rent: _while_left(site, rent, by_place, quotas))


def at_tolls(world: World, tolls: Iterable[Toll]) -> World:
    """Return the world with tolls on top of its prices; same sites in the same order."""
    by_place: dict[Place, list[Toll]] = {}
    for toll in tolls:
        by_place.setdefault(toll.place, []).append(toll)
    return _with_rents(world, lambda site, rent: _dearer(site, rent, by_place))


def _with_rents(world: World, change: Callable[[Site, Rent], Iterable[Rent]]) -> World:
    sites = tuple(
        replace(site, rents=tuple(piece for rent in site.rents for piece in change(site, rent))) for site in world.sites
    )
    running = None if world.running is None else sites[world.sites.index(world.running)]
    open_now = running is not None and any(rent.start <= world.start < rent.end for rent in running.rents)
    return replace(world, sites=sites, running=running if open_now else None)


def _while_left(
    site: Site, rent: Rent, by_place: Mapping[Place, list[Use]], quotas: Mapping[Place, int]
) -> Iterator[Rent]:
    place = (site.region, site.offer)
    uses = [use for use in by_place.get(place, ()) if use.start < rent.end and rent.start < use.end]
    for start, end in _cut(rent, (edge for use in uses for edge in (use.start, use.end))):
        used = sum((use.instances for use in uses if use.start <= start < use.end), start=Fraction(0))
        if used + site.capacity <= quotas[place]:
            yield replace(rent, start=start, end=end)


def _dearer(site: Site, rent: Rent, by_place: Mapping[Place, list[Toll]]) -> Iterator[Rent]:
    here = by_place.get((site.region, site.offer), ())
    tolls = [toll for toll in here if toll.start < rent.end and rent.start < toll.end]
    for start, end in _cut(rent, (edge for toll in tolls for edge in (toll.start, toll.end))):
        price = sum((toll.price for toll in tolls if toll.start <= start < toll.end), start=Fraction(0))
        yield replace(rent, start=start, end=end, price=rent.price + price * site.capacity)


def _cut(rent: Rent, edges: Iterable[int]) -> Iterator[tuple[int, int]]:
    inside = sorted({edge for edge in edges if rent.start < edge < rent.end})
    return pairwise([rent.start, *inside, rent.end])
