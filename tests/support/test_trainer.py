"""The tests' own trainer keeps the contract it is used to test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAINER = Path(__file__).with_name("trainer.py")


def start(folder: Path, *flags: str, **environ: str) -> int:
    variables = {
        "NIGHTRELAY_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "NIGHTRELAY_RESULT": str(folder / "result.json"),
        "TRAINER_SAMPLES": str(folder / "samples.txt"),
        "NIGHTRELAY_SEED": "3",
    }
    folder.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, TRAINER, *flags], env=os.environ | variables | environ, check=False)
    return done.returncode


def used(folder: Path) -> list[str]:
    return [line.split()[2] for line in (folder / "samples.txt").read_text().splitlines()]


def state(folder: Path, step: int) -> bytes:
    return (folder / "checkpoints" / f"step-{step}" / "state.json").read_bytes()


def test_a_relay_uses_the_samples_of_the_whole_run(tmp_path: Path) -> None:
    whole, relay = tmp_path / "whole", tmp_path / "relay"
    assert start(whole, "--steps", "40") == 0
    assert start(relay, "--steps", "40", NIGHTRELAY_STOP_AT_STEP="13") == 75
    resume = str(relay / "checkpoints" / "step-13")
    assert start(relay, "--steps", "40", NIGHTRELAY_RESUME_FROM=resume) == 0
    assert used(relay) == used(whole) and len(used(whole)) == 160
    assert state(relay, 40) == state(whole, 40)
    assert len(set(used(whole)[:100])) == 100


@pytest.mark.parametrize(("fault", "code"), [("exit@12:9", 9), ("oom@12", 1), ("half-save@20", -9)])
def test_faults_leave_the_last_save(tmp_path: Path, fault: str, code: int) -> None:
    once = str(tmp_path / "happened")
    assert start(tmp_path, TRAINER_FAULT=fault, TRAINER_FAULT_ONCE=once) == code
    assert (tmp_path / "checkpoints" / "step-10" / "COMPLETE").exists()
    assert not (tmp_path / "checkpoints" / "step-20" / "COMPLETE").exists()
    resume = str(tmp_path / "checkpoints" / "step-10")
    assert start(tmp_path, TRAINER_FAULT=fault, TRAINER_FAULT_ONCE=once, NIGHTRELAY_RESUME_FROM=resume) == 0
    assert json.loads((tmp_path / "result.json").read_text()) == {"status": "finished", "step": 40}
