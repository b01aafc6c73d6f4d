"""What of a stack runs, in one small file: written before anything starts and after each start.

A pid alone proves nothing, since the system uses it again; a process is ours if it also began at the recorded moment,
which is counted from the machine's own start: the clock may be set meanwhile.
Everything started bears the stack's mark in its environment as well, so that even what was started just before a crash
of the starter is found again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from regions.errors import IntegrityError


@dataclass(frozen=True, slots=True)
class Running:
    """A program that was started."""

    name: str
    pid: int
    began: str
    """The machine's start and the moment since then at which the process began."""

    @property
    def process(self) -> psutil.Process | None:
        """The process while it lives, else None."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if _began(self.pid) == self.began and process.status() != psutil.STATUS_ZOMBIE:
                return process
        return None


@dataclass(frozen=True, slots=True)
class StackState:
    """A stack as its file has it. `kept`: it goes with the process that started it."""

    mark: str
    secret: str = field(repr=False)
    """What the keys of this stack's own stores are derived from."""
    kept: bool
    port: int
    store_ports: Mapping[str, int] = field(default_factory=dict)
    stores: str = "files"
    programs: tuple[Running, ...] = ()

    @property
    def api_url(self) -> str:
        """Where Prefect's API is."""
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui_url(self) -> str:
        """Where people look."""
        return f"http://127.0.0.1:{self.port}"

    def with_program(self, running: Running) -> StackState:
        """Return the state after a start, in place of an earlier program of that name."""
        others = (program for program in self.programs if program.name != running.name)
        return replace(self, programs=(*others, running))


def running(name: str, pid: int) -> Running:
    """Return the record of a program just started."""
    return Running(name, pid, _began(pid) or "")


def _began(pid: int) -> str | None:
    """Return what tells a process from any other that ever had its pid; None where there is none."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text(encoding='utf-8').strip()}/{ticks}"
    except OSError:
        pass
    try:  # Not Linux: the moment by the clock is what there is.
        return f"{psutil.Process(pid).create_time():.0f}"
    except psutil.Error:
        return None


def read_state(path: Path) -> StackState | None:
    """Return a stack's state, or None where none was started."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        programs = tuple(Running(**program) for program in document.pop("programs"))
        return StackState(**document, programs=programs)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise IntegrityError(f"{path} is not a stack's state ({error}): remove it if no stack runs") from error


def write_state(path: Path, state: StackState) -> None:
    """Replace the file as a whole."""
    document: dict[str, Any] = {**asdict(state), "store_ports": dict(state.store_ports)}
    fresh = path.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)
