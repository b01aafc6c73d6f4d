"""Batches prepared by a thread are the same batches; errors and early ends leave nothing running."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from storage.datasets import open_dataset
from storage.datasets.ahead import Ahead
from tests.storage.datasets.datasets import build


def running() -> bool:
    return any(thread.name == "dataset-ahead" for thread in threading.enumerate())


def test_the_same_batches(tmp_path: Path) -> None:
    build(tmp_path, 100)
    plain = [batch.ids.tolist() for batch in open_dataset(tmp_path, batch=8, epochs=2, environ={})]
    ahead = [batch.ids.tolist() for batch in open_dataset(tmp_path, batch=8, epochs=2, ahead=3, environ={})]
    assert ahead == plain


def test_an_error_comes_where_its_item_would_have() -> None:
    def source():
        yield 1
        raise OSError("gone")

    ahead = Ahead(source(), 4)
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            next(ahead)


def test_an_early_end_stops_the_thread_and_closes_the_source() -> None:
    closed = []

    def source():
        try:
            number = 0
            while True:
                yield (number := number + 1)
        finally:
            closed.append(True)

    ahead = Ahead(source(), 2)
    assert next(ahead) == 1
    ahead.close()
    assert closed == [True] and not running()
    assert list(ahead) == []
