"""A trainer is started, stopped in three steps, and cannot outlive its leg."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from infra.keeping import MARK
from infra.launch.process import Trainer, launch
from regions.clock import SystemClock
from regions.errors import OutsideError

CLOCK = SystemClock()

TREE = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""
"""A launcher with a worker in a session of its own, as torchrun's are."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Trainer]]:
    started: list[Trainer] = []

    def begin(*command: str, env: dict[str, str] | None = None) -> Trainer:
        environment = {"PATH": os.environ["PATH"]} if env is None else env
        trainer = launch(command, environment, tmp_path, tmp_path / "log", stop_file=tmp_path / "stop", clock=CLOCK)
        started.append(trainer)
        return trainer

    yield begin
    for trainer in started:
        trainer.kill()


def soon(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code, *arguments)


def test_exit_code_and_output(start: Callable[..., Trainer], tmp_path: Path) -> None:
    trainer = start(*python("import sys; print('out'); sys.stderr.write('err'); sys.exit(7)"))
    ended = trainer.wait(5)
    assert ended is not None
    assert (ended.code, ended.asked, ended.killed) == (7, False, False)
    assert sorted((tmp_path / "log").read_text().replace("err", "err\n").split()) == ["err", "out"]


def test_exactly_the_given_environment(start: Callable[..., Trainer], tmp_path: Path) -> None:
    trainer = start(*python("import os; print(sorted(os.environ))"), env={"ONLY": "this", "PATH": os.environ["PATH"]})
    assert trainer.wait(5) is not None
    seen = set(eval((tmp_path / "log").read_text()))
    assert seen - {"LC_CTYPE"} == {"ONLY", "PATH", MARK}


def test_missing_program_is_one_clear_line(start: Callable[..., Trainer]) -> None:
    with pytest.raises(OutsideError, match="'no-such-program' is not on this machine") as caught:
        start("no-such-program")
    assert caught.value.kind == "program-missing"


def test_file_that_is_no_program(start: Callable[..., Trainer], tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"\x00\x01")
    bad.chmod(0o755)
    ended = start("./bad").wait(5)
    assert ended is not None and ended.refused is not None and "could not be run" in str(ended)


def test_stop_file_first(start: Callable[..., Trainer]) -> None:
    code = "import os, sys, time\nwhile not os.path.exists('stop'): time.sleep(0.01)\nsys.exit(75)"
    trainer = start(*python(code))
    assert trainer.poll() is None
    trainer.stop(10)
    ended = trainer.wait(5)
    assert ended is not None and ended.code == 75 and ended.asked and not ended.killed


def test_sigterm_at_half_the_grace_then_sigkill_to_all(start: Callable[..., Trainer], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: open('term', 'w').close())\n" + TREE
    trainer = start(*python(code, str(note)))
    assert soon(lambda: note.exists() and note.read_text() != "")
    worker = int(note.read_text())
    began = time.monotonic()
    trainer.stop(0.8)
    assert soon(lambda: trainer.poll() is not None or (tmp_path / "term").exists())
    assert time.monotonic() - began >= 0.4 and alive(worker)
    ended = trainer.wait(5)
    assert ended is not None and ended.killed and ended.code == -signal.SIGKILL
    assert not alive(worker) and not alive(trainer.pid)


def test_what_a_launcher_leaves_behind_goes_with_it(start: Callable[..., Trainer], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    trainer = start(*python(TREE[: TREE.rindex("time")], str(note)))
    ended = trainer.wait(5)
    assert ended is not None and ended.code == 0
    assert not alive(int(note.read_text()))


def test_killed_keeper_takes_all_along(start: Callable[..., Trainer], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    trainer = start(*python(TREE, str(note)))
    assert soon(lambda: note.exists() and note.read_text() != "")
    os.kill(trainer.keeper_pid, signal.SIGKILL)
    ended = trainer.wait(5)
    assert ended is not None and ended.code is None
    assert soon(lambda: not alive(trainer.pid) and not alive(int(note.read_text())))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_leg_takes_all_along(tmp_path: Path, number: int) -> None:
    leg = f"""
import os, sys, time
from pathlib import Path
from infra.launch.process import launch
from regions.clock import SystemClock
home = Path({str(tmp_path)!r})
trainer = launch([sys.executable, "-S", "-c", {TREE!r}, str(home / "pid")], dict(os.environ), home, home / "log",
                 stop_file=home / "stop", clock=SystemClock())
(home / "trainer").write_text(str(trainer.pid))
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", leg], cwd=Path(__file__).parents[3]) as process:
        notes = [tmp_path / "pid", tmp_path / "trainer"]
        assert soon(lambda: all(note.exists() and note.read_text() for note in notes), 20)
        pids = [int(note.read_text()) for note in notes]
        assert all(alive(pid) for pid in pids)
        process.send_signal(number)
        assert soon(lambda: not any(alive(pid) for pid in pids))


def test_a_second_wish_may_only_be_sooner(start: Callable[..., Trainer]) -> None:
    trainer = start(*python("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"))
    trainer.stop(600)
    trainer.stop(0.2)
    trainer.stop(600)
    ended = trainer.wait(5)
    assert ended is not None and ended.killed


def test_starts_quickly(start: Callable[..., Trainer]) -> None:
    times = []
    for _ in range(5):
        began = time.monotonic()
        start(sys.executable, "-S", "-c", "")
        times.append(time.monotonic() - began)
    assert min(times) < 0.1
