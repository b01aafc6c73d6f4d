"""P06: what YAML would misread is refused with the advice to quote it; a date is read as a person means it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from typer.testing import CliRunner

from flows.commands.regions import app
from regions.load import load
from tests.regions.files import text, write

WRONG = text(
    price="1_000",
    holidays="{country: NO}",
    windows="{name: night, start: 22:00, end: 06:00, multiplier: '0.5', as_of: 2025-01-01}",
)
ADVICE = {"start": "22:00", "end": "06:00", "country": "NO", "price": "1000"}


def test_each_is_refused_with_its_line_and_advice(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["check", str(write(tmp_path, here=WRONG)), "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    found = {fault["field"].rpartition(".")[2]: fault for fault in document["faults"]}
    # 06:00 happens to stay text in every reader, so it is taken as the person means it.
    assert set(found) == {"start", "country", "price"}
    for field, fault in found.items():
        assert f'quote it: "{ADVICE[field]}"' in fault["hint"]
        assert str(fault["line"]) in {str(n) for n, line in enumerate(WRONG.splitlines(), 1) if fault["got"] in line}
    assert "1320" not in result.stdout
    assert "False" not in result.stdout


def test_quoted_they_are_what_they_say_and_the_date_needs_no_quotes(tmp_path: Path) -> None:
    right = WRONG.replace("1_000", '"1000"').replace("NO", '"NO"').replace("22:00", '"22:00"')
    region = load(write(tmp_path, here=right)).regions["here"]
    [window] = region.tariff.windows
    assert (window.start, window.end, window.as_of) == (22 * 3600, 6 * 3600, date(2025, 1, 1))
    assert region.holidays.country == "NO"
    assert region.offers[0].markets.on_demand is not None
    assert region.offers[0].markets.on_demand.price is not None
    assert region.offers[0].markets.on_demand.price.amount == 1000
