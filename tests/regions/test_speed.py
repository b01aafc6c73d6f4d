"""How long it takes: reported by pytest-benchmark, not asserted. Wanted: 400 files in 2 s, a 14-day curve in 1 ms."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.generated import write_regions
from regions.load import SHIPPED, load
from regions.offers import price_curve, price_of
from tests.regions.files import at


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_regions(tmp_path_factory.mktemp("regions"))


def test_four_hundred_region_files(benchmark, folder: Path) -> None:  # type: ignore[no-untyped-def]
    loaded = benchmark.pedantic(load, args=(folder,), rounds=2, warmup_rounds=1)
    assert len(loaded.regions) == 400


def test_a_curve_of_fourteen_days(benchmark) -> None:  # type: ignore[no-untyped-def]
    region = load(SHIPPED).regions["aliyun-cn-hangzhou"]
    start = at("2026-10-20T00:00Z")
    curve = benchmark(price_curve, region, region.offers[0], "on_demand", start, start + timedelta(days=14))
    assert len(curve) > 20


def test_a_price_over_a_clock_change(benchmark) -> None:  # type: ignore[no-untyped-def]
    region = load(SHIPPED).regions["local-berlin"]
    start = at("2026-10-24T20:00Z")
    cost = benchmark(price_of, region, region.offers[0], "on_demand", start, start + timedelta(hours=12))
    assert str(cost) == "16.2 EUR"
