"""P23: killed at any point of a save, the run goes on from the commit before; the rest is swept away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.checkpoints import content_of, newest, restore, survey
from storage.checkpoints.collecting import GRACE, collect
from storage.checkpoints.store import commit
from storage.objects import open_store
from storage.objects.wrapping import Wrapper
from tests.storage.checkpoints.saves import commit_step

TRAINER = Path(__file__).parents[1] / "support" / "trainer.py"
BALLAST = 40 << 20


class Deadly(Wrapper):
    """Kills this very process when a share of the bytes has been put, or right before the record."""

    share, put_so_far = 1.0, 0

    def put_many(self, objects, **more):
        for each in objects:
            if self.put_so_far >= self.share * BALLAST:
                os.kill(os.getpid(), signal.SIGKILL)
            super().put_many([each], **more)
            self.put_so_far += len(each[1])

    def put(self, key, body, **more):
        if more.get("create"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().put(key, body, **more)


def save_and_die(url: str, folder: Path, share: float) -> int:
    """Commit step 20 in a process that dies on the way; return how it ended."""
    child = os.fork()
    if child == 0:
        store = Deadly(open_store(url))
        store.share = share
        try:
            commit(store, folder, run="r", stage="s", step=20, term=1, samples=80)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_the_one_before_stands(tmp_path: Path, share: float) -> None:
    url = (tmp_path / "site").as_uri()
    store = open_store(url)
    before = commit_step(store, tmp_path / "saves", 10)
    folder = tmp_path / "saves" / "step-20"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(os.urandom(BALLAST))
    (folder / "COMPLETE").touch()

    assert save_and_die(url, folder, share) == -signal.SIGKILL
    found, passed = newest(store, "r", "s")
    assert found == before
    assert [each.step for each in passed] == [20] and "never committed" in passed[0].reason
    assert [record.step for record in survey(store, "r", "s").records] == [10]

    gone = collect(store, now=datetime.now(UTC) + GRACE + timedelta(minutes=1))
    left = {stat.key for stat in store.list("chunks/")}
    assert left == {chunk.key for chunk in before.chunks} and gone.bytes > 0
    assert survey(store, "r", "s").passed == ()
    restore(store, before, tmp_path / "back")


def test_the_trainer_killed_in_the_middle_of_its_own_save_goes_on(tmp_path: Path) -> None:
    """Its half folder has no COMPLETE, so nobody takes it; the next start replaces it and ends the same."""

    def run(folder: Path, **environ: str) -> int:
        variables = {"NIGHTRELAY_CHECKPOINT_DIR": str(folder)}
        return subprocess.run([sys.executable, TRAINER], env=os.environ | variables | environ, check=False).returncode

    assert run(tmp_path / "whole") == 0
    killed = tmp_path / "killed"
    assert run(killed, TRAINER_FAULT="half-save@20") == -signal.SIGKILL
    assert (killed / "step-20" / "state.json").exists() and not (killed / "step-20" / "COMPLETE").exists()
    assert run(killed, NIGHTRELAY_RESUME_FROM=str(killed / "step-10")) == 0
    for step in (20, 40):
        assert content_of(killed / f"step-{step}") == content_of(tmp_path / "whole" / f"step-{step}")
