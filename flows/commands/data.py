"""`nightrelay data`: build, inspect and verify sharded datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit
from regions.errors import InputError
from regions.units import parse_size
from storage.datasets.building import Text, build
from storage.datasets.manifest import Manifest
from storage.datasets.places import Place, damaged, read_manifest, split_url
from storage.datasets.shards import Cut
from storage.objects import open_store

app = typer.Typer(no_args_is_help=True, help="Build, inspect and verify sharded datasets.")

Where = Annotated[str, typer.Argument(help="The folder or URL of a dataset, or its manifest.")]


@app.command("build")
def build_dataset(
    sources: Annotated[list[str], typer.Argument(help="Files or folders, then the folder or URL to build into.")],
    text: Annotated[int | None, typer.Option(help="Read text as samples of this many bytes.", min=1)] = None,
    stride: Annotated[int | None, typer.Option(help="Bytes from one text sample to the next.", min=1)] = None,
    shard: Annotated[str, typer.Option(help="Target size of a shard.")] = "64 MiB",
    block: Annotated[str, typer.Option(help="Target size of a block, the unit that is read and verified.")] = "1 MiB",
    parquet: Annotated[bool, typer.Option(help="Write Parquet instead of Arrow IPC.")] = False,
    compression: Annotated[str | None, typer.Option(help="zstd or lz4, inside the shards.")] = None,
    workers: Annotated[int, typer.Option(help="Sources that are read at the same time.", min=1)] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Build a dataset from Parquet, Arrow, JSONL, text, WebDataset, MDS or Hugging Face files; or find it built."""
    if len(sources) < 2:
        raise InputError("`data build` needs at least one source and then the folder or URL to build into")
    url = split_url(sources[-1])[0]
    if stride is not None and text is None:
        raise InputError("--stride is about text samples: give --text as well")
    cut = Cut(_bytes("block", block), _bytes("shard", shard), "parquet" if parquet else "arrow", compression)
    samples = Text(text, stride) if text is not None else None
    manifest, found = build(url, [Path(source) for source in sources[:-1]], cut=cut, text=samples, workers=workers)
    document = _summary(manifest, url) | {"found": found}

    def human(console: Console) -> None:
        console.print("found, built before" if found else "built")
        _table(manifest, url, console)

    emit(document, human, as_json)


@app.command("inspect")
def inspect(where: Where, as_json: JsonFlag = False) -> None:
    """Show what a dataset consists of; nothing but its manifest is read."""
    place, name = _place(where)
    manifest = read_manifest(place, name)
    emit(_summary(manifest, str(place)), lambda console: _table(manifest, str(place), console), as_json)


@app.command("verify")
def verify(where: Where, as_json: JsonFlag = False) -> None:
    """Read all of a dataset and check every shard; exit 1 where one is missing, cut or wrong."""
    place, name = _place(where)
    manifest = read_manifest(place, name)
    faults = list(damaged(manifest, place))

    def human(console: Console) -> None:
        for fault in faults:
            console.print(f"[red]{fault}[/red]")
        console.print(f"{len(manifest.shards) - len(faults)} of {len(manifest.shards)} shards are whole")

    emit({"dataset": manifest.digest, "ok": not faults, "faults": faults}, human, as_json)
    if faults:
        raise typer.Exit(1)


def _bytes(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise InputError(f"--{option} {text!r}: expected {error}") from None


def _place(where: str) -> tuple[Place, str]:
    folder, name = split_url(where)
    return Place(open_store(folder)), name


def _summary(manifest: Manifest, where: str) -> dict[str, Any]:
    return {
        "dataset": manifest.digest,
        "where": where,
        "rows": manifest.rows,
        "bytes": manifest.size,
        "format": manifest.format,
        "blocks": len(manifest.blocks.rows),
        "shards": [{"name": s.name, "rows": s.rows, "bytes": s.size, "blake3": s.digest} for s in manifest.shards],
        "columns": manifest.statistics,
        "about": manifest.about,
    }


def _table(manifest: Manifest, where: str, console: Console) -> None:
    console.print(f"dataset {manifest.digest}\nin {where}")
    console.print(
        f"{manifest.rows:,} rows, {manifest.size:,} B, {len(manifest.shards)} {manifest.format} shards, "
        f"{len(manifest.blocks.rows)} blocks"
    )
    table = Table("column", "type", "nulls", "bytes", "range")
    for name, entry in manifest.statistics.items():
        spans = [
            f"{what} {entry[f'min_{what}']} to {entry[f'max_{what}']}"
            for what in ("value", "length")
            if f"min_{what}" in entry
        ]
        table.add_row(name, entry["type"], f"{entry['nulls']:,}", f"{entry['bytes']:,}", ", ".join(spans))
    console.print(table)
