"""A program that died is started anew under its name: with a new pid, and once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from infra.keeping import Keeping, Program
from regions.clock import SystemClock


def test_a_name_can_be_started_again_after_its_program_died(tmp_path: Path) -> None:
    clock = SystemClock()
    keeping = Keeping(clock)
    try:
        program = Program("sleeper", ("/bin/sleep", "60"), {}, tmp_path, tmp_path / "log")
        first = keeping.start(program)
        os.kill(first, signal.SIGKILL)
        deadline = clock.monotonic() + 10
        while "sleeper" not in keeping.look() and clock.monotonic() < deadline:
            clock.sleep(0.01)
        assert keeping.look()["sleeper"] == -signal.SIGKILL
        second = keeping.start(program)
        assert second != first
        os.kill(second, 0)
        assert "sleeper" not in keeping.look()
    finally:
        keeping.end()
