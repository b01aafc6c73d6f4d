"""One keeper with several programs: each is started, signalled and reported by its name."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.keeping import Keeping, Program, bearing
from regions.clock import SystemClock

SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def keeping() -> Iterator[Keeping]:
    started = Keeping(SystemClock(), "mark-of-this-test")
    yield started
    started.end()
    assert bearing("mark-of-this-test") == []


def program(name: str, code: str, folder: Path) -> Program:
    return Program(name, (sys.executable, "-S", "-c", code), {}, folder, folder / "log")


def soon(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


def test_a_name_used_again_is_a_new_program(keeping: Keeping, tmp_path: Path) -> None:
    first = keeping.start(program("worker", SLEEP, tmp_path))
    other = keeping.start(program("other", SLEEP, tmp_path))
    os.kill(first, signal.SIGKILL)
    assert soon(lambda: keeping.look().get("worker") == -9)
    again = keeping.start(program("worker", SLEEP, tmp_path))
    assert again not in (first, other)
    assert "worker" not in keeping.look() and keeping.pids == {"worker": again, "other": other}


def test_the_end_of_one_does_not_touch_what_another_left(keeping: Keeping, tmp_path: Path) -> None:
    orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])"
    keeping.start(program("lasting", SLEEP, tmp_path))
    keeping.start(program("brief", orphan, tmp_path))
    assert soon(lambda: "brief" in keeping.look())
    assert soon(lambda: len(bearing("mark-of-this-test")) == 2)


def test_signals_go_by_name(keeping: Keeping, tmp_path: Path) -> None:
    for name in ("one", "two"):
        keeping.start(program(name, SLEEP, tmp_path))
    keeping.signal("two", signal.SIGTERM)
    assert soon(lambda: "two" in keeping.look())
    assert dict(keeping.look()) == {"two": -15}
