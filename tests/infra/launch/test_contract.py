"""What a trainer is given."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.launch.contract import Folders, LaunchContext, substitute
from regions.errors import RequestError


def context(root: Path, **changes: object) -> LaunchContext:
    given: dict[str, object] = {
        "run": "r-1",
        "stage": "pretrain",
        "leg": 3,
        "term": 3,
        "region": "local-berlin",
        "seed": 7,
        "folders": Folders(root),
        "grace_seconds": 12.5,
        **changes,
    }
    return LaunchContext(**given)  # type: ignore[arg-type]


def test_variables_of_a_first_leg(tmp_path: Path) -> None:
    variables = context(tmp_path).variables()
    assert variables["NIGHTRELAY_RUN"] == "r-1"
    assert variables["NIGHTRELAY_GRACE_SECONDS"] == "12.5"
    assert "NIGHTRELAY_RESUME_FROM" not in variables
    assert all(Path(variables[f"NIGHTRELAY_{name}"]).is_absolute() for name in ("CHECKPOINT_DIR", "PROGRESS", "RESULT"))


def test_context_file_says_the_same(tmp_path: Path) -> None:
    told = context(
        tmp_path,
        resume_from=tmp_path / "x",
        cursor=0,
        inputs={"my-data": "/in"},
        stop_by=datetime(2026, 12, 1, tzinfo=UTC),
    )
    told.folders.prepare()
    told.write()
    document = json.loads(told.folders.context.read_text())
    variables = told.variables()
    assert variables["NIGHTRELAY_INPUT_MY_DATA"] == "/in"
    assert document.pop("inputs") == {"my-data": "/in"}
    assert {f"NIGHTRELAY_{name.upper()}": value for name, value in document.items()} == {
        name: value for name, value in variables.items() if "_INPUT_" not in name
    }
    assert document["cursor"] == "0" and document["stop_by"] == "2026-12-01T00:00:00+00:00"


def test_environment_withholds_what_is_not_a_trainers_business(tmp_path: Path) -> None:
    base = {
        "PATH": "/usr/bin",
        "HOME": "/home/x",
        "PREFECT_API_KEY": "secret",
        "NIGHTRELAY_DATABASE_URL": "postgresql://secret",
        "NIGHTRELAY_CLOCK": "real",
        "OMP_NUM_THREADS": "64",
    }
    env = context(tmp_path, threads=1, extra={"LR": "0.1", "NIGHTRELAY_RUN": "forged"}).environment(base)
    assert "secret" not in " ".join(env.values())
    assert env["OMP_NUM_THREADS"] == env["MKL_NUM_THREADS"] == "1"
    assert env["LR"] == "0.1" and env["NIGHTRELAY_RUN"] == "r-1" and env["NIGHTRELAY_CLOCK"] == "real"
    assert env["PATH"].split(":") == [str(Path(sys.executable).parent), "/usr/bin"]


def test_prepare_forgets_the_last_trainers_words_and_keeps_its_saves(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.prepare()
    (folders.checkpoints / "step-1").mkdir()
    for said in (folders.stop_file, folders.result, folders.progress):
        said.write_text("old")
    folders.prepare()
    assert not folders.stop_file.exists() and not folders.result.exists() and not folders.progress.exists()
    assert (folders.checkpoints / "step-1").is_dir()


@pytest.mark.parametrize(
    ("command", "first", "later"),
    [
        (["t", "--from", "{resume}", "-x"], ("t", "-x"), ("t", "--from", "/c", "-x")),
        (["t", "--from={resume}"], ("t",), ("t", "--from=/c")),
        (["t", "{resume}"], ("t",), ("t", "/c")),
        (["t", "a b"], ("t", "a b"), ("t", "a b")),
    ],
)
def test_resume_in_the_command(command: list[str], first: tuple[str, ...], later: tuple[str, ...]) -> None:
    assert substitute(command, None) == first
    assert substitute(command, Path("/c")) == later


def test_a_command_of_nothing_but_resume() -> None:
    with pytest.raises(RequestError, match="nothing to run"):
        substitute(["{resume}"], None)
