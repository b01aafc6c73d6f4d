"""Charges of one leg: exact, split where prices change, billed once, and never more after it has ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from flows.ledger import charges_of
from flows.messages import Report, Span
from flows.rows import LegRow, RunRow
from regions.errors import PlanError
from regions.load import load
from regions.model import Catalog

T0 = datetime(2026, 11, 30, 13, 0, tzinfo=UTC)

REGION = """
id: {id}
provider: local
timezone: Etc/UTC
currency: {currency}
residency: {{jurisdiction: local, export_allowed: true}}
tariff:
  windows:
    - {{name: night, start: "22:00", end: "08:00", multiplier: "0.5", basis: claim, source: t, as_of: 2026-11-30}}
offers:
  - id: cpu
    accelerator: CPU
    vcpus: 1
    count: 1
    billing: {{increment: {increment}, minimum: {minimum}}}
    markets: {{on_demand: {{price: "{price}", basis: list, source: t, as_of: 2026-11-30}}}}
storage: {{cold: {{url: "file:///tmp/none"}}}}
"""
LINKS = 'links: [{from: a, to: b, price_per_gb: "0.50", currency: CNY, bandwidth: 1 Gbit/s, basis: claim, source: t}]\n'
FX = 'rates: [{from: USD, to: CNY, rate: "7.20", as_of: 2026-11-01, basis: list, source: t}]\n'


def catalog(
    folder: Path, *, fx: bool = True, price: str = "2.00", increment: str = "1 s", minimum: str = "60 s"
) -> Catalog:
    texts = {
        "a.yaml": REGION.format(id="a", currency="CNY", price="14.00", increment="1 s", minimum="0 s"),
        "b.yaml": REGION.format(id="b", currency="USD", price=price, increment=increment, minimum=minimum),
        "links.yaml": LINKS,
        **({"fx.yaml": FX} if fx else {}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return load(folder)


def a_leg(region: str = "b", width: int = 1) -> LegRow:
    nothing: dict[str, Any] = dict.fromkeys(
        ("outcome", "flow_run", "opened_real", "started_at", "ended_at", "started_real", "ended_real", "from_step",
         "to_step", "pid", "trainer_pid", "heartbeat", "heartbeat_real", "report")
    )  # fmt: skip
    return LegRow(
        run="r-1", number=1, stage="s", region=region, offer="cpu", market="on_demand", width=width, catalog="c",
        state="open", reason="", planned_start=T0, planned_end=T0, launched_real=T0, estimated=False, **nothing,
    )  # fmt: skip


def a_run() -> RunRow:
    return RunRow(
        id="r-1", flow_run="f", recipe="r", team="nlp", priority="normal", request={}, dataset=None, catalog="c",
        submitted_at=T0, submitted_real=T0, ended_at=None, state="running", reason="", term=1, stage="s", cancel=False,
        driver_seen=None, final_digest=None, continues=None,
    )  # fmt: skip


def a_report(start: datetime, end: datetime, *phases: tuple[str, datetime, datetime], received: int = 0) -> Report:
    spans = tuple(
        Span(phase=name, start_at=begin, end_at=stop, start_real=begin, end_real=stop) for name, begin, stop in phases
    )
    return Report(
        number=1, outcome="handed_off", reason="", from_step=0, to_step=1, commits=(), phases=spans, started_at=start,
        ended_at=end, started_real=start, ended_real=end, received={"a": received} if received else {},
        handed_bytes=received, handed_seconds=0, pid=1,
    )  # fmt: skip


def charged(of: Catalog, start: datetime | None, end: datetime | None, **more: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"currency": "CNY", "report": None, "estimated": False} | more
    return charges_of(given.pop("leg", a_leg()), a_run(), of, start=start, end=end, **given)


def test_rent_is_split_where_the_price_changes_and_sums_exactly(tmp_path: Path) -> None:
    """20:00 to 23:30: two hours at 2.00 and one and a half at 1.00 USD, at 7.20 CNY."""
    start = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
    lines = charged(catalog(tmp_path), start, start + timedelta(hours=3, minutes=30))
    assert [(line["window"], line["amount"], line["basis"]) for line in lines] == [
        (None, Decimal("4"), "list"),
        ("night", Decimal("1.5"), "claim"),
    ]
    assert sum(line["total"] for line in lines) == Decimal("39.60")
    assert {line["rate"] for line in lines} == {Decimal("7.2")}


def test_minimum_and_increment_count_once_per_leg(tmp_path: Path) -> None:
    of = catalog(tmp_path, increment="1 h", minimum="2 h")
    short = charged(of, T0, T0 + timedelta(minutes=5))
    longer = charged(of, T0, T0 + timedelta(hours=2, minutes=1))
    assert sum(line["quantity"] for line in short) == 2
    assert sum(line["quantity"] for line in longer) == 3


def test_every_second_has_one_phase(tmp_path: Path) -> None:
    minute = timedelta(minutes=1)
    end = T0 + 30 * minute
    report = a_report(
        T0, end, ("handoff", T0 + 2 * minute, T0 + 5 * minute), ("train", T0 + 5 * minute, T0 + 28 * minute)
    )
    lines = charged(catalog(tmp_path), T0, end, report=report)
    assert [line["what"] for line in lines] == ["startup", "handoff", "train", "idle"]
    assert sum((line["end_at"] - line["start_at"] for line in lines), timedelta()) == 30 * minute


def test_a_leg_without_a_last_word_is_estimated_and_named_so(tmp_path: Path) -> None:
    (line,) = charged(catalog(tmp_path), T0, T0 + timedelta(minutes=7), estimated=True)
    assert (line["what"], line["estimated"]) == ("unreported", True)


def test_a_leg_that_never_lived_costs_nothing(tmp_path: Path) -> None:
    assert charged(catalog(tmp_path), None, None) == []


def test_transfer_is_charged_by_the_source_regions_link(tmp_path: Path) -> None:
    report = a_report(T0, T0 + timedelta(hours=1), received=3 * 10**9)
    lines = charged(catalog(tmp_path), T0, T0 + timedelta(hours=1), report=report)
    (transfer,) = [line for line in lines if line["unit"] == "GB"]
    assert (transfer["amount"], transfer["currency"], transfer["what"]) == (Decimal("1.5"), "CNY", "transfer from a")


def test_two_currencies_are_never_added_without_a_rate(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"USD.*CNY"):
        charged(catalog(tmp_path, fx=False), T0, T0 + timedelta(hours=1))
