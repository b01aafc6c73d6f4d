"""Starts a trainer so that it cannot outlive the leg, and stops it in three steps: file, SIGTERM, SIGKILL.

The trainer runs under a keeper (infra.keeper) in a session of its own: a terminal's Ctrl-C or Prefect's signals reach
the leg only, and the leg decides. However the leg's process dies, the trainer and all its descendants die with it.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.keeping import Keeping, Program, describe_code
from regions.clock import Clock
from regions.errors import OutsideError

_NAME = "trainer"


@dataclass(frozen=True, slots=True)
class Exit:
    """How the launcher ended. `code` is negative for a signal, None where its keeper was killed."""

    code: int | None
    asked: bool
    """Whether it had been asked to stop before."""
    killed: bool
    """Whether the whole group was killed for not leaving in its grace."""
    refused: str | None = None
    """Why the operating system would not run the program at all."""

    def __str__(self) -> str:
        """Render as people read it."""
        if self.refused:
            return f"could not be run: {self.refused}"
        return describe_code(self.code) + (" after its grace" if self.killed else "")


@dataclass(slots=True)
class _Stopping:
    began: float
    grace: float
    terminated: bool = False
    killed: bool = False


class Trainer:
    """A running trainer. `poll` must be called often: it also carries a begun stop forward."""

    def __init__(self, keeping: Keeping, pid: int, stop_file: Path, clock: Clock) -> None:
        self.pid = pid
        self._keeping = keeping
        self._stop_file = stop_file
        self._clock = clock
        self._stopping: _Stopping | None = None
        self._exit: Exit | None = None

    @property
    def keeper_pid(self) -> int:
        """The keeper's process, for reports and tests."""
        return self._keeping.pid

    @property
    def stopping(self) -> bool:
        """Whether it has been asked to stop."""
        return self._stopping is not None

    def poll(self) -> Exit | None:
        """Return how it ended, once it and all its descendants are gone; else None."""
        if self._exit is not None:
            return self._exit
        codes = self._keeping.look()
        if _NAME in codes:
            self._finish(codes[_NAME])
        elif self._stopping is not None:
            self._press(self._stopping)
        return self._exit

    def stop(self, grace: float) -> None:
        """Ask it to save and leave: stop file now, SIGTERM at half the grace, SIGKILL to everything at its end.

        Returns at once; `poll` goes on with it. Asked again, the sooner end counts. `grace` is in real seconds.
        """
        now = self._clock.monotonic()
        if self._stopping is None:
            self._stop_file.touch()
            self._stopping = _Stopping(now, grace)
        else:
            left = self._stopping.began + self._stopping.grace - now
            if grace < left:
                self._stopping.began, self._stopping.grace = now, grace

    def wait(self, seconds: float, every: float = 0.05) -> Exit | None:
        """Poll until it has ended or real seconds have passed."""
        deadline = self._clock.monotonic() + seconds
        while (ended := self.poll()) is None and self._clock.monotonic() < deadline:
            self._clock.sleep(every)
        return ended

    def kill(self) -> Exit:
        """Kill it and every descendant now; return when nothing is left."""
        if self._exit is None and _NAME not in self._keeping.look():
            stopping = self._stopping or _Stopping(self._clock.monotonic(), 0.0)
            stopping.killed = True
            self._stopping = stopping
            self._keeping.end()
        return self._exit or self._finish(self._keeping.look().get(_NAME))

    def _press(self, stopping: _Stopping) -> None:
        passed = self._clock.monotonic() - stopping.began
        if passed >= stopping.grace:
            self.kill()
        elif passed >= stopping.grace / 2 and not stopping.terminated:
            stopping.terminated = True
            self._keeping.signal(_NAME, signal.SIGTERM)

    def _finish(self, code: int | None) -> Exit:
        stopping = self._stopping
        killed = stopping is not None and stopping.killed
        self._keeping.end()
        self._exit = Exit(code, stopping is not None, killed, self._keeping.refusal(_NAME))
        return self._exit


def launch(
    command: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    log_path: Path,
    *,
    stop_file: Path,
    clock: Clock,
) -> Trainer:
    """Start a command with exactly this environment. OutsideError where the program is missing or cannot be run."""
    wanted = str(cwd / command[0]) if "/" in command[0] else command[0]
    program = shutil.which(wanted, path=env.get("PATH"))
    if program is None:
        raise OutsideError(
            f"the command's program {command[0]!r} is not on this machine: "
            "install it, or correct `command` in the run file",
            kind="program-missing",
        )
    keeping = Keeping(clock)
    try:
        pid = keeping.start(Program(_NAME, (program, *command[1:]), dict(env), cwd, log_path))
        return Trainer(keeping, pid, stop_file, clock)
    except BaseException:
        keeping.end()
        raise
