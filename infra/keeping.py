"""The parent's end of a keeper (infra.keeper): start programs that cannot outlive this process.

Three ways a tree of processes can be left alone are covered: this process dies (the pipe ends, the keeper kills all);
the keeper dies (`gone` is seen here, and everything that bears its mark is killed); both die (the kernel kills the
programs' first processes). The mark is a variable in the environment of everything started.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psutil

from regions.clock import Clock
from regions.errors import OutsideError

MARK = "NIGHTRELAY_KEPT"
"""The variable by which the descendants of a keeper are known."""
_START_SECONDS = 10.0
_SCRIPT = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True, slots=True)
class Program:
    """What to start. `env` is the whole environment; output is appended to `log`."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    log: Path


class Keeping:
    """A running keeper and what it has said. Use from one thread at a time."""

    def __init__(self, clock: Clock, mark: str | None = None) -> None:
        self._clock = clock
        self._mark = mark or uuid4().hex
        self._unread = b""
        self.pids: dict[str, int] = {}
        """The first process of each program started."""
        self.codes: dict[str, int | None] = {}
        """Exit codes of programs that ended (negative: the signal); None where the keeper died first."""
        self._refused: dict[str, str] = {}
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )

    @property
    def pid(self) -> int:
        """The keeper's own process."""
        return self._keeper.pid

    def start(self, program: Program) -> int:
        """Start a program and return its pid; OutsideError where nothing came of it. A name may be used again."""
        program.log.parent.mkdir(parents=True, exist_ok=True)
        self._listen(0.0)  # The last words about an earlier program of this name are not about this one.
        for said in (self.pids, self.codes, self._refused):
            said.pop(program.name, None)
        order = {
            "do": "start",
            "name": program.name,
            "argv": list(program.argv),
            "env": {**program.env, MARK: self._mark},
            "cwd": str(program.cwd),
            "log": str(program.log),
        }
        self._tell(order)
        deadline = self._clock.monotonic() + _START_SECONDS
        while program.name not in self.pids and self._clock.monotonic() < deadline:
            self._listen(0.2)
            if program.name in self.codes:
                break
        if program.name not in self.pids:
            raise OutsideError(f"{program.argv[0]} was not started within {_START_SECONDS:.0f} s")
        return self.pids[program.name]

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a program's first process."""
        self._tell({"do": "signal", "name": name, "signal": int(number)})

    def look(self) -> Mapping[str, int | None]:
        """Take in what the keeper has said and return `codes`."""
        self._listen(0.0)
        return self.codes

    def refusal(self, name: str) -> str | None:
        """Return why a program could not be started at all, if that is how it ended."""
        return self._refused.get(name)

    def end(self, timeout: float = 15.0) -> None:
        """Kill everything started and the keeper; return when nothing is left."""
        if self._keeper.stdin is not None and not self._keeper.stdin.closed:
            self._tell({"do": "end"})
            with suppress(OSError):
                self._keeper.stdin.close()
        try:
            self._keeper.wait(timeout)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self._listen(0.0)
        self._gone()
        if self._keeper.stdout is not None:
            self._keeper.stdout.close()

    def _tell(self, order: Mapping[str, object]) -> None:
        stdin = self._keeper.stdin
        if stdin is None or stdin.closed:
            return
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        except OSError:
            self._gone()

    def _listen(self, seconds: float) -> None:
        stdout = self._keeper.stdout
        if stdout is None or stdout.closed:
            return
        while select.select([stdout], [], [], seconds)[0]:
            text = os.read(stdout.fileno(), 1 << 16)
            if not text:
                self._gone()
                return
            *lines, self._unread = (self._unread + text).split(b"\n")
            for line in lines:
                self._hear(json.loads(line))
            seconds = 0.0

    def _hear(self, said: Mapping[str, object]) -> None:
        if "started" in said:
            self.pids[str(said["started"])] = int(str(said["pid"]))
        elif "refused" in said:
            self._refused[str(said["refused"])] = str(said["why"])
        else:
            self.codes[str(said["ended"])] = int(str(said["code"]))

    def _gone(self) -> None:
        """The keeper has left: nothing it started may stay."""
        for process in bearing(self._mark):
            with suppress(psutil.Error):
                process.kill()
        for name in self.pids:
            self.codes.setdefault(name, None)


def bearing(mark: str) -> list[psutil.Process]:
    """Return the live processes of this user that were started under a keeper's mark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def describe_code(code: int | None) -> str:
    """Return an exit code as people read it."""
    if code is None:
        return "lost with its keeper"
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
