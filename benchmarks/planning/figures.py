"""Planning measured: each entry says what was asked, what came out, and in how many CPU seconds of one core."""

from __future__ import annotations

import os
import random
import resource
import statistics
import time
from typing import Any

from benchmarks.planning.worlds import START, catalog, runs
from benchmarks.planning.worlds import run as a_run
from regions.planning.grid import Detail, lay
from regions.planning.instance import NEVER
from regions.planning.joint import Effort, Wanted, insert, plan_many
from regions.planning.problem import Situation
from regions.planning.search import search
from regions.planning.single import plan
from regions.planning.world import look

SOAK = bool(os.environ.get("NIGHTRELAY_SOAK"))


def run() -> dict[str, Any]:
    """Return all figures: small sizes, or the issue's own with NIGHTRELAY_SOAK."""
    return {"exact": exact(), "speed": speed(), "insertion": insertion(), "joint": joint(), "harm": harm()}


def exact(worlds: int | None = None) -> dict[str, Any]:
    """Compare the search's optimum with an independent MILP on random worlds."""
    from tests.regions.planning.instances import random_instance
    from tests.regions.planning.oracle import optimum

    count = worlds or (400 if SOAK else 40)
    wrong = infeasible = 0
    for seed in range(count):
        instance = random_instance(seed)
        found = int(search(instance).done.min())
        best = optimum(instance)
        wrong += (found if found < NEVER else None) != best
        infeasible += best is None
    return {"instances": count, "mismatches": wrong, "infeasible_in_both": infeasible}


def speed() -> list[dict[str, Any]]:
    """Time the search alone (grid laid before) for one replica state, two weeks ahead."""
    sizes = [(10, 2, 336, 200), (20, 3, 672, 500)] + ([(20, 3, 1344, 1000)] if SOAK else [])
    rows = []
    for regions, kinds, slots, quanta in sizes:
        request = a_run("speed", 120, 14, kinds)
        world = look(request, catalog(regions, kinds, 1), Situation(), START, START.replace(day=14, month=12))
        instance = lay(world, Detail(slots, quanta, 10**12)).instance
        seconds = []
        for _ in range(9 if SOAK else 3):
            begin = time.process_time()
            search(instance)
            seconds.append(time.process_time() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        rows.append(
            {"regions": regions, "accelerators": kinds, "slots": instance.slots, "quanta": instance.work,
             "cpu_seconds_median": round(statistics.median(seconds), 3), "peak_rss_mb": peak}
        )  # fmt: skip
    return rows


def insertion() -> dict[str, Any]:
    """Time the planning of one arriving run into an empty catalog's capacity (10 regions)."""
    prices = catalog(10, 1, 2)
    seconds = []
    for request in runs(9, 3):
        begin = time.process_time()
        insert(Wanted(request), (), prices, START)
        seconds.append(time.process_time() - begin)
    return {"runs": len(seconds), "cpu_seconds_median": round(statistics.median(seconds), 3)}


def joint() -> list[dict[str, Any]]:
    """Plan many runs on scarce capacity and state the certified gap."""
    rows = []
    for count, regions in [(10, 3)] + ([(30, 4), (100, 10)] if SOAK else []):
        prices = catalog(regions, 1, 4, quota=10)
        effort = Effort(price_steps=15, rounds=20, ruin=4, detail=Detail(slots=120, quanta=400, states=1_500_000))
        begin = time.process_time()
        made = plan_many([Wanted(request) for request in runs(count, 5)], prices, START, random.Random(0), effort)
        rows.append(
            {
                "runs": count,
                "regions": regions,
                "unplaced": len(made.unplaced),
                "cost": float(made.cost),
                "lower_bound": None if made.lower_bound is None else float(made.lower_bound),
                "gap": None if made.gap is None else round(float(made.gap), 5),
                "cpu_seconds": round(time.process_time() - begin, 1),
            }
        )
    return rows


def harm() -> dict[str, Any]:
    """Compare plans with running at home at once, data-heavy runs among them; the worst ratio must not pass 1.01."""
    rows = []
    for size in ("0 B", "200 GB", "10 TB"):
        for days in (4.0, 7.0):
            request = a_run("harm", 72, days, 1, dataset=size, width=8)
            made = plan(request, catalog(4, 1, 6), Situation(), START)
            home, now = made.baselines["home_now"], made.baselines["cheapest_now"]
            assert made.cost is not None and home is not None and now is not None, "made to be feasible"
            rows.append(
                {
                    "dataset": size,
                    "days": days,
                    "plan_to_home_now": round(float(made.cost / home.cost), 4),
                    "cheapest_now_to_home_now": round(float(now.cost / home.cost), 4),
                }
            )
    return {"cases": rows, "worst": max(row["plan_to_home_now"] for row in rows)}
