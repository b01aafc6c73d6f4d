"""A world put on a grid: instants, quanta, and the whole numbers of an Instance.

Slots end at every price change and at the multiples of a regular step, so a slot has one price. Work is rounded so
that the grid never promises more than time allows: what a leg gains between two instants is floor(work until the later)
minus ceiling(work until its first step). At the fastest speed a step holds whole quanta, so nothing is lost there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from regions.planning.instance import KEPT, MADE_HERE, NONE, Instance, Ints
from regions.planning.loads import Load
from regions.planning.rows import EFFORT, UNIT, SiteRows
from regions.planning.world import Route, World

STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
"""Lengths of a regular slot, in seconds; each divides a day."""
MOST_REPLICAS = 4
"""Regions that may hold new replicas at once in the exact search."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How fine a grid may be: most slots, most quanta, and most states in all (the search's time and memory)."""

    slots: int = 700
    quanta: int = 1500
    states: int = 30_000_000


FINE = Detail()
"""What a plan is made on."""


@dataclass(frozen=True, slots=True)
class Grid:
    """An instance, and what one quantum of each stage is in the stage's own unit of work."""

    world: World
    instance: Instance
    quantum: tuple[Fraction, ...]


def lay(
    world: World, detail: Detail = FINE, replicas: Mapping[str, int] | None = None, *, hopeful: bool = False
) -> Grid:
    """Return the world on a grid. `replicas`: the mask's bit of each region that may hold new ones (None: one each).

    Regions that share a bit are all supplied by the first copy to any of them: a bound from below, not a plan.
    A `hopeful` grid rounds work up instead of down and leaves out what is no money: its least cost is below that of
    every plan whose legs start and stop at its instants, however finely their work is counted.
    """
    names = {name: index for index, name in enumerate(world.regions)}
    lacks = np.array([[name in load.missing for name in world.regions] for load in world.loads])
    wanting = [name for name in world.regions if lacks[:, names[name]].any()]
    bits = {name: bit for bit, name in enumerate(wanting)} if replicas is None else replicas
    count = max(bits.values(), default=-1) + 1
    detail = _affordable(world, detail, 1 << count)
    step = next((step for step in STEPS if (world.end - world.start) <= step * detail.slots), STEPS[-1])
    instants = _instants(world, step, detail)
    quantum = _quanta(world, step, detail.quanta)
    sizes = [load.remaining / size for load, size in zip(world.loads, quantum, strict=True)]
    pieces = [max(1, math.floor(size)) if hopeful else math.ceil(size) for size in sizes]
    begun = world.loads[0].total > world.loads[0].remaining
    # A stage that has begun carries its checkpoint: one quantum counts as done so that the search sees it begun.
    borders = np.concatenate([[0], np.cumsum([pieces[0] + begun, *pieces[1:]])]).astype(np.int64)
    replica_bit = np.array([bits.get(name, -1) for name in world.regions], np.int64)
    first = [names[name] for name in world.first]
    mask = sum(1 << int(replica_bit[index]) for index in first[:1] if replica_bit[index] >= 0 and world.running)
    sites = SiteRows(world, instants, step, quantum, hopeful)
    lag, fee = _moves(world, 0 if hopeful else EFFORT)
    running = world.sites.index(world.running) if world.running is not None else -1
    instance = Instance(
        instants=instants,
        borders=borders,
        site_region=np.array([names[site.region] for site in world.sites], np.int64),
        site_stage=np.array([site.stage for site in world.sites], np.int64),
        rent=sites.rent,
        gain=sites.gain,
        start_span=sites.start_span,
        start_gain=sites.start_gain,
        start_fixed=sites.start_fixed,
        start_rent=sites.start_rent,
        lag=lag,
        fee=fee,
        stay=np.array([[_lying(world, instants, name, _kept(world, load)) for name in names] for load in world.loads]),
        lacks=lacks,
        replica_bit=replica_bit,
        keep=_keep(world, instants, bits, count),
        replicas_kept=np.array(list(_replicas_kept(world.loads))),
        first_region=np.array(first, np.int64),
        first_work=int(begun),
        first_mask=mask,
        first_site=running,
        stop_penalty=None if hopeful else _penalty(world, instants),
    )
    return Grid(world, instance, quantum)


def _affordable(world: World, detail: Detail, masks: int) -> Detail:
    """Coarsen until the number of states fits; quanta and slots give way in turn."""
    slots, quanta = detail.slots, detail.quanta
    rows = masks * (len(world.regions) + max(1, len(world.sites)) / max(1, len(world.loads)))
    while slots * quanta * rows > detail.states and (slots > 60 or quanta > 60):
        if slots / detail.slots >= quanta / detail.quanta and slots > 60:
            slots = slots * 2 // 3
        else:
            quanta = quanta * 2 // 3
    return Detail(slots, quanta, detail.states)


def _instants(world: World, step: int, detail: Detail) -> Ints:
    edges = {world.start, world.end}
    edges |= {edge for site in world.sites for rent in site.rents for edge in (rent.start, rent.end)}
    edges |= {world.start + lag for lag in _first_lags(world)}
    if world.situation.leg is not None:
        edges.add(math.ceil(world.situation.leg.until.timestamp()))
    # A leg that ends with its window hands over at once: let the next one start when the checkpoint is there.
    lags = {
        route.seconds(_carried(load, True) + inputs)
        for (_, target), route in world.routes.items()
        for load in world.loads
        for inputs in (0, load.missing.get(target, 0))
    }
    if len(lags) * len(edges) <= detail.slots // 2:
        edges |= {edge + lag for edge in edges for lag in lags}
    regular = range(world.start - world.start % step + step, world.end, step)
    return np.array(sorted({edge for edge in edges | set(regular) if world.start <= edge <= world.end}), np.int64)


def _first_lags(world: World) -> Iterator[int]:
    load = world.loads[0]
    begun = load.total > load.remaining
    for (source, target), route in world.routes.items():
        if source in world.first:
            yield route.seconds(_carried(load, begun) + load.missing.get(target, 0))


def _quanta(world: World, step: int, most: int) -> tuple[Fraction, ...]:
    """Return each stage's quantum: at its fastest speed, a step holds a whole number of them (or the reverse)."""
    stages = range(len(world.loads))
    fastest = [max((site.speed for site in world.sites if site.stage == k), default=Fraction(1)) for k in stages]
    seconds = [load.remaining / speed for load, speed in zip(world.loads, fastest, strict=True)]
    per_step = Fraction(most) * step / max(sum(seconds), Fraction(1))
    length = Fraction(step, math.floor(per_step)) if per_step >= 1 else Fraction(step * math.ceil(1 / per_step))
    return tuple(speed * length for speed in fastest)


def _carried(load: Load, begun: bool) -> int:
    return load.luggage + (load.checkpoint if begun else load.inherited)


def _kept(world: World, load: Load) -> int:
    """Return the bytes of checkpoints that lie in the run's region while the stage goes on."""
    return load.luggage + load.checkpoint * world.request.checkpoint_of(load.stage).keep.last


def _lying(world: World, instants: Ints, region: str, size: int) -> Ints:
    per_second = round(world.storage[region] * size * UNIT * 1000)
    return np.diff(instants) * per_second // 1000


def _keep(world: World, instants: Ints, bits: Mapping[str, int], count: int) -> Ints:
    keep = np.zeros((len(world.loads), count, len(instants) - 1), np.int64)
    for stage, load in enumerate(world.loads):
        for bit in range(count):
            rows = [_lying(world, instants, r, load.missing.get(r, 0)) for r in bits if bits[r] == bit]
            keep[stage, bit] = np.min(rows, axis=0) if rows else 0
    return keep


def _moves(world: World, effort: int) -> tuple[Ints, Ints]:
    count = len(world.regions)
    lag = np.full((len(world.loads), 2, 2, count, count), -1, np.int64)
    fee = np.zeros_like(lag)
    for stage, load in enumerate(world.loads):
        for begun in (0, 1):
            for with_inputs in (0, 1):
                for i, source in enumerate(world.regions):
                    for j, target in enumerate(world.regions):
                        inputs = load.missing.get(target, 0) if with_inputs else 0
                        route, size = world.routes.get((source, target)), _carried(load, bool(begun)) + inputs
                        if i == j and with_inputs and inputs and not load.made_before:
                            route, size = _fetching(world, target, inputs), inputs
                        # Before anything ran, inputs go straight to where they are needed, not on a tour.
                        tour = stage == 0 and not begun and source not in world.first
                        if route is not None and not tour:
                            lag[stage, begun, with_inputs, i, j] = route.seconds(size)
                            fee[stage, begun, with_inputs, i, j] = math.ceil(route.price * size * UNIT) + effort
    return lag, fee


def _fetching(world: World, target: str, size: int) -> Route | None:
    """Return the cheapest route by which inputs come to a region where the run stands already."""
    whole = [source for source in world.regions if not any(source in load.missing for load in world.loads)]
    routes = [world.routes[source, target] for source in whole if (source, target) in world.routes]
    return min(routes, key=lambda route: (route.price, route.seconds(size)), default=None)


def _replicas_kept(loads: tuple[Load, ...]) -> Iterator[int]:
    before: set[str] = set()
    for number, load in enumerate(loads):
        reads = set(load.stage.inputs.values())
        if number == 0 or reads <= before:
            yield KEPT
        else:
            yield MADE_HERE if load.made_before else NONE
        before = reads


def _penalty(world: World, instants: Ints) -> Ints | None:
    """Return what it takes to leave the running leg before its planned end: 15 min of its rent, in the search only.

    Plans are made anew with every report; without this, ties and rounding would move a run for nothing.
    """
    leg = world.situation.leg
    if leg is None or world.running is None:
        return None
    hourly = max(rent.price for rent in world.running.rents)
    return np.where(instants < math.ceil(leg.until.timestamp()), max(1, round(hourly * UNIT / 4)), 0)
