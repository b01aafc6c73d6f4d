"""What a person watches while a run goes on: every region's hour and price, where the leg is, what it costs so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from flows.render.tables import money, size
from flows.rows import LegRow, RunRow

PHASES = {
    "starting": "starting",
    "waiting": "waiting for the baton",
    "precopy": "copying ahead",
    "handoff": "taking over",
    "train": "training",
    "save": "saving",
    "report": "reporting",
}


@dataclass(frozen=True, slots=True)
class PriceNow:
    """A region's price at an instant: `window` names the tariff window it comes from."""

    amount: Decimal
    currency: str
    window: str | None


@dataclass(frozen=True, slots=True)
class Watched:
    """One look at a run. `cost` is what the ledger has; `accrued` what the standing leg has cost since it began."""

    run: RunRow
    legs: Sequence[LegRow]
    now: datetime
    zones: Mapping[str, str]
    prices: Mapping[str, PriceNow | None]
    cost: Decimal
    accrued: Decimal
    currency: str
    work: int
    ui: str


def frame(seen: Watched) -> RenderableType:
    """Return the picture of one look, for rich's Live."""
    table = Table(expand=True, box=None, pad_edge=False, header_style="dim")
    for column in ("region", "local time", "price now", "leg", "doing", "step", "loss", "samples/s"):
        table.add_column(column, justify="right" if column in ("step", "loss", "samples/s") else "left")
    for region, zone in seen.zones.items():
        leg = _newest(seen.legs, region)
        beat = leg.beat if leg is not None and leg.state != "ended" else None
        price = seen.prices.get(region)
        doing = (
            Text("-", style="dim") if leg is None else Text(_doing(leg), style="" if leg.state == "ended" else "bold")
        )
        table.add_row(
            Text(region, style="bold cyan" if beat is not None and leg is not None and leg.state == "open" else ""),
            f"{seen.now.astimezone(ZoneInfo(zone)):%a %H:%M}",
            "-"
            if price is None
            else f"{money(price.amount, price.currency)}/h" + (f" ({price.window})" if price.window else ""),
            "-" if leg is None else str(leg.number),
            doing,
            str(beat.step) if beat else "",
            f"{beat.loss:.3f}" if beat and beat.loss is not None else "",
            f"{beat.samples_per_second:,.0f}" if beat and beat.samples_per_second else "",
        )
    step = step_now(seen.legs)
    bar = Table.grid(expand=True, padding=(0, 1))
    bar.add_row(ProgressBar(total=max(1, seen.work), completed=min(step, seen.work)), f"{step} of {seen.work} steps")
    return Panel(
        Group(table, Text(""), bar, Text(totals(seen)), Text(f"Prefect UI: {seen.ui}", style="dim")),
        title=f"{seen.run.id}: {seen.run.state}",
        subtitle=f"run clock {seen.now:%Y-%m-%d %H:%M}Z",
        title_align="left",
    )


def totals(seen: Watched) -> str:
    """Return the line of sums: bytes handed over, money so far."""
    handed = sum(leg.beat.handed_bytes for leg in seen.legs if leg.beat is not None)
    return f"handed over {size(handed)}   money so far {money(seen.cost + seen.accrued, seen.currency)}"


def line(seen: Watched) -> str:
    """Return one plain line for where stdout is no terminal."""
    where = [
        f"{leg.region} leg {leg.number} {_doing(leg)} step {leg.beat.step}"
        + (f" loss {leg.beat.loss:.3f}" if leg.beat.loss is not None else "")
        + (f" {leg.beat.samples_per_second:,.0f} samples/s" if leg.beat.samples_per_second else "")
        for leg in seen.legs
        if leg.state != "ended" and leg.beat is not None
    ]
    hours = " ".join(f"{region}={seen.now.astimezone(ZoneInfo(zone)):%H:%M}" for region, zone in seen.zones.items())
    return f"{hours}  {'; '.join(where) or seen.run.state}  {totals(seen)}"


def step_now(legs: Sequence[LegRow]) -> int:
    """Return the furthest step known: of a live leg's heartbeat, or where the last one ended."""
    live = [leg.beat.step for leg in legs if leg.state == "open" and leg.beat is not None]
    ended = [leg.to_step or 0 for leg in legs if leg.state == "ended"]
    return max([*live, *ended], default=0)


def _newest(legs: Sequence[LegRow], region: str) -> LegRow | None:
    here = [leg for leg in legs if leg.region == region]
    return here[-1] if here else None


def _doing(leg: LegRow) -> str:
    if leg.state == "ended":
        return (leg.outcome or "ended").replace("_", " ")
    return PHASES.get(leg.beat.phase, leg.beat.phase) if leg.beat is not None else "asked for"
