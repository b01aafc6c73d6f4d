"""Which of the things in a checkpoint folder are whole."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.launch.progress import Progress
from infra.launch.saves import Save, SaveFacts, facts_of, scan, set_aside
from regions.clock import ManualClock, SystemClock

LATER = ManualClock(datetime(2100, 1, 1, tzinfo=UTC))
"""So far on that everything has settled."""


def folder(path: Path, *files: str, text: str = "x") -> Path:
    path.mkdir(parents=True)
    for name in files:
        (path / name).write_text(text)
    return path


def found(root: Path, **given: object) -> list[tuple[int, str]]:
    return [(save.step, save.kind) for save in scan(root, LATER, **given).whole]  # type: ignore[arg-type]


def test_the_newest_folder_is_not_the_newest_checkpoint(tmp_path: Path) -> None:
    folder(tmp_path / "step-10", "weights", "COMPLETE")
    folder(tmp_path / "step-9", "weights", "COMPLETE")
    folder(tmp_path / "step-20", "weights", "COMPLETE")
    folder(tmp_path / "step-30", "weights")
    saves = scan(tmp_path, LATER)
    assert [save.step for save in saves.whole] == [9, 10, 20]
    assert [(entry.path.name, entry.why) for entry in saves.passed_over] == [("step-30", "it has no COMPLETE file")]
    assert [path.name for path in saves.whole[0].files()] == ["weights"]


def test_renamed_into_place(tmp_path: Path) -> None:
    made = folder(tmp_path / ".step-5.tmp", "weights")
    assert found(tmp_path) == []
    made.rename(tmp_path / "step-5")
    assert found(tmp_path) == [(5, "renamed")]


def test_filled_in_place_is_never_taken_for_renamed(tmp_path: Path) -> None:
    made = folder(tmp_path / "step-5")
    made.chmod(0o700)
    assert found(tmp_path) == []
    with (made / "weights").open("w") as file:
        for _ in range(3):
            file.write("x" * 10000)
            file.flush()
            assert found(tmp_path) == []
    (made / "COMPLETE").touch()
    (made / "COMPLETE").unlink()
    assert found(tmp_path) == []


def test_hugging_face(tmp_path: Path) -> None:
    state = json.dumps({"global_step": 1})
    folder(tmp_path / "checkpoint-100", "model.safetensors", "trainer_state.json", text=state)
    folder(tmp_path / "checkpoint-200", "model.safetensors", "trainer_state.json", text=state[:-3])
    folder(tmp_path / "checkpoint-300", "trainer_state.json", "checkpoint-is-incomplete.txt", text=state)
    folder(tmp_path / "checkpoint-400", "model.safetensors")
    assert found(tmp_path) == [(100, "huggingface")]


def test_lightning(tmp_path: Path) -> None:
    whole = tmp_path / "epoch=0-step=50.ckpt"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("data.pkl", "x" * 1000)
    (tmp_path / "epoch=1-step=100.ckpt").write_bytes(whole.read_bytes()[:-30])
    shutil.copy(whole, tmp_path / "last.ckpt")
    saves = scan(tmp_path, LATER)
    assert [(save.step, save.kind) for save in saves.whole] == [(50, "lightning")]
    assert {entry.why for entry in saves.passed_over} == {"it is cut short", "its name has no step=<n>"}


def test_distributed_and_orbax(tmp_path: Path) -> None:
    folder(tmp_path / "step-7", "__0_0.distcp", ".metadata")
    folder(tmp_path / "global_8", "__0_0.distcp", ".metadata")
    folder(tmp_path / "9", "_CHECKPOINT_METADATA")
    folder(tmp_path / "10.orbax-checkpoint-tmp-1", "_CHECKPOINT_METADATA")
    folder(tmp_path / "11", "array")
    assert found(tmp_path) == [(7, "dcp"), (8, "dcp"), (9, "orbax")]


def test_glob_and_what_may_still_grow(tmp_path: Path) -> None:
    (tmp_path / "model_00012.bin").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    clock = SystemClock()
    assert found(tmp_path) == []
    assert found(tmp_path, glob="*.bin") == [(12, "glob")]
    growing = scan(tmp_path, clock, glob="*.bin")
    assert growing.whole == () and "still be growing" in growing.passed_over[0].why
    assert [save.step for save in scan(tmp_path, clock, glob="*.bin", settled=True).whole] == [12]
    os.utime(tmp_path / "model_00012.bin", (0, 0))
    assert [save.step for save in scan(tmp_path, clock, glob="*.bin").whole] == [12]


def test_no_folder_no_saves(tmp_path: Path) -> None:
    assert scan(tmp_path / "none", LATER).whole == ()


def test_own_facts_win(tmp_path: Path) -> None:
    save = Save(5, folder(tmp_path / "step-5", "COMPLETE"), "complete")
    said = Progress(step=4, loss=2.0, samples=40, metrics={"lr": 0.1, "epoch": 1})
    assert facts_of(save, None) == SaveFacts()
    assert facts_of(save, said) == SaveFacts(40, 1, {"lr": 0.1, "loss": 2.0})
    (save.path / "nightrelay.json").write_text('{"samples": 50, "epoch": 2, "metrics": {"loss": 1.5, "f1": 0.5}}')
    assert facts_of(save, said) == SaveFacts(50, 2, {"loss": 1.5, "f1": 0.5})
    (save.path / "nightrelay.json").write_text('{"samples"')
    assert facts_of(save, said) == SaveFacts(40, 1, {"lr": 0.1, "loss": 2.0})


def test_set_aside_leaves_only_what_was_restored(tmp_path: Path) -> None:
    checkpoints, aside = tmp_path / "checkpoints", tmp_path / "aside"
    for step in (10, 20, 30):
        folder(checkpoints / f"step-{step}", "w")
    moved = set_aside(checkpoints, aside, keep=[checkpoints / "step-20"])
    assert [path.name for path in moved] == ["step-10", "step-30"]
    assert [path.name for path in checkpoints.iterdir()] == ["step-20"]
    folder(checkpoints / "step-40", "w")
    assert [path.name for path in set_aside(checkpoints, aside, keep=[checkpoints / "step-20"])] == ["step-40"]
    assert [path.name for path in aside.iterdir()] == ["step-40"]
    assert set_aside(checkpoints, aside, keep=[checkpoints / "step-20"]) == ()


@pytest.mark.parametrize("steps", [[1, 10, 2], [100, 20, 3]])
def test_steps_are_numbers_not_texts(tmp_path: Path, steps: list[int]) -> None:
    for step in steps:
        folder(tmp_path / f"step-{step}", "COMPLETE")
    assert [save.step for save in scan(tmp_path, LATER).whole] == sorted(steps)
