"""P28: what a killed save of step 40 left stands in nobody's way when step 40 is reached again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regions.errors import StoreUnavailable
from storage.checkpoints import commit, content_of, newest
from storage.objects import Store, open_store
from storage.objects.wrapping import Wrapper

TRAINER = Path(__file__).parents[1] / "support" / "trainer.py"


class Cut(Wrapper):
    """Loses the connection after the first bytes."""

    def put_many(self, objects, **more):
        super().put_many(objects[:1], **more)
        raise StoreUnavailable("connection lost")


def train(folder: Path, **environ: str) -> int:
    variables = {"NIGHTRELAY_CHECKPOINT_DIR": str(folder)}
    command = [sys.executable, TRAINER, "--steps", "60"]
    return subprocess.run(command, env=os.environ | variables | environ, check=False).returncode


def commit_of(store: Store, folder: Path, step: int, term: int):
    return commit(store, folder / f"step-{step}", run="r", stage="s", step=step, term=term, samples=4 * step)


def test_step_forty_is_saved_and_committed(tmp_path: Path) -> None:
    store = open_store((tmp_path / "site").as_uri())
    whole, folder = tmp_path / "whole", tmp_path / "checkpoints"
    assert train(whole) == 0
    assert train(folder, TRAINER_FAULT="half-save@40") == -signal.SIGKILL
    commit_of(store, folder, 30, term=1)
    (folder / "step-40" / "COMPLETE").touch()  # worse than a half folder: one that says it is whole
    with pytest.raises(StoreUnavailable):
        commit_of(Cut(store), folder, 40, term=1)
    (folder / "step-40" / "COMPLETE").unlink()

    assert newest(store, "r", "s")[0].step == 30  # type: ignore[union-attr]
    assert train(folder, NIGHTRELAY_RESUME_FROM=str(folder / "step-30")) == 0
    assert content_of(folder / "step-40") == content_of(whole / "step-40")
    record = commit_of(store, folder, 40, term=2)
    assert newest(store, "r", "s")[0] == record
    assert record.content == content_of(whole / "step-40")
