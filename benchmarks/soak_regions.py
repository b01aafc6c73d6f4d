"""Regions at full size: every zone of the tz database over two years of hours, 400 files, a fortnight's curve."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.generated import write_regions
from regions.load import SHIPPED, load
from regions.model import Holidays
from regions.offers import price_curve
from regions.zones import stretches, zone_names
from tests.properties.oracle import multiplier, readings
from tests.properties.worlds import place, random_tariff

START, SPAN = datetime(2025, 1, 1, tzinfo=UTC), timedelta(days=730)
_HOUR = timedelta(hours=1)


def run() -> dict[str, Any]:
    """Return what was checked, what disagreed (nothing may), and how long things took."""
    checked = disagreed = edges = 0
    first: str | None = None
    for zone in sorted(zone_names()):
        chance = random.Random(f"{zone} soak")
        rules = Holidays(country=chance.choice(["CN", "US", "DE", None]))
        region, offer = place(zone, random_tariff(chance, seconds=True), rules)
        curve = price_curve(region, offer, "on_demand", START, START + SPAN)
        covered = sum((span.end - span.start for span in curve), timedelta())
        spans = iter(curve)
        span = next(spans)
        wrong = int(covered != SPAN)
        for instant, factor, window in readings(region, START, START + SPAN, _HOUR):
            while span.end <= instant:
                span = next(spans)
            wrong += (span.price, span.window) != (factor, window)
            checked += 1
        for span in curve:
            for instant in (span.start, span.end - timedelta(seconds=1)):
                wrong += (span.price, span.window) != multiplier(region, instant)
                edges += 1
        disagreed += wrong
        first = first or (zone if wrong else None)
    return {
        "zones": len(zone_names()),
        "offset_changes": sum(len(stretches(zone, START, START + SPAN)) - 1 for zone in zone_names()),
        "hours_checked": checked,
        "edges_checked": edges,
        "disagreements": disagreed,
        "first_disagreement": first,
    } | _timings()


def _timings() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = write_regions(Path(name))
        load_seconds = _best(lambda: load(folder), 5)
    region = load(SHIPPED).regions["aliyun-cn-hangzhou"]
    start = datetime(2026, 10, 20, tzinfo=UTC)

    def curve() -> object:
        return price_curve(region, region.offers[0], "on_demand", start, start + timedelta(days=14))

    curve()
    took = [_best(curve, 1) for _ in range(200)]
    return {
        "load_400_files_seconds": round(load_seconds, 3),
        "curve_14_days_milliseconds": round(median(took) * 1000, 4),
    }


def _best(what: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        what()
        took.append(time.perf_counter() - began)
    return min(took)
