"""`nightrelay runs`: the journal for people and programs; cancelling and resuming a run."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flows.catalogs import kept
from flows.commands.output import JsonFlag, emit
from flows.journal import Journal
from flows.render.tables import leg_rows, money, size
from flows.rows import LIVE, RunRow
from flows.settings import Settings
from infra.stack.state import read_state
from regions.errors import ConflictError

app = typer.Typer(no_args_is_help=True, help="List, show, cancel and resume runs.")

Run = Annotated[str, typer.Argument(help="The run's id, such as gpt-mini-1a2b3c4d.")]


def _journal() -> tuple[Journal, Settings]:
    settings = Settings.read(os.environ)
    return Journal.open(settings.database_url), settings


@app.command()
def ls(as_json: JsonFlag = False) -> None:
    """List the runs, newest first."""
    journal, _ = _journal()
    rows: list[dict[str, Any]] = [
        {
            "run": run.id,
            "state": run.state,
            "team": run.team,
            "priority": run.priority,
            "submitted": run.submitted_at.isoformat(),
            "cost": _cost(journal, run)[0],
            "currency": _cost(journal, run)[1],
        }
        for run in journal.runs()
    ]

    def human(console: Console) -> None:
        if not rows:
            console.print("no runs yet; start one with: prefect deployment run train/relay --param run=gpt-mini")
            return
        _table(console, [{**row, "cost": money(row.pop("cost"), row.pop("currency"))} for row in map(dict, rows)])

    emit(rows, human, as_json)


@app.command()
def show(run: Run, as_json: JsonFlag = False) -> None:
    """Show a run: its legs, its checkpoints, where they lie, and what it has cost."""
    journal, _ = _journal()
    row = journal.run(run)
    legs = journal.legs(run)
    charges = journal.charges(run)
    cost, currency = _cost(journal, row)
    document = {
        "run": row.id,
        "state": row.state,
        "reason": row.reason,
        "flow_run": row.flow_run,
        "legs": [
            {
                "leg": leg.number,
                "stage": leg.stage,
                "region": leg.region,
                "term": leg.number if leg.opened_real is not None else None,
                "start": _text(leg.started_at),
                "end": _text(leg.ended_at),
                "outcome": leg.outcome,
                "reason": leg.reason,
                "from_step": leg.from_step,
                "to_step": leg.to_step,
                "pid": leg.pid,
                "trainer_pid": leg.trainer_pid,
                "estimated": leg.estimated,
                "cost": sum((charge["total"] for charge in charges if charge["leg"] == leg.number), Decimal(0)),
            }
            for leg in legs
        ],
        "checkpoints": _checkpoints(journal, run),
        "final_digest": row.final_digest,
        "cost": cost,
        "currency": currency,
    }

    def human(console: Console) -> None:
        console.print(f"[bold]{row.id}[/]: {row.state}" + (f" ({row.reason})" if row.reason else ""))
        zones = {name: region.timezone for name, region in kept(journal, row.catalog).regions.items()}
        if legs:
            _table(console, leg_rows(legs, charges, zones))
        console.print(f"cost {money(cost, currency)}   final digest {row.final_digest or '-'}")

    emit(document, human, as_json)


@app.command()
def checkpoints(run: Run, as_json: JsonFlag = False) -> None:
    """List a run's committed checkpoints and the regions that hold them."""
    journal, _ = _journal()
    journal.run(run)
    rows = _checkpoints(journal, run)

    def human(console: Console) -> None:
        if not rows:
            console.print("no checkpoint is committed yet")
            return
        _table(console, [{**row, "bytes": size(row["bytes"]), "regions": ", ".join(row["regions"])} for row in rows])

    emit(rows, human, as_json)


@app.command()
def cancel(run: Run, as_json: JsonFlag = False) -> None:
    """Cancel a run: its leg saves, commits and leaves; everything it holds is freed."""
    from flows.flowruns import FlowRuns

    journal, settings = _journal()
    row = journal.run(run)
    if row.state not in LIVE:
        raise ConflictError(f"run {run} is {row.state} already")
    journal.ask_cancel(run)
    FlowRuns(_api(settings), patience=10).cancel(row.flow_run)
    emit({"run": run, "cancelling": True}, lambda console: console.print(f"{run} is being cancelled"), as_json)


@app.command()
def resume(run: Run, as_json: JsonFlag = False) -> None:
    """Let a cancelled or failed run go on from its last commit, under a new flow run."""
    from flows.flowruns import FlowRuns

    journal, settings = _journal()
    row = journal.run(run)
    if row.state in LIVE or row.state == "finished":
        raise ConflictError(f"run {run} is {row.state}; only a failed or cancelled run can be resumed")
    made = FlowRuns(_api(settings), patience=10).submit(row.recipe, resume=run)
    emit({"run": run, "flow_run": made}, lambda console: console.print(f"{run} goes on as flow run {made}"), as_json)


def _api(settings: Settings) -> str | None:
    """Return the Prefect server's API: PREFECT_API_URL, else that of the local stack in NIGHTRELAY_HOME."""
    standing = read_state(settings.home / "stack.json")
    return settings.api_url or (standing.api_url if standing is not None else None)


def _checkpoints(journal: Journal, run: str) -> list[dict[str, Any]]:
    return [
        {
            "stage": row.stage,
            "step": row.step,
            "term": row.term,
            "digest": row.digest,
            "bytes": row.bytes,
            "regions": list(row.regions),
        }
        for row in journal.checkpoints(run)
    ]


def _cost(journal: Journal, run: RunRow) -> tuple[Decimal, str]:
    charges = journal.charges(run.id)
    currency = charges[0]["total_currency"] if charges else (journal.plan(run.id) or {}).get("currency", "")
    return sum((charge["total"] for charge in charges), Decimal(0)), currency


def _text(instant: Any) -> str | None:
    return None if instant is None else instant.isoformat()


def _table(console: Console, rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, header_style="dim")
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="right" if column in ("cost", "step", "bytes") else "left")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console.print(table)
