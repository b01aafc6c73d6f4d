"""Small datasets for tests: column `id` counts the rows, `tokens` and `text` follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from storage.datasets import Cut, Manifest, Reader, open_dataset, write
from storage.objects import Store, open_store


def row_batch(first: int, count: int) -> pa.RecordBatch:
    ids = np.arange(first, first + count)
    tokens = (ids[:, None] * 7 + np.arange(8)).astype(np.uint16)
    return pa.record_batch(
        {
            "id": pa.array(ids),
            "tokens": pa.FixedSizeListArray.from_arrays(pa.array(tokens.reshape(-1)), 8),
            "text": pa.array([f"row {number}" * (number % 4) for number in ids.tolist()]),
        }
    )


def build(where: Store | Path, rows: int, *, block: int = 7, shard: int = 3, **cut: Any) -> Manifest:
    """Write `rows` rows in blocks of about `block` rows and shards of about `shard` blocks."""
    store = open_store(where.absolute().as_uri()) if isinstance(where, Path) else where
    per_row = row_batch(0, 100).nbytes / 100
    sizes = Cut(block_bytes=int(per_row * block) + 1, shard_bytes=int(per_row * block * shard) + 1, **cut)
    return write(store, [row_batch(0, rows)], cut=sizes)


def readers(where: Path, world: int, **settings: Any) -> list[Reader]:
    return [open_dataset(where, rank=rank, world=world, environ={}, **settings) for rank in range(world)]


def global_batches(ranks: Sequence[Reader], most: int | None = None) -> Iterable[list[int]]:
    """Yield the ids of each global batch in its order, from all ranks' parts."""
    for number, parts in enumerate(zip(*(iter(rank) for rank in ranks), strict=True)):
        if number == most:
            return
        positions = np.concatenate([part.positions for part in parts])
        ids = np.concatenate([part.ids for part in parts])
        assert len({(part.samples, part.size, part.epoch) for part in parts}) == 1
        assert len(ids) == parts[0].size
        yield ids[np.argsort(positions)].tolist()
