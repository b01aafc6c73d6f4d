"""P21: a shard that was cut is found before the first step; fetched anew where a whole copy is, else refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.errors import IntegrityError
from storage.datasets import open_dataset
from storage.objects import open_store
from tests.storage.datasets.datasets import build

READING = {"batch": 10, "seed": 1, "epochs": 1, "environ": {}}


def cut(folder: Path, shard: str) -> None:
    data = (folder / shard).read_bytes()
    (folder / shard).write_bytes(data[:-1024])


def change(folder: Path, shard: str) -> None:
    data = bytearray((folder / shard).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / shard).write_bytes(data)


@pytest.fixture
def sites(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("here", "there"):
        build(tmp_path / name, 600, block=40)
    return tmp_path / "here", tmp_path / "there"


@pytest.mark.parametrize("damage", [cut, change, lambda folder, shard: (folder / shard).unlink()])
def test_it_is_fetched_anew_and_goes_on(sites: tuple[Path, Path], damage) -> None:
    here, there = sites
    want = [batch.ids.tolist() for batch in open_dataset(here, **READING)]
    shard = open_dataset(here, **READING).manifest.shards[1].name
    damage(here, shard)
    got = [batch.ids.tolist() for batch in open_dataset(here, replicas=[str(there)], **READING)]
    assert got == want
    assert (here / shard).read_bytes() == (there / shard).read_bytes()
    assert [batch.ids.tolist() for batch in open_dataset(here, **READING)] == want


def test_cut_at_both_sites_it_is_refused_before_the_first_step(sites: tuple[Path, Path]) -> None:
    here, there = sites
    shard = open_dataset(here, **READING).manifest.shards[1]
    cut(here, shard.name)
    cut(there, shard.name)
    with pytest.raises(IntegrityError) as refused:
        open_dataset(here, replicas=[str(there)], **READING)
    assert shard.name in refused.value.message
    assert f"expected {shard.size} B, found {shard.size - 1024} B" in refused.value.message


def test_changed_at_both_sites_it_is_refused_before_its_first_sample(sites: tuple[Path, Path]) -> None:
    here, there = sites
    reader = open_dataset(here, replicas=[str(there)], shuffle=False, **READING)
    shard = reader.manifest.shards[1]
    change(here, shard.name)
    change(there, shard.name)
    used = []
    with pytest.raises(IntegrityError, match=shard.name):
        for batch in reader:
            used += batch.ids.tolist()
    assert max(used) < reader.manifest.shards[0].rows + shard.rows


def test_a_site_without_files_is_helped_by_its_replica(sites: tuple[Path, Path]) -> None:
    there = sites[1]
    store = open_store("memory://cut-short")
    manifest = build(store, 600, block=40)
    store.put(manifest.shards[2].name, store.get(manifest.shards[2].name)[:-1024])
    want = [batch.ids.tolist() for batch in open_dataset(there, **READING)]
    with pytest.raises(IntegrityError):
        open_dataset("memory://cut-short", **READING)
    reader = open_dataset("memory://cut-short", replicas=[str(there)], **READING)
    assert [batch.ids.tolist() for batch in reader] == want
