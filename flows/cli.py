"""`nightrelay`: puts the commands together and turns every error into one clear text and an exit code.

Exit codes: 0 done, 1 the answer is no, 2 the input is wrong, 3 something outside failed. A traceback is a defect.
Command modules are imported when their command is called, so that `nightrelay --help` starts at once.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from regions.errors import InputError, IntegrityError, InternalError, NightrelayError, NotFoundError, PlanError

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Run the main job on this machine: three regions, a real relay, its report."),
    "up": ("stack", "Start the local stack for daily use."),
    "down": ("stack", "Stop the local stack."),
    "status": ("stack", "Show what of the local stack runs."),
    "apply": ("apply", "Make pools, queues and deployments agree with the region files."),
    "doctor": ("doctor", "Check the installation."),
    "regions": ("regions", "Check region files, show price curves, import prices."),
    "plan": ("plan", "Plan a run: legs, costs, why each region lost."),
    "runs": ("runs", "List, show, cancel and resume runs."),
    "costs": ("costs", "Show what was charged."),
    "data": ("data", "Build, inspect and verify sharded datasets."),
}
"""Command -> module in flows.commands, and its line in the help. A module with a group exports `app`; one with single
commands exports a function of the command's name."""


class _Lazy(TyperGroup):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"flows.commands.{COMMANDS[name][0]}")
        if hasattr(module, "app"):
            command = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False)
            single.command(name)(getattr(module, name))
            command = typer.main.get_command(single)
        command.name = name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(cls=_Lazy, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def nightrelay() -> None:
    """Train models by following the night around the planet."""


def exit_code(error: BaseException) -> int:
    """Return the exit code of an error: 1 for a no, 2 for wrong input, 3 for anything outside."""
    if isinstance(error, PlanError):
        return 1
    if isinstance(error, InputError | NotFoundError):
        return 2
    return 1 if isinstance(error, IntegrityError) else 3


def main() -> None:
    """Run the command line."""
    os.environ.setdefault("DO_NOT_TRACK", "1")  # Prefect reads it when it is imported
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except NightrelayError as error:
        _say(error.message, error.kind, [fault.document() for fault in getattr(error, "faults", ())])
        sys.exit(exit_code(error))
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted", "interrupted", [])
        sys.exit(130)
    except TyperException as wrong:
        text = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
        _say(text, "usage", [])
        sys.exit(2)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        _say(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), "outside", [])
        sys.exit(3)
    except Exception as error:
        if os.environ.get("NIGHTRELAY_TRACEBACK"):
            raise
        text = f"a fault of nightrelay itself: {type(error).__name__}: {error} (NIGHTRELAY_TRACEBACK=1 shows where)"
        _say(text, InternalError.kind, [])
        sys.exit(3)


def _say(text: str, kind: str, faults: list[dict[str, object]]) -> None:
    """Print the error on stderr; with --json, also as one document on stdout, so that a program can read it."""
    sys.stderr.write(f"nightrelay: {text}\n")
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": kind, "message": text, "faults": faults}) + "\n")


if __name__ == "__main__":
    main()
