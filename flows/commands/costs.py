"""`nightrelay costs`: what was charged, summed as asked."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit
from flows.journal import Journal
from flows.render.tables import cost_rows, money
from flows.settings import Settings
from regions.errors import Fault, InputError

KEYS = ("team", "run", "stage", "leg", "region", "offer", "market", "basis", "window", "what")


def costs(
    by: Annotated[str, typer.Option(help=f"Columns to sum by, with commas between: {', '.join(KEYS)}.")] = "run,region",
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show charges, summed by the columns asked for. Each currency is its own sum; none is added to another."""
    keys = [key.strip() for key in by.split(",") if key.strip()]
    if wrong := [key for key in keys if key not in KEYS]:
        faults = [Fault("command line", None, "--by", repr(key), f"one of {', '.join(KEYS)}") for key in wrong]
        raise InputError("costs cannot be summed by that:", faults)
    journal = Journal.open(Settings.read(os.environ).database_url)
    if run is not None:
        journal.run(run)
    rows = cost_rows(journal.charges(run), keys)
    currencies = sorted({row["currency"] for row in rows})
    totals = {
        currency: sum((row["cost"] for row in rows if row["currency"] == currency), Decimal(0))
        for currency in currencies
    }
    single = currencies[0] if len(currencies) == 1 else None
    document: dict[str, Any] = {
        "currency": single,
        "total": totals[single] if single else None,
        "totals": totals,
        "rows": rows,
    }

    def human(console: Console) -> None:
        if not rows:
            console.print("nothing was charged yet")
            return
        table = Table(box=None, header_style="dim")
        for key in keys:
            table.add_column(key)
        table.add_column("cost", justify="right")
        for row in rows:
            table.add_row(*(str(row[key]) for key in keys), money(row["cost"], row["currency"]))
        console.print(table)
        for currency, amount in totals.items():
            console.print(f"total {money(amount, currency)}")

    emit(document, human, as_json)
