"""From a path on the grid back to exact legs: real work, real ends, real money.

The grid rounds work down, so a leg here does at least what its path needs and the last one of a stage ends earlier.
Money is exact (fractions) until a leg's line is rounded once, to a millionth of the currency.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

import numpy as np

from regions.planning.grid import Grid
from regions.planning.paths import Arc, lying_cost
from regions.planning.problem import Cost, PlannedHandoff, PlannedLeg
from regions.planning.rows import EFFORT, UNIT
from regions.planning.sites import Site

PUNCTUAL = 60
"""Seconds by which a start may miss a price change before that is taken for a choice."""
_MILLIONTH = Decimal("0.000001")


@dataclass(slots=True)
class _Draft:
    """A leg while its arcs are gathered; seconds since the epoch, money in the search's units."""

    site: Site
    start: int
    end: int
    startup: int
    moves: list[Arc]
    lying: int


@dataclass(slots=True)
class _Gathering:
    drafts: list[_Draft] = field(default_factory=list)
    moves: list[Arc] = field(default_factory=list)
    lying: int = 0
    free_since: int = 0


def legs_of(grid: Grid, path: tuple[Arc, ...]) -> tuple[PlannedLeg, ...]:
    """Return the legs a path stands for."""
    world = grid.world
    left = {number: load.remaining for number, load in enumerate(world.loads)}
    legs = []
    for draft in _gather(grid, path):
        site, remaining = draft.site, left[draft.site.stage]
        if not remaining:
            continue
        begin = draft.start + draft.startup
        work = min(remaining, site.speed * (draft.end - begin))
        end = draft.end if work < remaining else begin + math.ceil(remaining / site.speed)
        left[site.stage] -= work
        legs.append(_leg(grid, draft, end, work))
    return tuple(legs)


def _gather(grid: Grid, path: tuple[Arc, ...]) -> list[_Draft]:
    instants, gathered = grid.instance.instants, _Gathering(free_since=grid.world.start)
    open_draft: _Draft | None = None
    for arc in path:
        begin, end, lying = int(instants[arc.begin]), int(instants[arc.end]), lying_cost(grid.instance, arc)
        if arc.site < 0:
            gathered.lying += lying
            if arc.kind == "move":
                gathered.moves.append(arc)
                gathered.free_since = end
            continue
        if arc.kind == "stop":
            open_draft = None
            continue
        if open_draft is None:
            site = grid.world.sites[arc.site]
            if arc.kind.startswith("start"):
                begin, startup = _punctual(site, begin, gathered.free_since), site.startup
            else:
                startup = 0
            open_draft = _Draft(site, begin, end, startup, gathered.moves, gathered.lying)
            gathered.drafts.append(open_draft)
            gathered.moves, gathered.lying = [], 0
        open_draft.end = gathered.free_since = end
        open_draft.lying += lying
        if arc.kind.endswith("finish"):
            open_draft = None
    return gathered.drafts


def _punctual(site: Site, start: int, free_since: int) -> int:
    """Return the start, moved back to the price change it all but coincides with if nothing is in the way.

    A start some seconds late can look as good on the grid, where what is gained in them is less than a quantum.
    """
    edge = max((rent.start for rent in site.rents if rent.start <= start), default=start)
    return edge if start - edge < PUNCTUAL and free_since <= edge else start


def _leg(grid: Grid, draft: _Draft, end: int, work: Fraction) -> PlannedLeg:
    world, site = grid.world, draft.site
    handoff = _handoff(grid, draft.moves)
    compute, electricity = rent_of(site, draft.start, end)
    cost = Cost(money(compute), money(electricity), handoff.cost, money(Fraction(draft.lying, UNIT)))
    return PlannedLeg(
        stage=world.loads[site.stage].stage.id,
        region=site.region,
        offer=site.offer,
        market=site.market,
        accelerator=site.accelerator,
        width=site.width,
        start=world.instant(draft.start),
        end=world.instant(end),
        work=work,
        startup=draft.startup,
        handoff=handoff,
        cost=cost,
        by_basis=_by_basis(site, draft.start, draft.start + draft.startup, end),
    )


def _handoff(grid: Grid, moves: list[Arc]) -> PlannedHandoff:
    if not moves:
        return PlannedHandoff()
    it, world = grid.instance, grid.world
    size = seconds = fee = 0
    for arc in moves:
        stage = int(np.searchsorted(it.borders, arc.work[0], side="right")) - 1
        begun, load = arc.work[0] > it.borders[stage], world.loads[stage]
        size += load.luggage + (load.checkpoint if begun else load.inherited) if arc.region != arc.target else 0
        size += load.missing.get(world.regions[arc.target], 0) if arc.with_inputs else 0
        seconds += int(it.lag[stage, int(begun), int(arc.with_inputs), arc.region, arc.target])
        fee += int(it.fee[stage, int(begun), int(arc.with_inputs), arc.region, arc.target]) - EFFORT
    route = world.routes.get((world.regions[moves[-1].region], world.regions[moves[-1].target]))
    basis = route.basis if route is not None else None
    cost = money(Fraction(fee, UNIT))
    return PlannedHandoff(world.regions[moves[0].region], size, seconds if size else 0, cost, basis)


def spans_of(site: Site, start: int, end: int) -> Iterator[tuple[int, int, Fraction, Fraction, str]]:
    """Yield (seconds, begin, price, electricity, basis) of what a site costs over [start, end).

    Time after its last known price is at that price: billing increments may reach a little past the horizon.
    """
    for rent in site.rents:
        begin, until = max(start, rent.start), min(end, rent.end)
        if begin < until:
            yield until - begin, begin, rent.price, rent.electricity, rent.basis
    last = site.rents[-1]
    if end > max(last.end, start):
        yield end - max(last.end, start), max(last.end, start), last.price, last.electricity, last.basis


def billed(site: Site, start: int, end: int) -> int:
    """Return the end of what is billed for renting from `start` to `end`: the minimum, in whole increments."""
    return start + -(-max(end - start, site.minimum) // site.increment) * site.increment


def rent_of(site: Site, start: int, end: int) -> tuple[Fraction, Fraction]:
    """Return the exact (compute, electricity) cost of renting a site over [start, end), as it is billed."""
    compute = electricity = Fraction(0)
    for seconds, _, price, power, _ in spans_of(site, start, billed(site, start, end)):
        compute += (price - power) * seconds / 3600
        electricity += power * seconds / 3600
    return compute, electricity


def _by_basis(site: Site, start: int, working: int, end: int) -> dict[str, tuple[Decimal, int]]:
    found: dict[str, tuple[Decimal, int]] = {}
    for seconds, begin, price, _, basis in spans_of(site, start, billed(site, start, end)):
        cost, worked = found.get(basis, (Decimal(0), 0))
        here = max(0, min(end, begin + seconds) - max(working, begin))
        found[basis] = (cost + money(price * seconds / 3600), worked + here)
    return found


def money(amount: Fraction) -> Decimal:
    """Return an amount rounded once, to a millionth of the currency."""
    exact = Decimal(amount.numerator) / Decimal(amount.denominator)
    rounded = exact.quantize(_MILLIONTH, rounding=ROUND_HALF_EVEN)
    return rounded.normalize() if rounded else Decimal(0)


def total_of(legs: tuple[PlannedLeg, ...]) -> Decimal:
    """Return what legs cost together."""
    return sum((leg.cost.total for leg in legs), start=Decimal(0))
