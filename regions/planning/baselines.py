"""What simpler habits would cost on the same request: the figures a plan is judged by.

home_now       rent at home at once, run to the end
home_off_peak  stay at home, run only in its cheap hours
cheapest_now   rent where an hour is cheapest now, the way there included, and stay to the end
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from regions.planning.legs import money, rent_of
from regions.planning.loads import Load
from regions.planning.problem import Baseline
from regions.planning.sites import Rent, Site
from regions.planning.world import World

CHEAP_SHARE = Fraction(1, 12)
"""Cheap hours are those at or below the price that holds for at least this share of the time (2 h a day)."""


@dataclass(frozen=True, slots=True)
class _Habit:
    """A way to do one stage: what it costs and when it is done (epoch seconds)."""

    cost: Fraction
    finish: int


_Way = Callable[[Site, Load, int], _Habit | None]


def baselines(
    world: World, home: str | None, deadline: datetime | None, budget: Decimal | None
) -> dict[str, Baseline | None]:
    """Return the three baselines in a world that looks well past the deadline; None where one cannot be done."""
    found: dict[str, _Habit | None] = {
        "home_now": None if home is None else _stages_at(world, home, world.start, _at_once),
        "home_off_peak": None if home is None else _stages_at(world, home, world.start, _off_peak),
        "cheapest_now": _cheapest_now(world),
    }
    return {name: None if habit is None else _judged(world, habit, deadline, budget) for name, habit in found.items()}


def _judged(world: World, habit: _Habit, deadline: datetime | None, budget: Decimal | None) -> Baseline:
    cost, finish = money(habit.cost), world.instant(habit.finish)
    in_time = deadline is None or finish <= deadline
    return Baseline(cost, finish, in_time and (budget is None or cost <= budget))


def _stages_at(
    world: World, region: str, start: int, habit: Callable[[Site, Load, int], _Habit | None]
) -> _Habit | None:
    """Do all stages in one region, each on the site that is cheapest for it under the habit."""
    cost, now = Fraction(0), start
    for number, load in enumerate(world.loads):
        ways = [habit(site, load, now) for site in world.sites if (site.region, site.stage) == (region, number)]
        best = min((way for way in ways if way is not None), key=lambda way: (way.cost, way.finish), default=None)
        if best is None:
            return None
        cost, now = cost + best.cost, best.finish
    size = sum(world.request.checkpoint_of(load.stage).keep.last * load.checkpoint for load in world.loads[-1:])
    return _Habit(cost + world.storage.get(region, Fraction(0)) * size * (now - start), now)


def _at_once(site: Site, load: Load, now: int) -> _Habit | None:
    length = site.startup + math.ceil(load.remaining / site.speed)
    begin = _first_open(site, now, length)
    if begin is None:
        return None
    return _Habit(sum(rent_of(site, begin, begin + length), start=Fraction(0)), begin + length)


def _first_open(site: Site, now: int, length: int) -> int | None:
    """Return the first instant from which the site is open without a break for that long."""
    begin = until = None
    for rent in site.rents:
        if until is None or rent.start != until:
            begin = max(now, rent.start)
        until = rent.end
        if begin is not None and until - begin >= length:
            return begin
    return None


def _off_peak(site: Site, load: Load, now: int) -> _Habit | None:
    cheap = list(_joined(rent for rent in site.rents if rent.end > now and rent.price <= _cheap_price(site)))
    left, cost = load.remaining, Fraction(0)
    for start, end in cheap:
        begin = max(start, now)
        worked = min(left, site.speed * max(0, end - begin - site.startup))
        if not worked:
            continue
        finish = begin + site.startup + math.ceil(worked / site.speed) if worked == left else end
        cost, left = cost + sum(rent_of(site, begin, finish), start=Fraction(0)), left - worked
        if not left:
            return _Habit(cost, finish)
    return None


def _cheap_price(site: Site) -> Fraction:
    wanted = CHEAP_SHARE * sum(rent.end - rent.start for rent in site.rents)
    for rent in sorted(site.rents, key=lambda rent: rent.price):
        wanted -= rent.end - rent.start
        if wanted <= 0:
            return rent.price
    return site.rents[-1].price


def _joined(rents: Iterator[Rent]) -> Iterator[tuple[int, int]]:
    start = end = None
    for rent in rents:
        if rent.start != end:
            if start is not None and end is not None:
                yield start, end
            start = rent.start
        end = rent.end
    if start is not None and end is not None:
        yield start, end


def _cheapest_now(world: World) -> _Habit | None:
    """Choose as SkyPilot's optimizer does: by the price now times the length, plus the way there; then never move."""
    choices = []
    for region in world.regions:
        way = _way(world, region)
        estimate = Fraction(0)
        for number, load in enumerate(world.loads):
            hourly = [
                next(rent.price for rent in site.rents if rent.end > world.start) * load.remaining / site.speed / 3600
                for site in world.sites
                if (site.region, site.stage) == (region, number)
            ]
            estimate += min(hourly, default=Fraction(10**15))
        if way is not None and estimate < 10**15:
            choices.append((estimate + way.cost, region, way))
    if not choices:
        return None
    _, region, way = min(choices, key=lambda choice: choice[:2])
    stay = _stages_at(world, region, way.finish, _at_once)
    return None if stay is None else _Habit(stay.cost + way.cost, stay.finish)


def _way(world: World, region: str) -> _Habit | None:
    """Return what bringing the run's bytes to a region costs and when they are there."""
    load = world.loads[0]
    if region in world.first:
        return _Habit(Fraction(0), world.start)
    begun = load.total > load.remaining
    size = load.luggage + (load.checkpoint if begun else load.inherited)
    size += max((load.missing.get(region, 0) for load in world.loads if not load.made_before), default=0)
    ways = [world.routes[source, region] for source in world.first if (source, region) in world.routes]
    route = min(ways, key=lambda route: route.price, default=None)
    return None if route is None else _Habit(route.price * size, world.start + route.seconds(size))
