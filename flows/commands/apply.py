"""`nightrelay apply`: pools, queues, limits and deployments at any Prefect server, as the region files have them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.commands.output import JsonFlag, emit
from flows.settings import PROJECT, Settings
from infra.automations import apply_automations
from infra.deploying import apply as apply_to
from infra.pools import Change, FlowSpec, Wanted, wanted_for
from infra.prefect_yaml import render
from regions.errors import Fault, RequestError
from regions.load import load
from regions.model import Region

DEFAULT_API = "http://127.0.0.1:4200/api"
_SIGNS = {"create": "+", "update": "~", "delete": "-"}


def apply(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the difference and change nothing.")] = False,
    region: Annotated[list[str] | None, typer.Option(help="Only these regions, and remove nothing.")] = None,
    write: Annotated[
        Path | None, typer.Option(help="Write the deployments as a prefect.yaml instead of applying them.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make pools, queues and deployments agree with the region files. What an operator paused stays paused."""
    settings = Settings.read(os.environ)
    wish = wish_for(settings.catalog, region)
    if write is not None:
        write.write_text(render(wish), encoding="utf-8")
        emit({"written": str(write)}, lambda console: console.print(f"wrote {write}"), as_json)
        return
    api_url = os.environ.get("PREFECT_API_URL") or DEFAULT_API
    changes = apply_to(api_url, wish, dry_run=dry_run, prune=region is None)
    automations = apply_automations(api_url, dry_run=dry_run)
    document = {
        "server": api_url,
        "dry_run": dry_run,
        "changes": [change.document() for change in changes],
        "automations": list(automations),
    }
    emit(document, lambda console: _tell(console, changes, automations, dry_run), as_json)


def apply_stack(catalog: Path, regions: Iterable[str], environ: Mapping[str, str]) -> tuple[Change, ...]:
    """Make a local stack's server agree with the files of its regions."""
    return apply_to(environ["PREFECT_API_URL"], wish_for(catalog, list(regions)))


def wish_for(catalog: Path, names: list[str] | None = None) -> Wanted:
    """Return what a server needs for a catalog's regions, or for those named."""
    known = load(catalog).regions
    return wanted_for(chosen(known, names, catalog), *flow_specs())


def chosen(known: Mapping[str, Region], names: list[str] | None, catalog: Path) -> list[Region]:
    """Return the regions of these names, or all; RequestError lists those that are not in the catalog."""
    faults = [
        Fault("command line", None, "--region", repr(name), f"a region of {catalog}: {', '.join(sorted(known))}")
        for name in names or ()
        if name not in known
    ]
    if faults:
        raise RequestError("no such region:", faults)
    return [known[name] for name in names] if names is not None else list(known.values())


def flow_specs() -> tuple[FlowSpec, FlowSpec]:
    """Return the two flows that are deployed: train and leg."""
    from flows.leg import leg
    from flows.train import train

    return _spec(train, "train"), _spec(leg, "leg")


def _spec(flow: object, module: str) -> FlowSpec:
    from prefect import Flow
    from prefect.utilities.callables import parameter_schema

    assert isinstance(flow, Flow)
    assert (PROJECT / "flows" / f"{module}.py").is_file()
    schema = parameter_schema(flow).model_dump_for_openapi()
    first_line = (flow.description or "").partition("\n")[0]
    return FlowSpec(flow.name, f"flows/{module}.py:{module}", first_line, schema)


def _tell(console: Console, changes: tuple[Change, ...], automations: tuple[str, ...], dry_run: bool) -> None:
    if not changes and not automations:
        console.print("Everything agrees with the region files.")
        return
    for change in changes:
        paused = " (paused by an operator: stays so)" if change.paused else ""
        console.print(f"{_SIGNS[change.verb]} {change.kind} {change.name}{paused}", markup=False, soft_wrap=True)
        for name, (old, new) in change.fields.items():
            if change.verb == "update" and not name.endswith("schema"):
                console.print(f"    {name}: {old} -> {new}", markup=False, soft_wrap=True)
    for automation in automations:
        console.print(f"~ automation {automation}", markup=False, soft_wrap=True)
    done = "would be made" if dry_run else "made"
    count = len(changes) + len(automations)
    console.print(f"{count} change{'s' if count > 1 else ''} {done}.")
