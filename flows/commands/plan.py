"""`nightrelay plan RUN`: the legs a run would take, their cost, why other places lost, what would be nearest."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit, stderr
from flows.datasets import dataset_of
from flows.render.tables import money, plan_rows, size
from flows.requests import ask
from flows.settings import Settings
from flows.sites import Sites
from regions.errors import Fault, SettingsError
from regions.load import load
from regions.model import Catalog
from regions.planning.problem import Plan, Situation
from regions.planning.request import RunRequest
from regions.planning.single import plan as plan_run


def plan(
    run: Annotated[str, typer.Argument(help="A run's id, a path or a URL of a run file.")],
    at: Annotated[
        str | None, typer.Option(help="Plan as of this instant (ISO 8601 with zone); now if not given.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="A folder of region files.")] = None,
    frontier: Annotated[bool, typer.Option("--frontier", help="Show the least cost for every finish time.")] = False,
    svg: Annotated[
        Path | None, typer.Option(help="Draw the plan (with --frontier: that) into this .svg or .png.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the plan of a run that has not started. Exits 1 where no plan keeps the deadline and the budget."""
    settings = Settings.read(os.environ)
    known = load(catalog or settings.catalog)
    request = ask(run, settings, known).request
    now = _instant(at) if at else settings.clock.now()
    made = plan_run(request, known, Situation(sizes=_sizes(request, settings, known)), now)
    if svg is not None:
        _draw(made, request, known, svg, frontier)
    emit(made.document(), lambda console: _show(console, made, known, frontier), as_json)
    raise typer.Exit(0 if made.feasible else 1)


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = datetime(1, 1, 1)  # noqa: DTZ001 - refused below, as it has no zone
    if instant.tzinfo is None:
        fault = Fault(
            "command line", None, "--at", repr(text), "an ISO 8601 instant with its zone", "such as ...T08:00Z"
        )
        raise SettingsError("--at cannot be read:", [fault])
    return instant.astimezone(UTC)


def _sizes(request: RunRequest, settings: Settings, catalog: Catalog) -> dict[str, int]:
    """Ask the dataset's manifest for its size where the run file does not say."""
    if request.dataset is None or request.dataset.size is not None:
        return {}
    found = dataset_of(request, Sites(settings, catalog))
    return {} if found is None else {"dataset": found.bytes}


def _draw(made: Plan, request: RunRequest, catalog: Catalog, path: Path, frontier: bool) -> None:
    # Matplotlib takes half a second to import: only where a picture is asked for.
    from flows.render.picture import as_png, as_svg
    from flows.render.planned import draw_frontier, draw_plan

    figure = draw_frontier(made) if frontier else draw_plan(made, request, catalog)
    path.write_bytes(as_png(figure) if path.suffix == ".png" else as_svg(figure))
    stderr.print(f"drawn: {path}", markup=False)


def _show(console: Console, made: Plan, catalog: Catalog, frontier: bool) -> None:
    zones = {name: region.timezone for name, region in catalog.regions.items()}
    if made.legs:
        _table(console, plan_rows(made.document(), zones), f"{made.run}, revision {made.revision}")
    else:
        console.print(f"{made.run} cannot be planned. {made.binding or ''}", style="bold red", markup=False)
    rows = [
        {"baseline": name, "cost": money(base.cost, made.currency), "finish": _when(base.finish, made.deadline)}
        for name, base in made.baselines.items()
        if base is not None
    ]
    _table(console, rows, "against")
    _table(
        console,
        [
            {"region": item.region, "offer": item.offer, "why not": item.reason,
             "would cost": money(item.would_cost, made.currency)}
            for item in made.rejected
        ],
        "not taken",
    )  # fmt: skip
    _table(
        console,
        [
            {
                "nearest": wish.change,
                "finish": f"{wish.finish:%Y-%m-%d %H:%M}Z",
                "cost": money(wish.cost, made.currency),
            }
            for wish in made.nearest
        ],
        "what would fit",
    )
    if frontier:
        points = [
            {"finish": f"{point.finish:%Y-%m-%d %H:%M}Z", "least cost": money(point.cost, made.currency)}
            for point in made.frontier
        ]
        _table(console, points, "frontier")
    _words(console, made)


def _words(console: Console, made: Plan) -> None:
    if made.saving is not None:
        split = ", ".join(f"{money(part, made.currency)} on {basis}" for basis, part in made.saving_by_basis.items())
        console.print(f"saves {money(made.saving, made.currency)} against home_now: {split}", markup=False)
    if made.gap is not None:
        console.print(f"at most {made.gap * 100:.2f} % above the least possible on its grid", markup=False)
    if made.bytes_per_hour is not None:
        console.print(f"a move carries {size(float(made.bytes_per_hour))} per accelerator-hour of work", markup=False)
    for warning in made.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False, soft_wrap=True)


def _when(finish: datetime, deadline: datetime | None) -> str:
    late = " (too late)" if deadline is not None and finish > deadline else ""
    return f"{finish:%Y-%m-%d %H:%M}Z{late}"


def _table(console: Console, rows: list[dict[str, str]], title: str) -> None:
    if not rows:
        return
    table = Table(title=title, title_justify="left", box=None, header_style="dim")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    console.print(table)
