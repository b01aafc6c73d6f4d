"""The search against the oracle, and a path against its own cost."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from regions.planning.instance import NEVER, Instance
from regions.planning.paths import Table, arc_cost
from regions.planning.search import search
from tests.regions.planning.instances import random_instance
from tests.regions.planning.oracle import optimum

WORLDS = 400 if os.environ.get("NIGHTRELAY_SOAK") else 24


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_search_finds_the_optimum_of_the_oracle(seed: int) -> None:
    instance = random_instance(seed)
    found = int(search(instance).done.min())
    assert (found if found < NEVER else None) == optimum(instance)


@pytest.mark.parametrize("seed", range(24))
def test_every_path_of_the_frontier_costs_what_the_table_says(seed: int) -> None:
    table = search(random_instance(seed))
    for finish, cost in table.frontier():
        path = table.path(finish)
        assert_joined(table.instance, table, finish)
        assert sum(arc_cost(table.instance, arc) for arc in path) == cost


def assert_joined(instance: Instance, table: Table, finish: int) -> None:
    path = table.path(finish)
    assert path[0].begin == 0 and path[0].work[0] == instance.first_work
    assert path[-1].end == finish and path[-1].work[1] == instance.work
    for before, after in pairwise(path):
        assert before.end == after.begin and before.work[1] == after.work[0] and before.target == after.region
