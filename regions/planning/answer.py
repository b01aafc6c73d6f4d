"""A world searched: exactly, or between a bound and a checked plan where too many regions would need new replicas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regions.planning.grid import FINE, MOST_REPLICAS, Detail, Grid, lay
from regions.planning.instance import NEVER
from regions.planning.search import Table, search
from regions.planning.world import World


@dataclass(frozen=True, slots=True)
class Answer:
    """A searched world: the table, and a bound below every plan on its grid (in the search's units)."""

    grid: Grid
    table: Table
    bound: Table | None = None

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
    """Search a world. With more regions than the exact search can remember replicas for, bound it from below as well.

    The bound lets every copy after the first be free; the plan may copy to those regions the bound's best path and the
    cheapest prices point to.
    """
    lacking = [region for region in world.regions if any(region in load.missing for load in world.loads)]
    if len(lacking) <= MOST_REPLICAS:
        grid = lay(world, detail)
        return Answer(grid, search(grid.instance))
    shared = lay(world, detail, dict.fromkeys(lacking, 0))
    bound = search(shared.instance)
    chosen = _promising(shared, bound, lacking)
    grid = lay(world, detail, {region: bit for bit, region in enumerate(chosen)})
    return Answer(grid, search(grid.instance), bound)


def _promising(grid: Grid, bound: Table, lacking: list[str]) -> list[str]:
    """Return the regions worth copying to: those on the bound's best path, then the cheapest on average."""
    visited: list[str] = []
    if int(bound.done.min()) < NEVER:
        for arc in bound.path(int(bound.done.argmin())):
            name = grid.world.regions[arc.target]
            if name in lacking and name not in visited:
                visited.append(name)

    def average(region: str) -> float:
        rows = grid.instance.rent[[site.region == region for site in grid.world.sites]]
        return float(np.where(rows < NEVER, rows, np.nan_to_num(np.inf)).mean()) if len(rows) else float("inf")

    others = sorted((region for region in lacking if region not in visited), key=lambda name: (average(name), name))
    return sorted([*visited, *others][:MOST_REPLICAS])
