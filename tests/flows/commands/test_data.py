"""`nightrelay data`: builds, tells and checks; what is wrong is one clear line and the right exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

NIGHTRELAY = Path(sys.executable).with_name("nightrelay")


def run(*arguments: object) -> tuple[int, str, str]:
    done = subprocess.run([NIGHTRELAY, "data", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "book.txt").write_text("once upon a time " * 100)
    return tmp_path / "book.txt"


def test_build_inspect_verify(tmp_path: Path, source: Path) -> None:
    command = ["build", source, tmp_path / "d", "--text", 17, "--block", "170 B", "--shard", "1 KiB", "--json"]
    code, out, _ = run(*command)
    built = json.loads(out)
    assert code == 0 and built["rows"] == 100 and not built["found"]
    assert json.loads(
        run("build", source, tmp_path / "d", "--text", 17, "--block", "170 B", "--shard", "1 KiB", "--json")[1]
    )["found"]
    code, out, _ = run("inspect", tmp_path / "d", "--json")
    assert code == 0 and json.loads(out)["dataset"] == built["dataset"]
    assert "100 rows" in run("inspect", tmp_path / "d")[1]
    assert run("verify", tmp_path / "d")[0] == 0

    shard = tmp_path / "d" / built["shards"][0]["name"]
    shard.write_bytes(shard.read_bytes()[:-1])
    code, out, _ = run("verify", tmp_path / "d", "--json")
    assert code == 1 and not json.loads(out)["ok"] and shard.name in json.loads(out)["faults"][0]


def test_wrong_input_is_told_with_code_two(tmp_path: Path, source: Path) -> None:
    for arguments in (
        ["build", source],
        ["build", source, tmp_path / "d", "--block", "x"],
        ["inspect", tmp_path / "none"],
    ):
        code, _, told = run(*arguments)
        assert code == 2 and told
