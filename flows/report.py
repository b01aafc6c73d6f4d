"""The report of a run: legs, money against staying at home, the proof that no step was lost, and the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from matplotlib.figure import Figure

from flows.journal import Journal
from flows.messages import Report
from flows.render.picture import Bar, Lane, Step, draw_relay
from flows.render.tables import leg_rows, money, size
from flows.rows import CheckpointRow, LegRow, RunRow
from regions.model import Catalog
from regions.money import Money
from regions.offers import price_curve


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the committed history is one unbroken line from step 0 to the last, each step in it once."""

    whole: bool
    steps: int
    redone: int
    """Steps that were trained, never committed, and trained again."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A simpler habit's cost, when it would have finished, and whether that keeps the deadline."""

    cost: Decimal
    finish: datetime
    feasible: bool


HABITS = {
    "home_now": "staying at home and starting at once",
    "home_off_peak": "staying at home in its cheap hours",
    "cheapest_now": "the region that was cheapest at the start, without moving",
}
"""The baselines of a plan, in words."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """All a person asks after a run."""

    run: RunRow
    legs: tuple[LegRow, ...]
    cost: Decimal
    currency: str
    baselines: Mapping[str, Compared]
    """What simpler habits would have cost, by their names in a plan; those that were possible at all."""
    loss: float | None
    losses: tuple[tuple[int, float], ...]
    sample: str
    handed_bytes: int
    proof: Proof
    charges: tuple[Mapping[str, Any], ...]
    by_basis: Mapping[str, Decimal]


def make_report(
    run: RunRow,
    legs: Sequence[LegRow],
    checkpoints: Sequence[CheckpointRow],
    charges: Sequence[Mapping[str, Any]],
    baselines: Mapping[str, Mapping[str, Any] | None],
    currency: str,
) -> RunReport:
    """Put the report together from the journal's rows and the plan's baselines (each {"cost", ...} or None)."""
    reports = [Report.model_validate(leg.report) for leg in legs if leg.report is not None]
    trained = [report for report in reports if report.losses]
    by_basis: dict[str, Decimal] = {}
    for charge in charges:
        by_basis[charge["basis"]] = by_basis.get(charge["basis"], Decimal(0)) + charge["total"]
    return RunReport(
        run=run,
        legs=tuple(leg for leg in legs if leg.outcome != "dismissed"),
        cost=sum((charge["total"] for charge in charges), Decimal(0)),
        currency=currency,
        baselines={
            name: Compared(Decimal(base["cost"]), datetime.fromisoformat(base["finish"]), base["feasible"])
            for name, base in baselines.items()
            if base is not None
        },
        loss=trained[-1].loss if trained else None,
        losses=tuple(point for report in trained for point in report.losses),
        sample=next((report.sample for report in reversed(reports) if report.sample), ""),
        handed_bytes=sum(report.handed_bytes for report in reports),
        proof=prove(legs, checkpoints),
        charges=tuple(charges),
        by_basis=by_basis,
    )


def of_run(journal: Journal, run: str, catalog: Catalog) -> RunReport:
    """Return the report of a run as the journal has it; its baselines are those of its first plan."""
    first = journal.plan(run, 1) or {"baselines": {}, "currency": ""}
    return make_report(
        journal.run(run),
        journal.legs(run),
        journal.checkpoints(run),
        journal.charges(run),
        first["baselines"],
        first["currency"],
    )


def picture(report: RunReport, catalog: Catalog) -> Figure:
    """Draw the run's legs over the price curves of every region it could have used."""
    begin, end = span_of(report)
    used = {leg.region: leg for leg in report.legs}
    lanes = []
    for name in sorted(used, key=list(catalog.regions).index):
        region, leg = catalog.regions[name], used[name]
        offer = region.offer(leg.offer)
        assert offer is not None
        rate = catalog.fx.convert(Money(Decimal(1), region.currency), report.currency, begin.date()).amount
        curve = price_curve(region, offer, leg.market, begin, end)  # type: ignore[arg-type]
        steps = [Step(span.start, span.end, float(span.price * rate), span.window) for span in curve]
        lanes.append(Lane(name, region.timezone, steps))
    bars = [
        Bar(f"leg {leg.number}", leg.region, leg.started_at, leg.ended_at)
        for leg in report.legs
        if leg.started_at is not None and leg.ended_at is not None
    ]
    title = f"{report.run.id}: {len(bars)} legs, {money(report.cost, report.currency)}"
    return draw_relay(title, lanes, bars, report.currency)


def prove(legs: Sequence[LegRow], checkpoints: Sequence[CheckpointRow]) -> Proof:
    """Check that each leg that trained began at the very step where the history stood, stage by stage."""
    lines, whole, steps, redone = [], True, 0, 0
    for stage in dict.fromkeys(leg.stage for leg in legs):
        at = 0
        for leg in legs:
            if leg.stage != stage or leg.from_step is None or leg.outcome == "dismissed":
                continue
            commits = [row.step for row in checkpoints if row.stage == stage and row.term == leg.number]
            fits = leg.from_step == at and all(step >= at for step in commits)
            whole = whole and fits
            reached = max(commits, default=at)
            seen = int((leg.heartbeat or {}).get("step", reached))
            redone += max(0, seen - reached)
            lines.append(
                f"leg {leg.number} in {leg.region}: step {leg.from_step} to {reached}" + ("" if fits else " (!)")
            )
            at = reached
        steps += at
    return Proof(whole, steps, redone, tuple(lines))


def markdown(report: RunReport, zones: Mapping[str, str]) -> str:
    """Return the report as a page."""
    rows = leg_rows(report.legs, report.charges, zones)
    head = list(rows[0]) if rows else []
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    table += ["| " + " | ".join(row.values()) + " |" for row in rows]
    return "\n".join([f"# {report.run.id}: {report.run.state}", "", *summary(report), "", *table, ""])


def summary(report: RunReport) -> list[str]:
    """Return the findings, a line each, the most important first."""
    lines = [f"- Cost: **{money(report.cost, report.currency)}**"]
    for name, habit in HABITS.items():
        if (base := report.baselines.get(name)) is not None:
            late = "" if base.feasible else f"; done {base.finish:%d %b %H:%M}Z, after the deadline"
            lines.append(f"- Against {habit}: {money(base.cost, report.currency)}{_less(report.cost, base.cost)}{late}")
    proof = report.proof
    word = "No step was lost" if proof.whole else "THE HISTORY IS BROKEN"
    lines.append(f"- {word}: {proof.steps} steps, each once in the history; {proof.redone} trained again after faults")
    if report.run.final_digest:
        lines.append(f"- Final weights: BLAKE3 {report.run.final_digest}")
    if report.losses:
        lines.append(
            f"- Loss: {report.losses[0][1]:.3f} at step {report.losses[0][0]}, {report.losses[-1][1]:.3f} at the end"
        )
    lines.append(f"- Handed over between regions: {size(report.handed_bytes)}")
    basis = ", ".join(f"{name} {money(amount, report.currency)}" for name, amount in sorted(report.by_basis.items()))
    lines.append(f"- The prices behind the cost rest on: {basis or 'nothing was charged'}")
    return lines


def span_of(report: RunReport, margin: timedelta = timedelta(hours=3)) -> tuple[datetime, datetime]:
    """Return the run-clock span its picture should show."""
    starts = [leg.started_at for leg in report.legs if leg.started_at]
    ends = [leg.ended_at for leg in report.legs if leg.ended_at]
    begin = min([report.run.submitted_at, *starts])
    end = max([report.run.ended_at or begin, *ends])
    return begin - margin, end + margin


def _less(cost: Decimal, baseline: Decimal) -> str:
    if baseline <= 0:
        return ""
    share = 100 * (baseline - cost) / baseline
    return f" ({share:.1f} % less)" if share >= 0 else f" ({-share:.1f} % more)"
