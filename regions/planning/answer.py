"""A world searched: exactly, or between a bound and a checked plan where too many regions would need new replicas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from regions.planning.grid import FINE, MOST_REPLICAS, Detail, Grid, lay
from regions.planning.instance import NEVER
from regions.planning.paths import Table
from regions.planning.search import search
from regions.planning.world import World


@dataclass(frozen=True, slots=True)
class Answer:
    """A searched world: its grid and the table; costs are in the search's units."""

    grid: Grid
    table: Table

    @property
    def least(self) -> int | None:
        """The least cost of finishing in time, or None."""
        least = int(self.table.done.min())
        return least if least < NEVER else None

    @property
    def cheapest(self) -> int:
        """The instant of the cheapest finish; of equal ones the earliest."""
        return int(self.table.done.argmin())

    @property
    def soonest(self) -> int:
        """The first instant by which the run can be done."""
        return int((self.table.done < NEVER).argmax())


def solve(world: World, detail: Detail = FINE) -> Answer:
    """Search a world. With more regions than the exact search can remember replicas for, it copies to the best of them.

    Those are the regions on the best path were every copy after the first free, then the cheapest on average.
    """
    grid = lay(world, detail, _replicas(world, detail))
    return Answer(grid, search(grid.instance))


def bound(world: World, detail: Detail, finish: datetime) -> int | None:
    """Return what no plan of the world that is done by then can cost less than (whole units), None if none is possible.

    Work is rounded the hopeful way, and with too many regions for exact replicas every copy after the first is free.
    """
    grid = lay(world, detail, supplied_by_one_copy(world), hopeful=True)
    table = search(grid.instance)
    last = int(np.searchsorted(grid.instance.instants, math.ceil(finish.timestamp())))
    least = int(table.done[: last + 1].min())
    return least if least < NEVER else None


def supplied_by_one_copy(world: World) -> dict[str, int] | None:
    """Return the replica bits of a bound: exact for few regions, one bit for all of them where they are many."""
    lacking = _lacking(world)
    return dict.fromkeys(lacking, 0) if len(lacking) > MOST_REPLICAS else None


def _lacking(world: World) -> list[str]:
    return [region for region in world.regions if any(region in load.missing for load in world.loads)]


def _replicas(world: World, detail: Detail) -> dict[str, int] | None:
    lacking = _lacking(world)
    if len(lacking) <= MOST_REPLICAS:
        return None
    shared = lay(world, detail, dict.fromkeys(lacking, 0))
    return {region: bit for bit, region in enumerate(_promising(shared, search(shared.instance), lacking))}


def _promising(grid: Grid, table: Table, lacking: list[str]) -> list[str]:
    """Return the regions worth copying to: those on the best path, then the cheapest on average."""
    visited: list[str] = []
    if int(table.done.min()) < NEVER:
        for arc in table.path(int(table.done.argmin())):
            name = grid.world.regions[arc.target]
            if name in lacking and name not in visited:
                visited.append(name)

    def average(region: str) -> float:
        rows = grid.instance.rent[[site.region == region for site in grid.world.sites]]
        return float(np.where(rows < NEVER, rows, np.nan_to_num(np.inf)).mean()) if len(rows) else float("inf")

    others = sorted((region for region in lacking if region not in visited), key=lambda name: (average(name), name))
    return sorted([*visited, *others][:MOST_REPLICAS])
