"""Packed history is smaller and comes back bit for bit, alone and against a base; nothing hot is touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.errors import IntegrityError
from storage.checkpoints import Record, commit, content_of, newest, restore, verify
from storage.checkpoints.collecting import GRACE, collect
from storage.checkpoints.packing import _decode, _encode, base_of, pack, packed_key, unpack
from storage.objects import Store, open_store

LATER = datetime.now(UTC) + timedelta(days=9)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"memory://{tmp_path.name}")


def history(store: Store, folder: Path, count: int = 3) -> list[Record]:
    """Weights that drift a little from step to step, beside a part that is frozen."""
    weights = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    made = []
    for step in range(count):
        where = folder / f"step-{step}"
        where.mkdir()
        (where / "weights.bin").write_bytes(weights.tobytes())
        (where / "frozen.bin").write_bytes(np.random.default_rng(1).bytes(5000))
        made.append(commit(store, where, run="r", stage="s", step=step, term=1, samples=step))
        weights += np.random.default_rng(step).normal(size=weights.size).astype(np.float32) * 1e-5
    return made


@given(st.binary(max_size=600), st.binary(max_size=600), st.booleans())
def test_any_bytes_come_back(data: bytes, other: bytes, against: bool) -> None:
    base = (other + bytes(len(data)))[: len(data)] if against else None
    header, _, payload = _encode(data, "digest", base).partition(b"\n")
    width = int(header.split(b'"width": ')[1].rstrip(b"}"))
    assert _decode(payload, len(data), width, base) == data


def test_history_shrinks_and_comes_back(store: Store, tmp_path: Path) -> None:
    old, middle, new = history(store, tmp_path)
    alone = pack(store, middle, hot=[new], older_than=LATER)
    against = pack(store, old, hot=[new], older_than=LATER, base=middle)
    assert alone.chunks == against.chunks == 1
    assert alone.after < 0.9 * alone.before and against.after < 0.8 * against.before
    assert base_of(store, old.files[1].digest) == middle.files[1].digest
    for record in (old, middle, new):
        assert verify(store, record) == ()
        restore(store, record, tmp_path / f"back-{record.step}")
        assert content_of(tmp_path / f"back-{record.step}") == record.content
    assert newest(store, "r", "s") == (new, ())
    plain = {stat.key for stat in store.list("chunks/")}
    assert {chunk.key for chunk in new.chunks} == plain
    assert pack(store, new, hot=[], older_than=datetime(2020, 1, 1, tzinfo=UTC)).chunks == 0


def test_a_base_stays_as_long_as_it_is_needed(store: Store, tmp_path: Path) -> None:
    old, middle, new = history(store, tmp_path)
    pack(store, old, hot=[new], older_than=LATER, base=middle)
    store.delete(middle.key)
    collect(store, now=LATER)
    restore(store, old, tmp_path / "back")
    store.delete(old.key)
    collect(store, now=LATER)
    collect(store, now=LATER + GRACE)
    assert {stat.key for stat in store.list()} == {new.key, *(chunk.key for chunk in new.chunks)}


def test_packed_against_a_packed_one_uses_no_base_of_a_base(store: Store, tmp_path: Path) -> None:
    old, middle, new = history(store, tmp_path)
    pack(store, middle, hot=[], older_than=LATER, base=new)
    assert base_of(store, middle.files[1].digest) == new.files[1].digest
    pack(store, old, hot=[], older_than=LATER, base=middle)
    assert base_of(store, old.files[1].digest) is None
    assert verify(store, old) == ()


def test_unpacking_puts_the_plain_chunks_back(store: Store, tmp_path: Path) -> None:
    old, _, new = history(store, tmp_path)
    pack(store, old, hot=[new], older_than=LATER)
    assert unpack(store, old) == 1 and unpack(store, old) == 0
    assert all(store.head(chunk.key).size == chunk.size for chunk in old.chunks)


@pytest.mark.parametrize("damage", [lambda body: body[:-5], lambda body: b"{}" + body[2:], lambda body: b"junk"])
def test_a_damaged_packed_chunk_is_named(store: Store, tmp_path: Path, damage) -> None:
    old, _, new = history(store, tmp_path)
    pack(store, old, hot=[new], older_than=LATER)
    key = packed_key(old.files[1].digest)
    store.put(key, damage(store.get(key)))
    with pytest.raises(IntegrityError, match=key):
        restore(store, old, tmp_path / "back")
    assert len(verify(store, old)) == 1
