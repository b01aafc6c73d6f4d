"""Plans many runs on shared capacity: near-optimal, with a certificate.

Each run is planned by the exact single-run search against what the others leave (insertion). Tolls, raised where the
runs would together take more than there is, make each of them see what its place is worth to the rest; then runs that
stand in each other's way are taken out and put back in another order as long as that helps. For any tolls

    sum over runs of (least cost at these tolls)  -  sum over places and hours of (toll x quota)

is below the cost of every joint plan (Lagrange); the best of these bounds comes with the answer. Higher classes are
placed first and never give way to lower ones; a run that has waited counts one class higher per `age_up`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from regions.errors import RequestError
from regions.model import Catalog
from regions.planning.answer import supplied_by_one_copy
from regions.planning.grid import Detail, lay
from regions.planning.instance import NEVER
from regions.planning.legs import legs_of, money, total_of
from regions.planning.problem import PlannedLeg, Situation
from regions.planning.request import RunRequest
from regions.planning.rows import UNIT
from regions.planning.search import search
from regions.planning.sharing import Place, Toll, Use, at_tolls, left_over, quotas_of, uses_of
from regions.planning.world import World, look

SHARED = Detail(slots=170, quanta=200, states=1_500_000)
HOUR = 3600

_Cell = tuple[Place, int]
"""A place and an hour since the epoch: what a toll is on."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run that wants a place, and since when it has waited for one."""

    request: RunRequest
    situation: Situation = field(default_factory=Situation)
    waiting_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: price steps for the tolls, rounds of taking out and putting back, runs per round."""

    price_steps: int = 10
    rounds: int = 30
    ruin: int = 4
    detail: Detail = SHARED


USUAL = Effort()
"""What is tried where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class JointPlan:
    """Legs by run; `unplaced` are runs for which nothing is left in time. `lower_bound` holds if all are placed."""

    legs: Mapping[str, tuple[PlannedLeg, ...]]
    unplaced: tuple[str, ...]
    cost: Decimal
    lower_bound: Decimal | None
    tolls: tuple[Toll, ...]

    @property
    def gap(self) -> Decimal | None:
        """The part of the cost, relative to the bound, that is not proven necessary."""
        if self.lower_bound is None or self.lower_bound <= 0:
            return None
        return (self.cost - self.lower_bound) / self.lower_bound


@dataclass(frozen=True, slots=True)
class _Run:
    name: str
    world: World
    rank: int
    slack: Fraction


@dataclass(frozen=True, slots=True)
class _Placing:
    """Who has which legs, and what they take."""

    legs: Mapping[str, tuple[PlannedLeg, ...]]
    uses: Mapping[str, tuple[Use, ...]]

    def without(self, names: Iterable[str]) -> _Placing:
        gone = set(names)
        keep = [name for name in self.legs if name not in gone]
        return _Placing({name: self.legs[name] for name in keep}, {name: self.uses[name] for name in keep})

    def cost(self) -> Decimal:
        return sum((total_of(legs) for legs in self.legs.values()), start=Decimal(0))

    def worth(self) -> tuple[int, Decimal]:
        """Order placings: more runs first, then less money."""
        return (-len(self.legs), self.cost())


def plan_many(
    wanted: Sequence[Wanted], catalog: Catalog, now: datetime, rng: random.Random, effort: Effort = USUAL
) -> JointPlan:
    """Return a plan of all runs together. The same runs, catalog, instant and generator give the same plan.

    Runs must be planned in one currency (budget's or home's): RequestError names the first that is not.
    """
    runs = _runs(wanted, catalog, now)
    quotas = quotas_of(catalog)
    in_order = sorted(runs, key=lambda run: (run.rank, run.slack, run.name))
    best = _placed(_Placing({}, {}), in_order, (), quotas, effort)
    tolls, least = _tolls(runs, quotas, Fraction(best.cost()), effort)
    if tolls:
        best = min(best, _placed(_Placing({}, {}), in_order, tolls, quotas, effort), key=_Placing.worth)
    for _ in range(effort.rounds if len(runs) > 1 else 0):
        best = _improved(best, runs, tolls, quotas, rng, effort)
    unplaced = tuple(sorted(run.name for run in runs if run.name not in best.legs))
    lower = None if unplaced or least is None else min(best.cost(), money(least))
    return JointPlan(best.legs, unplaced, best.cost(), lower, tolls)


def insert(
    wanted: Wanted, uses: Iterable[Use], catalog: Catalog, now: datetime, detail: Detail = SHARED
) -> tuple[PlannedLeg, ...]:
    """Return the legs of an arriving run in what others leave (empty: nothing is left in time); others stay put."""
    (run,) = _runs([wanted], catalog, now)
    return _place(run, tuple(uses), (), quotas_of(catalog), detail)


def _runs(wanted: Sequence[Wanted], catalog: Catalog, now: datetime) -> list[_Run]:
    runs: list[_Run] = []
    for item in wanted:
        request, situation = item.request, item.situation
        deadline = request.deadline_from(situation.submitted or now)
        world = look(request, catalog, situation, now, None if deadline is None else deadline - request.margin)
        if runs and world.currency != runs[0].world.currency:
            raise RequestError(f"{request.id} is planned in {world.currency}, others in {runs[0].world.currency}")
        priority = catalog.policy.priorities[request.priority]
        waited = now - (item.waiting_since or now)
        rank = priority.rank - (waited // priority.age_up if priority.age_up else 0)
        runs.append(_Run(request.id, world, rank, _slack(world)))
    return runs


def _slack(world: World) -> Fraction:
    """Return how many times the run fits into its time, at the fastest sites."""
    needed = Fraction(1)
    for number, load in enumerate(world.loads):
        speeds = [site.speed for site in world.sites if site.stage == number]
        needed += load.remaining / max(speeds) if speeds else 0
    return Fraction(world.end - world.start) / needed


def _place(
    run: _Run, uses: tuple[Use, ...], tolls: tuple[Toll, ...], quotas: Mapping[Place, int], detail: Detail
) -> tuple[PlannedLeg, ...]:
    """Return the cheapest legs of a run at the tolls, in what the others leave."""
    plain = left_over(run.world, uses, quotas)
    if not any(site.rents for site in plain.sites) or plain.end <= plain.start:
        return ()
    grid = lay(at_tolls(plain, tolls), detail)
    table = search(grid.instance)
    if int(table.done.min()) >= NEVER:
        return ()
    return legs_of(replace(grid, world=plain), table.path(int(table.done.argmin())))


def _placed(
    placing: _Placing, runs: Sequence[_Run], tolls: tuple[Toll, ...], quotas: Mapping[Place, int], effort: Effort
) -> _Placing:
    legs, uses = dict(placing.legs), dict(placing.uses)
    for run in runs:
        found = _place(run, tuple(use for mine in uses.values() for use in mine), tolls, quotas, effort.detail)
        if found:
            legs[run.name], uses[run.name] = found, uses_of(run.world, found)
    return _Placing(legs, uses)


def _tolls(
    runs: Sequence[_Run], quotas: Mapping[Place, int], target: Fraction, effort: Effort
) -> tuple[tuple[Toll, ...], Fraction | None]:
    """Search for the tolls of the best bound, and return both: Polyak's steps towards a plan that costs `target`.

    A place and hour asked for beyond its quota becomes dearer, one with room cheaper. No bound: some run fits nowhere.
    """
    prices: dict[_Cell, Fraction] = {}
    best: tuple[tuple[Toll, ...], Fraction | None] = ((), None)
    for _ in range(effort.price_steps):
        tolls = _as_tolls(prices)
        value = -sum((price * quotas[place] for (place, _), price in prices.items()), start=Fraction(0))
        asked: dict[_Cell, Fraction] = {}
        for run in runs:
            least, uses = _hoped(run, tolls, effort.detail)
            if least is None:
                return (), None
            value += least
            for cell, amount in _by_hour(uses):
                asked[cell] = asked.get(cell, Fraction(0)) + amount
        if best[1] is None or value > best[1]:
            best = (tolls, value)
        over = {cell: asked.get(cell, Fraction(0)) - quotas[cell[0]] for cell in asked.keys() | prices.keys()}
        over = {cell: amount for cell, amount in over.items() if amount > 0 or prices.get(cell)}
        length = sum(amount * amount for amount in over.values())
        if not length or value >= target:
            break
        for cell, amount in over.items():
            price = prices.get(cell, Fraction(0)) + (target - value) / length * amount
            # Rounded down to a millionth, so that fractions stay small: any toll gives a valid bound.
            prices[cell] = max(Fraction(0), Fraction(int(price * 10**6), 10**6))
    return best


def _hoped(run: _Run, tolls: tuple[Toll, ...], detail: Detail) -> tuple[Fraction | None, tuple[Use, ...]]:
    """Return what a run costs at least at these tolls with all capacity its own, and what it would take."""
    world = at_tolls(run.world, tolls)
    if not world.sites or world.end <= world.start:
        return None, ()
    grid = lay(world, detail, supplied_by_one_copy(world), hopeful=True)
    table = search(grid.instance)
    least = int(table.done.min())
    if least >= NEVER:
        return None, ()
    return Fraction(least, UNIT), uses_of(world, legs_of(grid, table.path(int(table.done.argmin()))))


def _by_hour(uses: Iterable[Use]) -> Iterator[tuple[_Cell, Fraction]]:
    for use in uses:
        for hour in range(use.start // HOUR, -(-use.end // HOUR)):
            seconds = min(use.end, (hour + 1) * HOUR) - max(use.start, hour * HOUR)
            yield (use.place, hour), use.instances * Fraction(seconds, HOUR)


def _as_tolls(prices: Mapping[tuple[Place, int], Fraction]) -> tuple[Toll, ...]:
    return tuple(
        Toll(place, price, hour * HOUR, (hour + 1) * HOUR) for (place, hour), price in sorted(prices.items()) if price
    )


def _improved(
    best: _Placing,
    runs: Sequence[_Run],
    tolls: tuple[Toll, ...],
    quotas: Mapping[Place, int],
    rng: random.Random,
    effort: Effort,
) -> _Placing:
    """Take some runs of one class out and put them back in another order; keep it if more fit, or for less money."""
    missing = [run for run in runs if run.name not in best.legs]
    seed = rng.choice(missing or list(runs))
    peers = [run for run in runs if run.rank == seed.rank and run.name != seed.name]
    out = [seed, *rng.sample(peers, min(len(peers), effort.ruin - 1))]
    rng.shuffle(out)
    tried = _placed(best.without(run.name for run in out), out, tolls if rng.random() < 0.5 else (), quotas, effort)
    return min(best, tried, key=_Placing.worth)
