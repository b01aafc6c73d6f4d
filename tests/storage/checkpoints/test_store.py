"""Commit, find, restore: whole or not at all, whatever is missing, changed or in the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regions.errors import CapabilityError, ConflictError, FencedError, InputError, IntegrityError
from storage.checkpoints import Record, commit, content_of, newest, records, restore, survey, verify
from storage.objects import Store, open_store
from storage.objects.wrapping import Wrapper
from tests.storage.checkpoints.saves import commit_step, save


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri() if request.param == "file" else f"memory://{tmp_path.name}")


def test_what_is_committed_comes_back(store: Store, tmp_path: Path) -> None:
    at = datetime(2026, 12, 1, tzinfo=UTC)
    about = {"fingerprint": {"threads": 1}, "metrics": {"loss": 1.5, "broken": float("nan")}, "dataset": "d", "at": at}
    record = commit_step(store, tmp_path, 10, epoch=2, seed=7, parent="p", **about)
    assert record.key == "runs/r/s/checkpoints/000000000010-000001.json"
    assert (record.metrics, record.at, record.parent) == ({"loss": 1.5}, at, "p")
    found, passed = newest(store, "r", "s")
    assert found == record and found.digest == record.digest and passed == ()
    restore(store, record, tmp_path / "back")
    assert content_of(tmp_path / "back") == record.content == content_of(tmp_path / "step-10")
    assert verify(store, record) == ()
    assert (tmp_path / "back" / "empty").exists() and (tmp_path / "back" / "more" / "state.json").exists()


def test_records_come_newest_first_by_number(store: Store, tmp_path: Path) -> None:
    for step in (9, 10, 100, 11):
        commit_step(store, tmp_path, step)
    commit_step(store, tmp_path, 100, term=2)
    assert [(r.step, r.term) for r in records(store, "r", "s")] == [(100, 2), (100, 1), (11, 1), (10, 1), (9, 1)]
    assert records(store, "r", "other") == ()


def test_committing_the_same_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    first = commit_step(store, tmp_path, 10, at=datetime(2026, 12, 1, tzinfo=UTC))
    again = commit_step(store, tmp_path, 10, at=datetime(2026, 12, 2, tzinfo=UTC))
    assert again == first and len(records(store, "r", "s")) == 1


def test_another_checkpoint_of_the_same_step_and_term_is_refused(store: Store, tmp_path: Path) -> None:
    first = commit_step(store, tmp_path, 10)
    folder = save(tmp_path / "other", 10, note="other")
    with pytest.raises(ConflictError, match="another checkpoint of the same step and term"):
        commit(store, folder, run="r", stage="s", step=10, term=1, samples=40)
    assert records(store, "r", "s") == (first,)
    assert commit(store, folder, run="r", stage="s", step=10, term=2, samples=40).content != first.content


def test_a_store_without_create_only_is_refused_by_name(tmp_path: Path) -> None:
    class Careless(Wrapper):
        @property
        def capabilities(self):
            from dataclasses import replace

            return replace(super().capabilities, create_only=False)

    store = Careless(open_store(f"memory://{tmp_path.name}"))
    with pytest.raises(CapabilityError, match="create_only"):
        commit_step(store, tmp_path, 1)
    assert not list(store.list())


def test_a_fenced_leg_commits_nothing(store: Store, tmp_path: Path) -> None:
    def fence() -> None:
        raise FencedError("term 2 stands")

    with pytest.raises(FencedError):
        commit_step(store, tmp_path, 10, fence=fence)
    found = survey(store, "r", "s")
    assert found.records == () and "never committed" in found.passed[0].reason


def test_equal_content_has_one_digest_whoever_committed_it(tmp_path: Path) -> None:
    one, two = open_store(f"memory://{tmp_path.name}-1"), open_store((tmp_path / "two").as_uri())
    first = commit_step(one, tmp_path / "a", 10)
    second = commit_step(two, tmp_path / "b", 10, term=9, seed=5, run="x", metrics={"loss": 1.0})
    assert first.content == second.content and first.digest != second.digest


def test_no_place_is_in_a_record(tmp_path: Path) -> None:
    store = open_store((tmp_path / "bucket-of-berlin").as_uri())
    record = commit_step(store, tmp_path, 10)
    text = record.data.decode()
    assert str(tmp_path) not in text and "file:" not in text and "bucket-of-berlin" not in text
    assert all(not path.startswith("/") for path, _, _, _ in json.loads(text)["files"])


def test_equal_parts_are_stored_and_put_once(store: Store, tmp_path: Path) -> None:
    put: list[str] = []

    class Counting(Wrapper):
        def put_many(self, objects, **more):
            put.extend(key for key, _ in objects)
            return super().put_many(objects, **more)

    counting = Counting(store)
    first = commit_step(counting, tmp_path, 10)
    put.clear()
    folder = save(tmp_path, 10)
    (folder / "more" / "state.json").write_text("changed")
    second = commit(counting, folder, run="r", stage="s", step=11, term=1, samples=44)
    new = {key for key, _, _ in second.items()} - {key for key, _, _ in first.items()}
    assert set(put) == new and len(new) == 1


def test_a_damaged_or_missing_chunk_is_named(store: Store, tmp_path: Path) -> None:
    record = commit_step(store, tmp_path, 10)
    chunk = next(chunk for chunk in record.chunks if chunk.size == 1000)
    store.put(chunk.key, bytes(1000))
    with pytest.raises(IntegrityError, match=f"{chunk.key} is damaged: expected 1000 B with BLAKE3 {chunk.digest}"):
        restore(store, record, tmp_path / "back")
    assert chunk.key in verify(store, record)[0]
    store.delete(chunk.key)
    with pytest.raises(IntegrityError, match=f"{chunk.key} is missing"):
        restore(store, record, tmp_path / "back")
    assert not (tmp_path / "back").exists() and not list(tmp_path.glob(".part-*"))


def test_the_newest_whole_one_is_found_with_reasons(store: Store, tmp_path: Path) -> None:
    good, cut = commit_step(store, tmp_path, 10), commit_step(store, tmp_path, 20)
    store.delete(next(chunk for chunk in cut.chunks if chunk.size == 1000).key)
    store.put("runs/r/s/checkpoints/000000000030-000001.json", b"not a record")
    store.put("runs/r/s/checkpoints/000000000040-000001.json", good.data)
    found, passed = newest(store, "r", "s")
    assert found == good
    assert [each.step for each in passed] == [40, 30, 20]
    assert "copied under a wrong name" in passed[0].reason
    assert "no checkpoint record" in passed[1].reason
    assert "1 of its 2 chunks are missing" in passed[2].reason


def test_restoring_over_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    record = commit_step(store, tmp_path, 10)
    assert restore(store, record, tmp_path / "step-10") == tmp_path / "step-10"
    (tmp_path / "taken").mkdir()
    with pytest.raises(ConflictError, match="exists and is not this checkpoint"):
        restore(store, record, tmp_path / "taken")


def test_what_cannot_be_saved_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    about = {"run": "r", "stage": "s", "step": 1, "term": 1, "samples": 0}
    with pytest.raises(InputError, match="holds no file"):
        commit(store, tmp_path / "nothing", **about)
    folder = save(tmp_path, 1)
    (folder / "out").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="links out of the checkpoint"):
        commit(store, folder, **about)
    (folder / "out").unlink()
    (folder / "inside").symlink_to("weights.bin")
    assert len(commit(store, folder, **about).files) == 5
    with pytest.raises(InputError, match="cannot name a run"):
        commit(store, folder, **about | {"run": "a/b"})
    with pytest.raises(InputError, match="step -1"):
        commit(store, folder, **about | {"step": -1})


def test_a_folder_that_changes_meanwhile_is_refused(store: Store, tmp_path: Path) -> None:
    folder = save(tmp_path, 10)

    class Slow(Wrapper):
        def head(self, key: str):
            (folder / "weights.bin").write_bytes(bytes(1000))
            return super().head(key)

    with pytest.raises(IntegrityError, match="changed while it was being saved"):
        commit(Slow(store), folder, run="r", stage="s", step=10, term=1, samples=1)
    assert records(store, "r", "s") == ()


def test_an_old_record_still_opens() -> None:
    """The format as first released; a change that cannot read this needs a new format name."""
    data = (
        b'{"at":null,"dataset":null,"epoch":0,"files":[["a","1","00"]],"fingerprint":{},"format":"nightrelay-checkpoint/1",'
        b'"metrics":{},"parent":null,"run":"r","samples":4,"seed":0,"stage":"s","step":1,"term":1}'
    ).replace(b'["a","1","00"]', b'["a",1,"00",[["00",1]]]')
    record = Record.parse(data, "runs/r/s/checkpoints/000000000001-000001.json")
    assert (record.step, record.files[0].chunks[0].size) == (1, 1)
    with pytest.raises(IntegrityError, match="has format"):
        Record.parse(data.replace(b"checkpoint/1", b"checkpoint/9"))
