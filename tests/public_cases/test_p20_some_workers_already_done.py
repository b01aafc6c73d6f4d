"""P20: uneven sizes: the rest comes exactly once, whatever the samples, the workers and the stop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.datasets import Reader, Reading, open_dataset
from tests.storage.datasets.datasets import build

SIZES = range(1, 61) if os.environ.get("NIGHTRELAY_SOAK") else [1, 2, 3, 4, 5, 7, 12, 13, 29, 50, 60]


def by_workers(reader: Reader, workers: int) -> list[list[int]]:
    """Read as a data loader with workers does: in turn, one batch of each."""
    turns = [reader.batches(first=number, step=workers) for number in range(workers)]
    found: list[list[int]] = []
    while turns:
        batch = next(turns[len(found) % workers], None)
        if batch is None:
            return found
        found.append(batch.ids.tolist())
    return found


def by_ranks(folder: Path, reading: dict[str, object], ranks: int, cursor: int) -> list[list[int]]:
    parts = [
        list(open_dataset(folder, cursor=cursor, rank=r, world=ranks, environ={}, **reading)) for r in range(ranks)
    ]
    return [sorted(number for part in step for number in part.ids.tolist()) for step in zip(*parts, strict=True)]


def test_fifty_samples_four_workers_stopped_after_ten_batches(tmp_path: Path) -> None:
    build(tmp_path, 50, block=5, shard=2)
    reading = {"batch": 4, "epochs": 1, "seed": 3}
    want = [batch.ids.tolist() for batch in open_dataset(tmp_path, environ={}, **reading)]
    rest = by_workers(open_dataset(tmp_path, environ={}, cursor=40, **reading), 4)
    assert rest == want[10:] and [len(batch) for batch in rest] == [4, 4, 2]


@pytest.mark.parametrize("samples", SIZES)
def test_every_size_worker_count_and_stop(tmp_path: Path, samples: int) -> None:
    build(tmp_path, samples, block=5, shard=2)
    reading = {"batch": 4, "epochs": 1, "seed": 3}
    reader = Reader([str(tmp_path)], Reading(batch=4, epochs=1, seed=3), 0)
    want = [batch.ids.tolist() for batch in reader]
    assert sorted(number for batch in want for number in batch) == list(range(samples))
    for stop in range(len(want)):
        cursor = 4 * stop
        reader.load_state_dict(reader.state_dict(cursor))
        for workers in range(1, 6):
            assert by_workers(reader, workers) == want[stop:]
        for ranks in range(1, 5) if stop % 5 == 0 else ():
            assert by_ranks(tmp_path, reading, ranks, cursor) == [sorted(batch) for batch in want[stop:]]
