"""Starts programs and outlives nobody: when its own parent is gone, so is everything it started.

Run as a script (`python -I -S keeper.py`), with the standard library alone, so that it is up in some 20 ms and weighs
little. Its standard input is a pipe from its parent (see infra.keeping), one JSON document a line:

    {"do": "start", "name": .., "argv": [..], "env": {..}, "cwd": .., "log": ..}
    {"do": "signal", "name": .., "signal": n}          to that one program
    {"do": "end"}                                      kill every descendant, then leave

and it answers on standard output: {"started": name, "pid": n}, {"refused": name, "why": ..}, {"ended": name, "code": n}
(negative: the signal), for the last program only once all that was left behind is gone. The pipe's end, which the
kernel brings about whatever way the parent died, means "end".

On Linux it is a subreaper: a descendant that made its own session (as torchrun's workers do) or whose parent died
comes to it and is found, and a program's first process dies with the keeper itself. Elsewhere only process groups are
reached.
"""

# pathlib would double the time this script needs to be up.
# ruff: noqa: PTH123, PTH208

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_KILL_SECONDS = 10.0
"""How long killing is repeated before a process that the kernel will not let go is given up."""

if _LINUX:
    import ctypes

    _LIBC = ctypes.CDLL(None)


def _prctl(option: int, value: int) -> None:
    if _LINUX:
        _LIBC.prctl(option, value, 0, 0, 0)


class Keeper:
    """The programs started so far, by pid."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._ended: list[tuple[str, int]] = []
        self._unread = b""
        self._wake, wake_end = os.pipe()
        for end in (self._wake, wake_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ignored in _IGNORED:
            signal.signal(ignored, signal.SIG_IGN)

    def run(self) -> None:
        """Serve until told to end or the parent is gone."""
        while True:
            ready, _, _ = select.select([0, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
                self._tell()
            if 0 in ready:
                text = os.read(0, 1 << 16)
                if not text or not self._obey(text):
                    break
        self._kill_everything()
        self._tell()

    def _obey(self, text: bytes) -> bool:
        *lines, self._unread = (self._unread + text).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if order["do"] == "end":
                return False
            if order["do"] == "start":
                self._start(order)
            else:
                for pid, name in self._names.items():
                    if name == order["name"]:
                        _send(pid, order["signal"])
        return True

    def _start(self, order: dict[str, Any]) -> None:
        say = os.dup(1)
        # A signal that comes before the child has its own dispositions waits, instead of being ignored as it is here.
        signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
        pid = os.fork()
        if pid == 0:
            _become(order, say)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _IGNORED)
        os.close(say)
        self._names[pid] = order["name"]
        _say({"started": order["name"], "pid": pid})

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                name = self._names.pop(pid, None)
                if name is not None:
                    self._ended.append((name, os.waitstatus_to_exitcode(status)))

    def _tell(self) -> None:
        """Report who ended; the last one only after everything it left behind is gone."""
        if self._ended and not self._names:
            self._kill_everything()
        for name, code in self._ended:
            _say({"ended": name, "code": code})
        self._ended.clear()

    def _kill_everything(self) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        while time.monotonic() < deadline:
            left = _descendants(os.getpid())
            for pid in {*left, *self._names}:
                _send(pid, signal.SIGKILL)
                if not _LINUX:
                    _send(-pid, signal.SIGKILL)
            self._reap()
            if not left and not self._names:
                return
            time.sleep(0.005)


def _become(order: dict[str, Any], say: int) -> NoReturn:
    """In the child: become the program, or say why not."""
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, *_IGNORED):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        why = f"{error.strerror or error}: {error.filename or order['argv'][0]}"
        os.write(say, json.dumps({"refused": order["name"], "why": why}).encode() + b"\n")
    finally:
        os._exit(127)


def _descendants(root: int) -> list[int]:
    """Return the live descendants of `root`. Linux only: elsewhere none."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    children: dict[int, list[int]] = {}
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.append(child)
            waiting.append(child)
    return found


def _send(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def _say(document: dict[str, Any]) -> None:
    with suppress(OSError):  # Nobody may listen any more; the end of standard input says so as well.
        os.write(1, json.dumps(document).encode() + b"\n")


if __name__ == "__main__":
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Keeper().run()
