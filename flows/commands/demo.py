"""`nightrelay demo`: a real relay over three regions on this machine, watched live, reported, and gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from flows.commands.output import WIDTH, JsonFlag, emit
from flows.demo import Demo, Outcome
from flows.render.live import Watched, frame, line
from flows.render.tables import leg_rows, size
from flows.report import summary
from flows.settings import Settings
from flows.shipped import RUN


def demo(
    speed: Annotated[float, typer.Option(help="How many times as fast as real time the run clock goes.")] = 1000.0,
    run: Annotated[str, typer.Option(help="The run to submit: an id, a path or a URL.")] = RUN,
    out: Annotated[Path, typer.Option(help="Where the report and its picture are written.")] = Path("nightrelay-demo"),
    as_json: JsonFlag = False,
) -> None:
    """Run the main job on this machine: three regions, a real relay, its report. It leaves nothing running."""
    console = Console(highlight=False, stderr=as_json)
    if not console.is_terminal:
        console.width = WIDTH
    settings = Settings.read(os.environ)
    made = Demo(settings, os.environ, speed, lambda text: console.print(text))
    with made.running(settings.catalog) as running:
        made.submit(run)
        if console.is_terminal:
            with Live(console=console, refresh_per_second=4, transient=True) as live:
                ended = made.watch(running, lambda seen: live.update(frame(seen)))
        else:
            ended = made.watch(running, _Lines(console).show)
        outcome = made.report(running, ended, out)
        console.print("stopping what was started")
    emit(_document(outcome), lambda target: _tell(target, outcome), as_json)


class _Lines:
    """Plain lines for where nobody looks at a terminal: one when something changes, else one every few seconds."""

    def __init__(self, console: Console, every: int = 6) -> None:
        self._console = console
        self._every = every
        self._looks = 0
        self._known: tuple[object, ...] = ()

    def show(self, seen: Watched) -> None:
        now = tuple((leg.number, leg.state, leg.outcome) for leg in seen.legs)
        if now != self._known or self._looks % self._every == 0:
            self._console.print(line(seen), soft_wrap=True)
        self._known = now
        self._looks += 1


def _document(outcome: Outcome) -> dict[str, object]:
    told = outcome.report
    return {
        "run": told.run.id,
        "state": told.run.state,
        "legs": [
            {"leg": leg.number, "region": leg.region, "from_step": leg.from_step, "to_step": leg.to_step}
            for leg in told.legs
        ],
        "cost": told.cost,
        "currency": told.currency,
        "baselines": {name: base.cost for name, base in told.baselines.items()},
        "loss": told.loss,
        "steps": told.proof.steps,
        "no_step_lost": told.proof.whole,
        "final_digest": told.run.final_digest,
        "report": str(outcome.folder / "report.md"),
        "peak_bytes": outcome.peak_bytes,
    }


def _tell(console: Console, outcome: Outcome) -> None:
    told = outcome.report
    rows = leg_rows(told.legs, told.charges, outcome.zones)
    table = Table(box=None, header_style="dim")
    for column in rows[0]:
        table.add_column(column, justify="right" if column in ("leg", "steps", "cost") else "left")
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
    for finding in summary(told):
        console.print(finding.replace("**", ""), soft_wrap=True)
    if told.sample:
        console.print("The model writes:", style="dim")
        console.print(told.sample.strip(), markup=False, soft_wrap=True)
    console.print(f"Report and picture: {outcome.folder}/report.md, relay.svg, relay.png")
    if outcome.peak_bytes:
        console.print(f"Everything together took at most {size(outcome.peak_bytes)} of memory", style="dim")
