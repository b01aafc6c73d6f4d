"""P34: absent, null and "" are no price and the region is not taken, by name; "0" is free and shown as free."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.commands.regions import app
from regions.model import Catalog
from tests.regions.files import catalog, text, write
from tests.regions.wishes import planned

LINKS = "default: {price_per_gb: '0', currency: USD, bandwidth: 1 Gbit/s, basis: list, source: test}\n"


def two(folder: Path, market: str) -> Catalog:
    return catalog(folder, a=text("a", price='"2.00"'), b=text("b", market=market), links=LINKS)


@pytest.mark.parametrize(
    "market", ["{basis: list}", "null", "{price: null}", '{price: ""}', '""', "{price: {price: null}}"]
)
def test_without_a_price_b_is_not_taken_by_name(tmp_path: Path, market: str) -> None:
    plan = planned(two(tmp_path, market), "2026-12-01T00:00Z", 60, home="a")
    assert [leg.region for leg in plan.legs] == ["a"]
    assert plan.cost == Decimal(2)
    reasons = [rejection.reason for rejection in plan.rejected if rejection.region == "b"]
    assert any("no price for" in reason for reason in reasons), reasons


@pytest.mark.parametrize("market", ["{price: null}", '{price: ""}'])
def test_and_its_curve_is_refused_by_name(tmp_path: Path, market: str) -> None:
    two(tmp_path, market)
    result = CliRunner().invoke(app, ["prices", "b", "--offer", "gpu", "--catalog", str(tmp_path)])
    assert result.exit_code == 1
    assert "no price for gpu" in str(result.exception)


def test_an_explicit_zero_is_taken_and_marked_as_free(tmp_path: Path) -> None:
    plan = planned(two(tmp_path, '{price: "0", basis: list}'), "2026-12-01T00:00Z", 60, home="a")
    assert [leg.region for leg in plan.legs] == ["b"]
    assert plan.cost == 0
    shown = CliRunner().invoke(app, ["prices", "b", "--offer", "gpu", "--catalog", str(tmp_path)])
    assert "0 (free)" in shown.stdout
    spans = json.loads(CliRunner().invoke(app, ["prices", "b", "--catalog", str(tmp_path), "--json"]).stdout)
    assert [span["price"] for span in spans] == ["0"]


def test_an_unquoted_zero_is_asked_to_be_meant(tmp_path: Path) -> None:
    write(tmp_path, b=text("b", market="{price: 0}"))
    faults = json.loads(CliRunner().invoke(app, ["check", str(tmp_path), "--json"]).stdout)["faults"]
    assert [fault["hint"] for fault in faults] == ['quote it: "0"']
