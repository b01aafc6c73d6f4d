"""The reader over real stores: exact resume, any width, damage found and mended, memory and processes."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regions.errors import InputError, IntegrityError, NotFoundError, OutsideError
from storage.datasets import Cut, from_rows, from_text, from_tokens, open_dataset, write
from storage.datasets.places import Place, damaged, read_manifest
from storage.objects import open_store
from tests.storage.datasets.datasets import build, global_batches, readers, row_batch

SETTINGS = {"batch": 12, "seed": 5, "epochs": 2}


@pytest.mark.parametrize(
    "cut", [{}, {"compression": "zstd"}, {"format": "parquet"}, {"format": "parquet", "compression": "zstd"}]
)
def test_columns_come_back_as_they_went_in(tmp_path: Path, cut: dict[str, str]) -> None:
    build(tmp_path, 100, **cut)
    whole = row_batch(0, 100)
    for batch in open_dataset(tmp_path, environ={}, **SETTINGS):
        assert batch["id"].tolist() == batch.ids.tolist()
        assert batch["text"] == [whole["text"][number].as_py() for number in batch.ids.tolist()]
        want = (batch.ids[:, None] * 7 + np.arange(8)).astype(np.uint16)
        assert batch["tokens"].dtype == np.uint16 and (batch["tokens"] == want).all()
        assert set(batch) == {"id", "tokens", "text"} and len(batch) == 3


def test_nulls_and_nested_values_come_as_objects(tmp_path: Path) -> None:
    rows = [{"a": None if number % 3 else number, "b": {"x": [number]}} for number in range(10)]
    write(open_store(tmp_path.as_uri()), from_rows(rows))
    batch = next(iter(open_dataset(tmp_path, batch=10, shuffle=False, environ={})))
    assert batch["a"] == [row["a"] for row in rows] and batch["b"] == [row["b"] for row in rows]


def test_only_wanted_columns_are_read(tmp_path: Path) -> None:
    build(tmp_path, 20)
    assert set(next(iter(open_dataset(tmp_path, batch=4, columns=("id",), environ={})))) == {"id"}
    with pytest.raises(InputError, match="no column ghost"):
        open_dataset(tmp_path, batch=4, columns=("ghost",), environ={})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.integers(1, 90), batch=st.integers(1, 12), data=st.data())
def test_any_width_and_stop_gives_the_same_batches(
    tmp_path_factory, rows: int, batch: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("dataset")
    build(folder, rows)
    want = list(global_batches(readers(folder, 1, batch=batch, seed=9, epochs=2)))
    got: list[list[int]] = []
    while len(got) < len(want):
        world = data.draw(st.integers(1, batch))
        cursor = readers(folder, 1, batch=batch)[0].epochs.skip(0, len(got))
        ranks = readers(folder, world, batch=batch, seed=9, epochs=2, cursor=cursor)
        got += global_batches(ranks, most=data.draw(st.integers(1, 8)))
    assert got == want


def test_sequential_reading_is_the_order_of_the_rows(tmp_path: Path) -> None:
    build(tmp_path, 50)
    for world in (1, 3):
        found = list(global_batches(readers(tmp_path, world, batch=8, shuffle=False, epochs=1)))
        assert [number for each in found for number in each] == list(range(50))
        assert [len(each) for each in found] == [8] * 6 + [2]


def test_the_environment_of_a_leg_is_enough(tmp_path: Path) -> None:
    manifest = build(tmp_path, 60)
    environ = {"NIGHTRELAY_DATASET": str(tmp_path), "NIGHTRELAY_CURSOR": "24", "NIGHTRELAY_SEED": "5"}
    batch = next(iter(open_dataset(batch=12, environ=environ)))
    assert batch.ids.tolist() == list(global_batches(readers(tmp_path, 1, **SETTINGS)))[2]
    ranked = open_dataset(tmp_path / manifest.key, batch=12, environ=environ | {"RANK": "1", "WORLD_SIZE": "3"})
    assert (ranked.reading.rank, ranked.reading.world) == (1, 3)
    with pytest.raises(InputError, match="no dataset: give its folder"):
        open_dataset(batch=12, environ={})
    with pytest.raises(InputError, match="NIGHTRELAY_CURSOR='x'"):
        open_dataset(batch=12, environ=environ | {"NIGHTRELAY_CURSOR": "x"})


def test_a_state_goes_on_only_under_its_own_settings(tmp_path: Path) -> None:
    build(tmp_path, 60)
    reader = open_dataset(tmp_path, environ={}, **SETTINGS)
    state = reader.state_dict(24)
    reader.load_state_dict(state)
    assert next(iter(reader)).samples == 36
    for changed in ({"batch": 6}, {"seed": 6}, {"lanes": 4}, {"window": 2}, {"shuffle": False}, {"tail": "drop"}):
        other = open_dataset(tmp_path, environ={}, **SETTINGS | changed)
        with pytest.raises(InputError, match=f"{next(iter(changed))}: saved .* now"):
            other.load_state_dict(state)
    build(tmp_path / "more", 61)
    with pytest.raises(InputError, match="dataset: saved"):
        open_dataset(tmp_path / "more", environ={}, **SETTINGS).load_state_dict(state)


def test_a_dataset_is_named_by_content(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a", 50), build(tmp_path / "b", 50)
    assert first.digest == second.digest and first.items() == second.items()
    assert {stat.key for stat in open_store((tmp_path / "a").as_uri()).list()} == {
        first.key,
        *(key for key, _, _ in first.items()),
    }
    assert build(tmp_path / "c", 51).digest != first.digest


def test_a_folder_with_no_or_two_datasets_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="holds no dataset"):
        open_dataset(tmp_path, batch=2, environ={})
    first, second = build(tmp_path, 20), build(tmp_path, 21)
    with pytest.raises(InputError, match="holds 2 datasets"):
        open_dataset(tmp_path, batch=2, environ={})
    assert open_dataset(tmp_path / second.key, batch=2, environ={}).dataset == second.digest
    (tmp_path / first.key).write_bytes(second.data)
    with pytest.raises(IntegrityError, match="is damaged"):
        open_dataset(tmp_path / first.key, batch=2, environ={})
    with pytest.raises(InputError, match="a dataset needs at least one sample"):
        write(open_store(tmp_path.as_uri()), [])


def test_a_build_that_was_killed_writes_only_what_is_missing(tmp_path: Path) -> None:
    manifest = build(tmp_path, 60)
    kept, lost = manifest.shards[0].name, manifest.shards[1].name
    stamp = (tmp_path / kept).stat().st_mtime_ns
    (tmp_path / lost).unlink()
    (tmp_path / manifest.key).unlink()
    assert build(tmp_path, 60).digest == manifest.digest and (tmp_path / lost).exists()
    assert (tmp_path / kept).stat().st_mtime_ns == stamp


def test_from_a_store_without_files_with_and_without_a_cache(tmp_path: Path) -> None:
    store = open_store("memory://loader")
    manifest = build(store, 200)
    build(tmp_path / "local", 200)
    want = list(global_batches(readers(tmp_path / "local", 1, **SETTINGS)))
    for cache in (None, tmp_path / "cache"):
        reader = open_dataset("memory://loader", environ={}, cache=cache, **SETTINGS)
        assert list(global_batches([reader])) == want
    cached = [path for path in (tmp_path / "cache").glob("*/*") if not path.name.startswith(".")]
    assert len(cached) == len(manifest.blocks.rows)


def test_a_cache_stays_within_its_limit_and_mends_itself(tmp_path: Path) -> None:
    manifest = build(open_store("memory://limited"), 400)
    largest = int(manifest.blocks.length.max())
    limit = 20 * largest
    arguments = {**SETTINGS, "lanes": 4, "window": 1, "cache": tmp_path, "environ": {}}
    want = list(global_batches([open_dataset("memory://limited", cache_bytes=10**9, **arguments)]))
    for path in tmp_path.glob("*/*"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    reader = open_dataset("memory://limited", cache_bytes=limit, **arguments)
    assert list(global_batches([reader])) == want
    assert sum(path.stat().st_size for path in tmp_path.glob("*/*")) <= limit
    with pytest.raises(OutsideError, match=f"limited to {largest} B, but this reader needs"):
        next(iter(open_dataset("memory://limited", cache_bytes=largest, **arguments)))


def test_a_cache_keeps_what_its_source_has_lost(tmp_path: Path) -> None:
    store = open_store("memory://vanishing")
    manifest = build(store, 100)
    arguments = {**SETTINGS, "lanes": 2, "window": 1, "cache": tmp_path, "environ": {}}
    reader = open_dataset("memory://vanishing", cache_bytes=10**9, **arguments)
    list(reader)
    again = open_dataset("memory://vanishing", cache_bytes=4 * int(manifest.blocks.length.max()), **arguments)
    for shard in manifest.shards:
        store.delete(shard.name)
    before = sorted(path.name for path in tmp_path.glob("*/*"))
    assert sum(1 for _ in again) == sum(1 for _ in reader)
    assert sorted(path.name for path in tmp_path.glob("*/*")) == before


def _ids_in_child(reader, queue) -> None:
    queue.put([batch.ids.tolist() for batch in reader])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_reader_goes_with_a_fork_or_a_spawn(tmp_path: Path, method: str) -> None:
    build(tmp_path, 60)
    reader = open_dataset(tmp_path, environ={}, **SETTINGS)
    want = [batch.ids.tolist() for batch in reader]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_ids_in_child, args=(reader, queue))
    child.start()
    assert queue.get(timeout=60) == want
    child.join()
    assert [batch.ids.tolist() for batch in pickle.loads(pickle.dumps(reader))] == want


def test_data_workers_share_the_batches(tmp_path: Path) -> None:
    build(tmp_path, 61)
    want = list(global_batches(readers(tmp_path, 1, **SETTINGS)))
    for workers in (1, 2, 3, 5):
        reader = open_dataset(tmp_path, environ={}, **SETTINGS)
        parts = [[b.ids.tolist() for b in reader.batches(first=n, step=workers)] for n in range(workers)]
        assert [parts[number % workers][number // workers] for number in range(len(want))] == want


def test_tokens_and_text_are_cut_to_samples() -> None:
    arrays = [np.arange(5, dtype=np.uint16), np.arange(5, 12, dtype=np.uint16)]
    cut = [row for batch in from_tokens(arrays, 4, stride=3) for row in batch["tokens"].to_pylist()]
    assert cut == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    text = [bytes(row) for batch in from_text(["grü", "n!"], 3) for row in batch["tokens"].to_pylist()]
    assert b"".join(text) == "grün!".encode()
    with pytest.raises(InputError, match="stride 9"):
        list(from_tokens(arrays, 4, stride=9))
    with pytest.raises(InputError, match="not of one kind"):
        list(from_rows([{"a": 1}, {"a": "x"}]))
    with pytest.raises(InputError, match="0 < block <= shard"):
        Cut(block_bytes=10, shard_bytes=1)


def test_every_kind_of_damage_is_told(tmp_path: Path) -> None:
    manifest = build(tmp_path, 100)
    place = Place(open_store(tmp_path.as_uri()))
    assert read_manifest(place).digest == manifest.digest and not list(damaged(manifest, place))
    names = [shard.name for shard in manifest.shards]
    (tmp_path / names[0]).unlink()
    (tmp_path / names[1]).write_bytes((tmp_path / names[1]).read_bytes()[:-1])
    (tmp_path / names[2]).write_bytes((tmp_path / names[2]).read_bytes()[:-1] + b"?")
    told = list(damaged(manifest, place))
    assert ["found nothing" in told[0], "found" in told[1], "BLAKE3" in told[2]] == [True] * 3
