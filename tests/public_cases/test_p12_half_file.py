"""P12: the half file that looks whole. A producer that raises leaves nothing under a final name, by any of our ways."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from regions.errors import NightrelayError
from storage.handoff import Document, Item, handoff
from storage.objects import Store, chunk_of
from storage.objects.local import LocalStore
from storage.objects.memory import MemoryStore
from storage.objects.oss_filesystem import register
from tests.support.oss_server import oss_server


class Broken(Exception):
    """The producer's own failure."""


def half_an_upload(store: Store) -> None:
    upload = store.open_upload("shard", size=200_000, part_size=100_000)
    store.put_part("shard", upload, 1, os.urandom(100_000))
    raise Broken


def test_uploads_that_are_not_finished_are_not_there(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path / "site"), MemoryStore()):
        with pytest.raises(Broken):
            half_an_upload(store)
        assert list(store.list()) == []


def test_a_writer_through_fsspec_that_raises_publishes_nothing_and_its_rerun_all() -> None:
    register()
    with oss_server() as server:
        bucket = server.make_bucket()
        options = {"endpoint": server.endpoint, "key": "access", "secret": "secret", "region": "loop-1"}
        rows = [os.urandom(50_000) for _ in range(200)]
        with pytest.raises(Broken), fsspec.open(f"oss://{bucket}/shard", "wb", **options) as file:
            for number, row in enumerate(rows):
                if number == len(rows) // 2:
                    raise Broken
                file.write(row)
        assert server.buckets[bucket].things == {} and server.buckets[bucket].uploads == {}
        with fsspec.open(f"oss://{bucket}/shard", "wb", **options) as file:
            for row in rows:
                file.write(row)
        assert server.buckets[bucket].things["shard"].data == b"".join(rows)


def test_a_manifest_never_names_what_is_short() -> None:
    source, target = MemoryStore("a"), MemoryStore("b")
    whole = os.urandom(80_000)
    chunk = chunk_of(whole)
    source.put(chunk.key, whole[:40_000])  # the producer died and somebody published its half
    with pytest.raises(NightrelayError):
        handoff([Item.of_chunk(chunk)], [Document("manifest", b"{}")], source, target)
    assert list(target.list()) == []
    source.put(chunk.key, whole)
    handoff([Item.of_chunk(chunk)], [Document("manifest", b"{}")], source, target)
    assert target.get(chunk.key) == whole
