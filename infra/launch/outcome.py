"""What a trainer's end means, decided from facts in the contract's order.

First the result file, then the newest verified checkpoint against the stage's work, the exit code last: torchrun always
says 1, several trainers say 0 for "stopped". Pure: facts in, a verdict out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from infra.launch.contract import STOPPED_EXIT_CODE
from infra.launch.process import Exit

_MEMORY_WORDS = re.compile(
    r"CUDA out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|Cannot allocate memory|std::bad_alloc|^MemoryError\b"
    r"|oom-kill|DefaultCPUAllocator: can't allocate",
    re.MULTILINE,
)
_TERMINATED = (-15, 143, -2, 130)
_KILLED = (-9, 137)


@dataclass(frozen=True, slots=True)
class Result:
    """A trainer's last word."""

    status: Literal["finished", "stopped"]
    step: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known when a trainer has ended. Steps count the stage's work unit."""

    exit: Exit
    result: Result | None
    work: int
    from_step: int
    committed: int | None
    """The newest verified checkpoint of this stage, whoever made it."""
    hung: str | None = None
    """Why it was taken to hang, if that is why it was stopped."""
    out_of_memory: str | None = None
    """The evidence that memory ran out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How it ended. `kind` is a stable code where it failed: what a retry goes by."""

    outcome: Literal["finished", "stopped", "failed"]
    reason: str
    kind: str = ""


def classify(facts: Facts) -> Verdict:
    """Decide how a trainer's end counts."""
    committed = facts.committed or 0
    if facts.result is not None and facts.result.status == "finished":
        return Verdict("finished", "the trainer says it has finished")
    if committed >= facts.work:
        return Verdict("finished", f"step {committed} of {facts.work} is committed")
    if facts.hung is not None:
        return Verdict("failed", f"it hung: {facts.hung}", "hung")
    if facts.result is not None:
        return Verdict("stopped", f"the trainer says it stopped at step {facts.result.step}")
    return _by_exit(facts, committed)


def _by_exit(facts: Facts, committed: int) -> Verdict:
    end, code = facts.exit, facts.exit.code
    if end.refused is not None:
        return Verdict("failed", f"the command {end}", "not-executable")
    if facts.out_of_memory is not None and code != 0:
        return Verdict("failed", f"out of memory ({facts.out_of_memory}); {end}", "out-of-memory")
    if code == STOPPED_EXIT_CODE or end.asked:
        return Verdict("stopped", f"it left as asked ({end})" if end.asked else f"it stopped by itself ({end})")
    if code is None or code in _KILLED:
        return Verdict("failed", f"the trainer was killed from outside ({end})", "killed")
    if code in _TERMINATED:
        return Verdict("stopped", f"the machine asked it to leave ({end})")
    if code == 0 and committed > facts.from_step:
        return Verdict("stopped", f"it left by itself at step {committed} of {facts.work} (exit code 0)")
    if code == 0:
        return Verdict(
            "failed", f"it left with exit code 0 and no new checkpoint after step {committed}", "no-progress"
        )
    return Verdict("failed", f"the trainer failed with {end}", "trainer-exit")


def read_result(path: Path) -> Result | None:
    """Return the trainer's last word; what cannot be read as one (a half-written file) is none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        status, step = document["status"], document.get("step")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if status not in ("finished", "stopped"):
        return None
    return Result(status, step if isinstance(step, int) and not isinstance(step, bool) else None)


def memory_kills() -> int | None:
    """Return how often the kernel has killed for memory in this machine's or container's group, where it says so."""
    for path in (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control")):
        try:
            match = re.search(r"^oom_kill (\d+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        except OSError:
            continue
        if match is not None:
            return int(match[1])
    return None


def memory_evidence(end: Exit, last_lines: str, kills_before: int | None, kills_after: int | None) -> str | None:
    """Return what shows that memory ran out: the kernel's count, or the trainer's own last lines."""
    if end.code in _KILLED and None not in (kills_before, kills_after) and kills_before != kills_after:
        return "the kernel killed it"
    match = _MEMORY_WORDS.search(last_lines)
    return None if match is None else f"it printed {match[0]!r}"


def last_lines(log: Path, most_bytes: int = 8192) -> str:
    """Return the end of what a trainer printed."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - most_bytes))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
