"""What the search leaves behind: the frontier, and the way back from any point of it.

A state's code says by which arc it was reached best; walking them backwards gives the path, with no new search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regions.planning.instance import NEVER, Instance, Ints

WAIT, FINISH, STOP = 1, 2, 3
"""How an idle state was reached: 0 it was the first; STOP + site; from STOP + sites on: a move (see `move_code`)."""
CONTINUE = 1
"""How a running state was reached: 0 it was the first; CONTINUE + span: a start that long ago."""


@dataclass(frozen=True, slots=True)
class Arc:
    """One step of a path: from slot boundary `begin` to `end`; `site` for start, continue and finish, else -1."""

    kind: str
    begin: int
    end: int
    region: int
    target: int
    site: int
    work: tuple[int, int]
    mask: int
    with_inputs: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """What the forward pass leaves: `done[t]`, the least cost of finishing exactly at instant t, and the way back."""

    instance: Instance
    done: Ints
    done_state: Ints
    idle_code: np.ndarray
    run_code: tuple[np.ndarray, ...]
    finish_code: Ints
    site_place: Ints
    """[I, 2] the block and row in which a site's states stand."""

    def frontier(self) -> list[tuple[int, int]]:
        """Return (instant index, cost) of every finish that is cheaper than all earlier ones."""
        best, points = int(NEVER), []
        for instant, cost in enumerate(self.done.tolist()):
            if cost < best:
                best = cost
                points.append((instant, cost))
        return points

    def path(self, finish: int) -> tuple[Arc, ...]:
        """Return the arcs of the cheapest way to be done exactly at the instant `finish`, first to last."""
        return tuple(reversed(_walk_back(self, finish)))


def move_code(it: Instance, sources: Ints, with_inputs: bool) -> Ints:
    """Return how an idle state says that a move from `sources` led to it."""
    return STOP + it.sites + 2 * sources + int(with_inputs)


def pack(it: Instance, mask: int, site: int, work: int, span: int) -> int:
    """Return where a stage's end came from, as one number."""
    return ((mask * it.sites + site) * (it.work + 1) + work) * (it.slots + 1) + span


def _unpack(it: Instance, code: int) -> tuple[int, int, int, int]:
    code, span = divmod(code, it.slots + 1)
    code, work = divmod(code, it.work + 1)
    mask, site = divmod(code, it.sites)
    return mask, site, work, span


def _walk_back(table: Table, finish: int) -> list[Arc]:
    it, arcs = table.instance, list[Arc]()
    mask, region = divmod(int(table.done_state[finish]), it.regions)
    instant, work, site = finish, it.work, -1
    while True:
        if site >= 0:
            code, arc = _before_running(table, instant, mask, site, work)
        else:
            code, arc = _before_idle(table, instant, mask, region, work)
        if not code:
            return arcs
        assert arc is not None
        arcs.append(arc)
        instant, mask, region, work = arc.begin, arc.mask, arc.region, arc.work[0]
        site = arc.site if arc.kind in ("continue", "finish", "stop") else -1


def _before_running(table: Table, instant: int, mask: int, site: int, work: int) -> tuple[int, Arc | None]:
    it, (block, row) = table.instance, table.site_place[site]
    stage, region = int(it.site_stage[site]), int(it.site_region[site])
    code = int(table.run_code[block][instant, mask, row, work - int(it.borders[stage])])
    if code == 0:
        return 0, None
    span = code - CONTINUE
    begin = instant - max(1, span)
    gain = int(it.start_gain[site, begin] if span else it.gain[site, begin])
    kind = "start" if span else "continue"
    return code, Arc(kind, begin, instant, region, region, site, (work - gain, work), mask)


def _before_idle(table: Table, instant: int, mask: int, region: int, work: int) -> tuple[int, Arc | None]:
    it = table.instance
    code = int(table.idle_code[instant, mask, region, work])
    if code == 0:
        return 0, None
    if code == WAIT:
        return code, Arc("wait", instant - 1, instant, region, region, -1, (work, work), mask)
    if code == FINISH:
        stage = int(np.searchsorted(it.borders, work)) - 1
        mask, site, before, span = _unpack(it, int(table.finish_code[instant, stage, mask, region]))
        kind = "start-finish" if span else "finish"
        return code, Arc(kind, instant - max(1, span), instant, region, region, site, (before, work), mask)
    if code < STOP + it.sites:
        return code, Arc("stop", instant, instant, region, region, code - STOP, (work, work), mask)
    source, with_inputs = divmod(code - STOP - it.sites, 2)
    stage = int(np.searchsorted(it.borders, work, side="right")) - 1
    begun = int(work > it.borders[stage])
    begin = int(it.departures(int(it.lag[stage, begun, with_inputs, source, region]))[instant])
    before = mask & ~(1 << int(it.replica_bit[region])) if with_inputs else mask
    return code, Arc("move", begin, instant, source, region, -1, (work, work), before, bool(with_inputs))


def lying_cost(it: Instance, arc: Arc) -> int:
    """Return what storage costs during an arc: new replicas, and the checkpoint once there is one."""
    stage = int(np.searchsorted(it.borders, arc.work[0], side="right")) - 1
    lying = it.held[stage, arc.mask, arc.end] - it.held[stage, arc.mask, arc.begin]
    if arc.work[0] > it.borders[stage] or arc.kind not in ("wait", "move"):
        lying += it.stayed[stage, arc.region, arc.end] - it.stayed[stage, arc.region, arc.begin]
    return int(lying)


def arc_cost(it: Instance, arc: Arc) -> int:
    """Return what an arc costs: the definition that paths, the search and the tests' oracle agree on."""
    stage = int(np.searchsorted(it.borders, arc.work[0], side="right")) - 1
    begun = int(arc.work[0] > it.borders[stage])
    lying = lying_cost(it, arc)
    if arc.kind == "move":
        return int(lying + it.fee[stage, begun, int(arc.with_inputs), arc.region, arc.target])
    if arc.kind == "stop" and it.stop_penalty is not None and arc.site == it.first_site:
        return int(lying + it.stop_penalty[arc.begin])
    if arc.kind in ("wait", "stop"):
        return int(lying)
    starts = arc.kind.startswith("start")
    rent = it.start_rent if starts else it.rent
    gain = it.start_gain if starts else it.gain
    cost = int(rent[arc.site, arc.begin])
    if arc.kind.endswith("finish"):
        cost = -(-cost * (arc.work[1] - arc.work[0]) // int(gain[arc.site, arc.begin]))
    return int(lying) + cost + (int(it.start_fixed[arc.site, arc.begin]) if starts else 0)
