"""`nightrelay regions`: check the files people edit, show what an hour costs when, take over price catalogs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit, stderr
from flows.commands.prices import Market, instant_of, prices, wrong
from flows.settings import Settings
from regions.errors import Fault, NotFoundError
from regions.importing import import_skypilot
from regions.load import inspect, load
from regions.money import plain
from regions.templates import choose
from regions.yamltext import write_yaml

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Check region files, show price curves, import prices."
)
app.command()(prices)


class StageKind(StrEnum):
    """A kind of stage, as an argument."""

    preprocess = "preprocess"
    pretrain = "pretrain"
    finetune = "finetune"
    tune = "tune"
    validate = "validate"
    export = "export"


class CatalogFormat(StrEnum):
    """A price catalog's format, as an option."""

    skypilot_csv = "skypilot-csv"


@app.command()
def check(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Else NIGHTRELAY_CATALOG, else the shipped.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check every file of a catalog and report all faults at once. Exits 1 where there are any."""
    settings = Settings.read(os.environ)
    catalog, faults = inspect(folder or settings.catalog, now=settings.clock.now())
    warnings = catalog.warnings if catalog is not None else ()
    names = sorted(catalog.regions) if catalog is not None else []
    digest = catalog.digest if catalog is not None else None
    document = {
        "ok": not faults,
        "faults": [fault.document() for fault in faults],
        "warnings": [warning.document() for warning in warnings],
        "catalog": digest,
        "regions": names,
    }

    def human(console: Console) -> None:
        for fault in faults:
            console.print(str(fault), style="red", markup=False, soft_wrap=True)
        if faults:
            console.print(f"{len(faults)} to mend")
            return
        for text in _summed_up(warnings):
            console.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)
        console.print(f"{len(names)} regions are sound (catalog {digest[:12] if digest else ''})")

    emit(document, human, as_json)
    raise typer.Exit(1 if faults else 0)


@app.command()
def fit(
    kind: Annotated[StageKind, typer.Argument(help="A kind of stage.")],
    parameters: Annotated[int | None, typer.Option(help="The model's parameters; unknown counts as large.")] = None,
    market: Annotated[Market, typer.Option(help="How it is bought.")] = Market.on_demand,
    at: Annotated[str | None, typer.Option(help="ISO 8601 with zone; now if not given.")] = None,
    currency: Annotated[str, typer.Option(help="In what prices are compared.")] = "USD",
    catalog: Annotated[Path | None, typer.Option(help="A folder of region files.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show which offers suit a kind of stage by the policy's templates, cheapest per unit of work first."""
    settings = Settings.read(os.environ)
    instant = instant_of("--at", at) if at else settings.clock.now()
    choice = choose(load(catalog or settings.catalog), kind.value, parameters, market.value, instant, currency)
    document = {
        "kind": kind.value,
        "model": choice.model,
        "candidates": [
            {
                "region": each.region,
                "offer": each.offer,
                "accelerator": each.accelerator,
                "fraction": None if each.fraction is None else each.fraction.profile or str(each.fraction.share),
                "price": plain(each.price.amount),
                "currency": each.price.currency,
                "per_work": plain(each.per_work.amount),
            }
            for each in choice.candidates
        ],
        "unsuited": [{"region": each.region, "offer": each.offer, "reason": each.reason} for each in choice.unsuited],
    }

    def human(console: Console) -> None:
        table = Table(box=None, header_style="dim")
        for column in ("region", "offer", "part", "price", f"{currency} per unit of work"):
            table.add_column(column)
        for each in choice.candidates:
            part = "" if each.fraction is None else f"{each.fraction.profile or each.fraction.share}"
            table.add_row(each.region, each.offer, part, str(each.price), f"{each.per_work.amount:.4f}")
        console.print(table)
        console.print(f"{len(choice.unsuited)} offers are left out (--json says why)", style="dim")

    emit(document, human, as_json)
    raise typer.Exit(0 if choice.candidates else 1)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The price catalog.")],
    source_format: Annotated[CatalogFormat, typer.Option("--from", help="Its format.")] = CatalogFormat.skypilot_csv,
    region: Annotated[str | None, typer.Option(help="Its name in the catalog, such as us-east-1.")] = None,
    zone: Annotated[str | None, typer.Option(help="Only this availability zone.")] = None,
    accelerator: Annotated[list[str] | None, typer.Option(help="Only these accelerators (may be repeated).")] = None,
    currency: Annotated[str, typer.Option(help="The catalog's currency.")] = "USD",
    source: Annotated[str | None, typer.Option(help="Where the prices are from; else the file's name.")] = None,
    as_of: Annotated[str | None, typer.Option(help="Their date; else the day the file was written.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Turn the rows of a price catalog into `offers:` for a region file, printed as YAML."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        written = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
        day = date.fromisoformat(as_of) if as_of else written
    except UnicodeDecodeError:
        raise wrong("FILE", str(file), "a text file in UTF-8") from None
    except FileNotFoundError:
        raise NotFoundError(f"no file {file}") from None
    except ValueError:
        raise wrong("--as-of", str(as_of), "a date, such as 2026-11-30") from None
    taken = import_skypilot(
        text,
        file.name,
        region=region,
        zone=zone,
        accelerators=accelerator or (),
        currency=currency,
        source=source or f"{source_format.value} {file.name}",
        as_of=day,
    )
    for note in taken.passed_over:
        stderr.print(f"passed over: {note}", markup=False, soft_wrap=True)
    document = {"offers": list(taken.offers)}
    emit(document, lambda console: console.out(write_yaml(document), end="", highlight=False), as_json)


def _summed_up(warnings: Sequence[Fault]) -> list[str]:
    """Return warnings with those that differ only in their field counted together."""
    counts = Counter((warning.file, warning.got, warning.expected, warning.hint) for warning in warnings)
    texts = []
    for (file, got, expected, hint), number in counts.items():
        times = f"{number} prices are " if hint == "stale" else ""
        texts.append(f"{file}: {times}{got}; expected {expected}{f' ({hint})' if hint and hint != 'stale' else ''}")
    return texts
