"""`nightrelay up`, `down` and `status`: the local stack for daily use, which stays when the command has ended."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit, stderr
from flows.settings import Settings
from flows.shipped import HOME_REGION, build_texts, publish, published
from flows.sites import Sites
from infra.stack import Extra, LocalStack, StackPlan
from infra.stack.state import read_state
from regions.clock import SystemClock
from regions.errors import PlanError
from regions.load import load
from regions.model import Region

EXTRAS = (Extra("sweep", "flows.sweep"),)
"""What watches over runs while their parents sleep."""


def up(
    port: Annotated[int | None, typer.Option(help="The Prefect server's port; else 4200 or any free one.")] = None,
    region: Annotated[
        list[str] | None, typer.Option(help="These regions, instead of all whose provider is local.")
    ] = None,
    stores: Annotated[
        str, typer.Option(help="files: folders that stay; s3: servers that forget when they stop.")
    ] = "files",
    as_json: JsonFlag = False,
) -> None:
    """Start the local stack, or what of it does not run; make pools and deployments agree with the region files."""
    from flows.commands.apply import apply_stack, chosen
    from infra.automations import apply_automations

    settings = Settings.read(os.environ)
    known = load(settings.catalog).regions
    local = [name for name, place in known.items() if place.provider == "local" and place.status == "active"]
    places = chosen(known, region or local, settings.catalog)
    plan = daily_plan(settings, places, port, "s3" if stores == "s3" else "files")
    stack = LocalStack(plan, SystemClock(), os.environ, kept=False)
    with _stopping_on_failure(stack):
        started = stack.start()
        if started:
            stderr.print(f"starting {', '.join(started)}", soft_wrap=True)
        stack.wait_for_server()
        apply_stack(settings.catalog, plan.regions, stack.environment)
        apply_automations(stack.state.api_url)
        _publish_shipped(stack)
        stack.wait_for_workers()
    document = {**_document(stack), "started": list(started)}
    emit(document, lambda console: _tell(console, stack), as_json)


def _publish_shipped(stack: LocalStack) -> None:
    """Put the shipped run's dataset into its home region's store, where that region is of the stack."""
    if HOME_REGION not in stack.plan.regions:
        return
    environment = stack.environment
    # From here on this command is part of the control side: it opens the stores with the stack's own keys.
    os.environ.update({name: key for name, key in environment.items() if name.startswith("AWS_")})
    settings = Settings.read(environment)
    sites = Sites(settings, load(settings.catalog))
    if not published(sites):
        with tempfile.TemporaryDirectory(prefix="nightrelay-texts-") as scratch:
            publish(build_texts(Path(scratch)), sites)


def down(as_json: JsonFlag = False) -> None:
    """Stop the local stack and everything it runs. Committed checkpoints and the journal stay."""
    stack = _standing(Settings.read(os.environ))
    names = [] if stack is None else [program.name for program in stack.status() if program.running]
    if stack is not None:
        stack.stop()
    text = f"stopped {', '.join(names)}" if names else "nothing was running"
    emit({"stopped": names}, lambda console: console.print(text, soft_wrap=True), as_json)


def status(as_json: JsonFlag = False) -> None:
    """Show what of the local stack runs; exit 1 where something does not."""
    settings = Settings.read(os.environ)
    stack = _standing(settings)
    if stack is None:
        raise PlanError(f"no stack runs in {settings.home}: start one with `nightrelay up`", kind="stack-down")
    emit(_document(stack), lambda console: _tell(console, stack), as_json)
    if not all(program.running for program in stack.status()):
        raise typer.Exit(1)


def daily_plan(
    settings: Settings, places: list[Region], port: int | None, stores: Literal["files", "s3"] = "files"
) -> StackPlan:
    """Return the stack of daily use: each region's worker takes as many legs as the region's quota allows."""
    from infra.pools import quota_of

    clock = {"NIGHTRELAY_CLOCK": settings.clock.setting()}
    passed = ("NIGHTRELAY_DATABASE_URL", "NIGHTRELAY_RUNS")
    control = {name: os.environ[name] for name in passed if os.environ.get(name)}
    return StackPlan(
        home=settings.home.resolve(),
        limits={place.id: quota_of(place) for place in places},
        stores=stores,
        port=port,
        extras=EXTRAS,
        control={"NIGHTRELAY_CATALOG": str(settings.catalog.resolve()), **clock, **control},
        shared=clock,
    )


def _standing(settings: Settings) -> LocalStack | None:
    """Return the stack of this home as its state file has it, or None where none was started."""
    home = settings.home.resolve()
    plan = StackPlan(home, {})
    if read_state(plan.layout.state) is None:
        return None
    return LocalStack(plan, SystemClock(), os.environ, kept=False)


@contextmanager
def _stopping_on_failure(stack: LocalStack) -> Iterator[None]:
    """Leave no half-started stack behind, also where the command is told to end while it starts."""

    def leave(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    earlier = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    fresh = not any(program.running for program in stack.status())
    try:
        yield
    except BaseException:
        if fresh:
            stack.stop()
        raise
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _document(stack: LocalStack) -> dict[str, object]:
    programs = stack.status()
    return {
        "home": str(stack.plan.home),
        "ui": stack.state.ui_url,
        "api": stack.state.api_url,
        "running": all(program.running for program in programs),
        "bytes": sum(program.bytes for program in programs),
        "programs": [program.document() for program in programs],
    }


def _tell(console: Console, stack: LocalStack) -> None:
    table = Table(box=None, header_style="dim")
    for column in ("program", "state", "pid", "memory"):
        table.add_column(column, justify="right" if column in ("pid", "memory") else "left")
    programs = stack.status()
    for program in programs:
        state = "running" if program.running else "[red]not running[/red]"
        table.add_row(program.name, state, str(program.pid), f"{program.bytes >> 20} MiB" if program.running else "-")
    console.print(table)
    for program in programs:
        if not program.running:
            console.print(f"{program.name} has ended; its log: {program.log}", soft_wrap=True)
    console.print(f"together {sum(program.bytes for program in programs) >> 20} MiB; state in {stack.plan.home}")
    console.print(f"Prefect UI: {stack.state.ui_url}   export PREFECT_API_URL={stack.state.api_url}", soft_wrap=True)
