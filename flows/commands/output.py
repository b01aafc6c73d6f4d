"""How every command speaks: tables for people, or with --json one document on stdout and nothing else there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]

WIDTH = 120
"""Columns where stdout is no terminal: a file or a pipe has no window that would be too narrow."""

stderr = Console(stderr=True, highlight=False)


def emit(document: object, human: Callable[[Console], None], as_json: bool) -> None:
    """Print `document` as JSON, or call `human` with a console on stdout."""
    if as_json:
        typer.echo(json.dumps(document, default=_plain, ensure_ascii=False))
    else:
        human(Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH))


def _plain(value: Any) -> object:
    """Give money and instants the form the contracts lay down: decimal strings and ISO 8601 with zone."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"no JSON form for {type(value).__name__}")
