"""What only a folder store can get wrong: durability's order, litter, locks, clashing names, and a fast start."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regions.clock import ManualClock
from regions.errors import ConflictError, InputError
from storage.objects import files
from storage.objects.local import LocalStore


def test_bytes_are_flushed_before_their_name_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, batch = files.sync_folder, files.sync_file_system
    monkeypatch.setattr(files, "sync_folder", lambda folder: (steps.append("folder"), sync(folder)))
    monkeypatch.setattr(files, "sync_file_system", lambda folder: (steps.append("all"), batch(folder)))
    replace, fsync = Path.replace, files.os.fsync
    monkeypatch.setattr(Path, "replace", lambda self, to: (steps.append("name"), replace(self, to))[1])
    monkeypatch.setattr(files.os, "fsync", lambda descriptor: (steps.append("bytes"), fsync(descriptor))[1])
    store = LocalStore(tmp_path)
    store.put("k", b"x")
    assert steps == ["bytes", "name", "folder", "bytes"]  # the folder's own flush is an fsync as well
    steps.clear()
    store.put_many([(f"{number}", b"1") for number in range(9)])
    assert steps == ["all", *["name"] * 9, "all"]


def test_sweep_takes_old_litter_and_leaves_open_uploads(tmp_path: Path) -> None:
    clock = ManualClock(datetime.now(UTC))
    store = LocalStore(tmp_path, clock)
    upload = store.open_upload("k", size=3, part_size=3)
    (tmp_path / ".part-tmp-left").write_bytes(b"half")
    assert store.sweep(3600) == 0
    clock.advance(7200)
    assert store.sweep(3600) == 1
    part = store.put_part("k", upload, 1, b"abc")
    assert store.complete("k", upload, [part]).size == 3
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and path.name != ".part-lock"] == ["k"]


def test_a_key_that_is_anothers_folder_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"x")
    with pytest.raises(InputError, match="another key"):
        store.put("a", b"x")
    with pytest.raises(InputError, match="another key"):
        store.put("a/b/c", b"x")
    assert store.get("a/b") == b"x"


def test_a_version_ends_with_its_file(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    versions = {store.put("k", b"same").version for _ in range(20)}
    with pytest.raises(ConflictError):
        store.get("k", version=min(versions - {store.head("k").version}))


def test_opening_a_folder_loads_no_cloud_client() -> None:
    code = (
        "import sys; from storage.objects import open_store; open_store('file:///tmp/x');"
        "print([name for name in ('botocore', 'boto3', 'oss2', 'ossfs', 'fsspec', 'tenacity') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
