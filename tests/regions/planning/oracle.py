"""An independent answer to an Instance: a mixed-integer program (HiGHS) over time, place, stage and replicas.

Unlike the search it has no work dimension: one unit of flow walks through the network, and a row per stage demands that
the gains along its way add up. Costs, spans and lags are read from the Instance by their definition only.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from regions.planning.instance import NEVER, Instance

Node = tuple[object, ...]


class Network:
    """Arcs (from, to, cost, stage, quanta) of an instance, gathered node by node from the first state on."""

    def __init__(self, it: Instance) -> None:
        self.it = it
        self.arcs: list[tuple[Node, Node, int, int, int]] = []
        self.seen: set[Node] = set()
        first = int(np.searchsorted(it.borders, it.first_work, side="right")) - 1
        if it.first_site >= 0:
            self.sources = [("run", 0, first, it.first_mask, it.first_site, True)]
        else:
            begun = bool(it.first_work > it.borders[first])
            self.sources = [("idle", 0, first, it.first_mask, int(region), begun) for region in it.first_region]
        todo = list(self.sources)
        while todo:
            node = todo.pop()
            if node not in self.seen:
                self.seen.add(node)
                todo += self.leave(node)

    def add(self, origin: Node, target: Node, cost: int, stage: int = -1, quanta: int = 0) -> Node:
        self.arcs.append((origin, target, cost, stage, quanta))
        return target

    def lying(self, stage: int, mask: int, region: int, begin: int, end: int, checkpoint: bool = True) -> int:
        cost = int(self.it.stay[stage, region, begin:end].sum()) if checkpoint else 0
        for bit in range(self.it.keep.shape[1]):
            if mask >> bit & 1:
                cost += int(self.it.keep[stage, bit, begin:end].sum())
        return cost

    def ready(self, stage: int, mask: int, region: int) -> bool:
        bit = int(self.it.replica_bit[region])
        return not self.it.lacks[stage, region] or (bit >= 0 and bool(mask >> bit & 1))

    def leave(self, node: Node) -> list[Node]:
        kind, stage = node[0], node[2]
        if stage == self.it.stages:
            return []
        return self.leave_idle(node) if kind == "idle" else self.leave_running(node)

    def leave_idle(self, node: Node) -> list[Node]:
        it, (_, t, stage, mask, region, begun) = self.it, node
        out = []
        if t < it.slots:
            wait = self.lying(stage, mask, region, t, t + 1, begun)
            out.append(self.add(node, ("idle", t + 1, stage, mask, region, begun), wait))
            for site in range(it.sites):
                if it.site_region[site] == region and it.site_stage[site] == stage and self.ready(stage, mask, region):
                    out += self.start(node, site)
        for target in range(it.regions):
            for with_inputs in (0, 1):
                lag = int(it.lag[stage, int(begun), with_inputs, region, target])
                if with_inputs and it.replica_bit[target] < 0:
                    continue
                if lag < 0 or self.ready(stage, mask, target) == bool(with_inputs):
                    continue
                after = mask | 1 << int(it.replica_bit[target]) if with_inputs else mask
                arrival = next(
                    (end for end in range(t, it.slots + 1) if it.instants[end] >= it.instants[t] + lag), None
                )
                if arrival is not None:
                    cost = int(it.fee[stage, int(begun), with_inputs, region, target])
                    cost += self.lying(stage, mask, region, t, arrival, begun)
                    out.append(self.add(node, ("idle", arrival, stage, after, target, begun), cost))
        return out

    def start(self, node: Node, site: int) -> list[Node]:
        it, (_, t, stage, mask, region, _begun) = self.it, node
        span = int(it.start_span[site, t])
        if not span or it.start_fixed[site, t] >= NEVER or it.start_rent[site, t] >= NEVER:
            return []
        fixed = int(it.start_fixed[site, t]) + self.lying(stage, mask, region, t, t + span)
        return self.work(node, site, t + span, fixed, int(it.start_rent[site, t]), int(it.start_gain[site, t]))

    def work(self, node: Node, site: int, end: int, fixed: int, rent: int, gain: int) -> list[Node]:
        it, stage, mask = self.it, int(node[2]), int(node[3])
        region = int(it.site_region[site])
        out = [self.add(node, ("run", end, stage, mask, site, True), fixed + rent, stage, gain)]
        after = it.mask_after(stage, region, mask)
        for need in range(1, gain + 1):
            cost = fixed + -(-rent * need // gain)
            out.append(self.add(node, ("idle", end, stage + 1, after, region, False), cost, stage, need))
        return out

    def leave_running(self, node: Node) -> list[Node]:
        it, (_, t, stage, mask, site, _begun) = self.it, node
        region = int(it.site_region[site])
        penalty = int(it.stop_penalty[t]) if it.stop_penalty is not None and site == it.first_site else 0
        out = [self.add(node, ("idle", t, stage, mask, region, True), penalty)]
        if t < it.slots and it.rent[site, t] < NEVER:
            fixed = self.lying(stage, mask, region, t, t + 1)
            out += self.work(node, site, t + 1, fixed, int(it.rent[site, t]), int(it.gain[site, t]))
        return out


def optimum(it: Instance) -> int | None:
    """Return the least cost in micro-units of doing all work within the instance's slots, or None."""
    net = Network(it)
    goals = [node for node in net.seen if node[2] == it.stages]
    if not goals:
        return None
    rows: dict[object, int] = {}
    row, col, val, low = [], [], [], defaultdict(float)

    def put(name: object, column: int, value: float) -> None:
        row.append(rows.setdefault(name, len(rows)))
        col.append(column)
        val.append(value)

    columns = len(net.arcs) + len(net.sources) + len(goals)
    cost = np.zeros(columns)
    for column, (origin, target, price, stage, quanta) in enumerate(net.arcs):
        cost[column] = price
        put(origin, column, -1)
        put(target, column, 1)
        if quanta:
            put(("work", stage), column, quanta)
    for column, node in enumerate(net.sources, start=len(net.arcs)):
        put(node, column, 1)
        put("source", column, 1)
    for column, node in enumerate(goals, start=len(net.arcs) + len(net.sources)):
        put(node, column, -1)
    low["source"] = 1
    first = int(np.searchsorted(it.borders, it.first_work, side="right")) - 1
    for stage in range(first, it.stages):
        low[("work", stage)] = int(it.borders[stage + 1]) - max(int(it.borders[stage]), it.first_work)
        rows.setdefault(("work", stage), len(rows))
    matrix = coo_array((val, (row, col)), shape=(len(rows), columns)).tocsr()
    right = np.zeros(len(rows))
    for name, index in rows.items():
        right[index] = low[name]
    answer = milp(
        cost,
        constraints=LinearConstraint(matrix, right, right),
        integrality=np.ones(columns),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None
    chosen = np.flatnonzero(answer.x > 0.5)
    return sum(net.arcs[index][2] for index in chosen if index < len(net.arcs))
