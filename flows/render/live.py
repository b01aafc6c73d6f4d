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
    step = step_now(seen.legs)
    bar = Table.grid(expand=True, padding=(0, 1))
    bar.add_column(ratio=1)
    bar.add_column(justify="right", no_wrap=True)
    bar.add_row(
        ProgressBar(total=max(1, seen.work), completed=min(step, seen.work)), f"{step:,} of {seen.work:,} steps"
    )
    return Panel(
        Group(
            _places(seen),
            Text(""),
            bar,
            Text(trail(seen.legs), overflow="ellipsis", no_wrap=True),
            Text(totals(seen)),
            Text(f"Prefect UI: {seen.ui}", style="dim"),
        ),
        title=f"{seen.run.id}: {seen.run.state}",
        subtitle=f"run clock {seen.now:%Y-%m-%d %H:%M}Z",
        title_align="left",
    )


def _places(seen: Watched) -> Table:
    """Return a line per region. Widths are fixed where values change, so that nothing jumps between two looks."""
    table = Table(expand=True, box=None, pad_edge=False, header_style="dim")
    table.add_column("region", min_width=max(map(len, seen.zones), default=6))
    table.add_column("local time", min_width=10)
    table.add_column("price now", justify="right", min_width=12)
    table.add_column("window", min_width=8)
    table.add_column("leg", justify="right", min_width=3)
    table.add_column("doing", ratio=1, min_width=9, no_wrap=True, overflow="ellipsis")
    for column in ("step", "loss", "samples/s"):
        table.add_column(column, justify="right", min_width=max(6, len(column)))
    for region, zone in seen.zones.items():
        price, leg = seen.prices.get(region), _newest(seen.legs, region)
        stands = leg is not None and leg.state == "open"
        table.add_row(
            Text(region, style="bold cyan" if stands else ""),
            f"{seen.now.astimezone(ZoneInfo(zone)):%a %H:%M}",
            "-" if price is None else f"{money(price.amount, price.currency)}/h",
            Text("", "") if price is None or price.window is None else Text(price.window, style="green"),
            *_leg_cells(leg),
            style="dim" if leg is not None and leg.state == "ended" else "",
        )
    return table


def _leg_cells(leg: LegRow | None) -> tuple[RenderableType, ...]:
    """Return leg, doing, step, loss and samples/s of a region's newest leg."""
    if leg is None:
        return ("-", "-", "", "", "")
    if leg.state == "ended":
        return (str(leg.number), _doing(leg), "" if leg.to_step is None else f"{leg.to_step:,}", "", "")
    beat = leg.beat
    return (
        str(leg.number),
        Text(_doing(leg), style="bold"),
        f"{beat.step:,}" if beat else "",
        f"{beat.loss:.3f}" if beat and beat.loss is not None else "",
        f"{beat.samples_per_second:,.0f}" if beat and beat.samples_per_second else "",
    )


def trail(legs: Sequence[LegRow]) -> str:
    """Return the way the run has taken: each leg's region and the step it handed on, the newest last."""
    way = []
    for leg in legs:
        if leg.state == "ended" and leg.to_step is not None:
            way.append(f"{leg.region} {leg.to_step:,}")
        elif leg.state == "open":
            way.append(f"{leg.region} ...")
    return "way: " + (" > ".join(way) if way else "no leg has begun")


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
