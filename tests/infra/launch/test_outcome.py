"""What an end means, and when silence does."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.launch.outcome import Facts, Result, classify, memory_evidence, read_result
from infra.launch.process import Exit
from infra.launch.progress import Progress
from infra.launch.silence import SilenceLimits, SilenceWatch


def facts(code: int | None, *, asked: bool = False, killed: bool = False, **changes: object) -> Facts:
    given: dict[str, object] = {"result": None, "work": 100, "from_step": 20, "committed": 40, **changes}
    return Facts(exit=Exit(code, asked, killed), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "outcome", "kind"),
    [
        (facts(1, result=Result("finished", 100)), "finished", ""),
        (facts(1, committed=100), "finished", ""),
        (facts(-9, committed=130, result=Result("stopped", 130)), "finished", ""),
        (facts(1, result=Result("stopped", 40)), "stopped", ""),
        (facts(0), "stopped", ""),
        (facts(0, committed=20), "failed", "no-progress"),
        (facts(0, committed=None, from_step=0), "failed", "no-progress"),
        (facts(75), "stopped", ""),
        (facts(1, asked=True), "stopped", ""),
        (facts(-9, asked=True, killed=True), "stopped", ""),
        (facts(-15), "stopped", ""),
        (facts(143), "stopped", ""),
        (facts(-9), "failed", "killed"),
        (facts(137), "failed", "killed"),
        (facts(None), "failed", "killed"),
        (facts(1), "failed", "trainer-exit"),
        (facts(1, out_of_memory="it printed 'CUDA out of memory'"), "failed", "out-of-memory"),
        (facts(-9, out_of_memory="the kernel killed it"), "failed", "out-of-memory"),
        (facts(-9, asked=True, killed=True, hung="silent"), "failed", "hung"),
    ],
)
def test_facts_in_the_contracts_order(given: Facts, outcome: str, kind: str) -> None:
    verdict = classify(given)
    assert (verdict.outcome, verdict.kind) == (outcome, kind)
    assert verdict.reason


def test_result_file(tmp_path: Path) -> None:
    path = tmp_path / "result"
    assert read_result(path) is None
    for text, expected in [
        ('{"status": "finished", "step": 5}', Result("finished", 5)),
        ('{"status": "stopped"}', Result("stopped", None)),
        ('{"status": "fini', None),
        ('{"status": "won"}', None),
        ("[]", None),
        ("3", None),
    ]:
        path.write_text(text)
        assert read_result(path) == expected


def test_memory_is_named() -> None:
    killed, failed = Exit(-9, False, False), Exit(1, False, False)
    assert memory_evidence(killed, "", 3, 4) == "the kernel killed it"
    assert memory_evidence(killed, "", 3, 3) is None
    assert memory_evidence(killed, "", None, None) is None
    evidence = memory_evidence(failed, "x\ntorch.OutOfMemoryError: CUDA out of memory. Tried", 3, 3)
    assert evidence is not None and "memory" in evidence.lower()
    assert memory_evidence(failed, "ValueError: no", 3, 3) is None


def test_silence_by_phase_and_by_its_own_pace() -> None:
    watch = SilenceWatch(SilenceLimits(paces=10, floor=5, mute=50), started=0)
    assert watch.silent(50) is None and watch.silent(51) is not None
    watch.sign_of_life(30)
    assert watch.silent(80) is None
    watch.hear(Progress(phase="compile"), 40)
    assert watch.silent(40 + 3600) is None and "compile" in (watch.silent(40 + 3601) or "")
    watch.hear(Progress(step=1), 100)
    assert watch.silent(100 + 900) is None
    watch.hear(Progress(step=3), 104)
    assert watch.limit() == 20
    assert watch.silent(124) is None and "train" in (watch.silent(125) or "")
    watch.hear(Progress(step=4, phase="save"), 106)
    assert watch.limit() == 1800


def test_quick_steps_are_not_hurried() -> None:
    watch = SilenceWatch(SilenceLimits(), started=0)
    for step in range(100):
        watch.hear(Progress(step=step), step / 1000)
    assert watch.limit() == 60
