"""P17: deleting run-1 takes nothing of run-10 along: a listing is of a folder, a bare prefix is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.errors import InputError
from storage.objects import Store
from storage.objects.local import LocalStore
from tests.support.s3_server import moto_server, s3_store

RUNS = ("run-1", "run-10", "run-100")


def expire(store: Store, run: str) -> None:
    for stat in list(store.list(f"runs/{run}/")):
        store.delete(stat.key, if_match=stat.version)


def check(store: Store) -> None:
    for run in RUNS:
        for name in ("checkpoints/000001.json", "data/shard-1", "report.json"):
            store.put(f"runs/{run}/{name}", f"{run} {name}".encode())
    for prefix in ("runs/run-1", "runs/run"):
        with pytest.raises(InputError, match="its neighbours"):
            list(store.list(prefix))
        with pytest.raises(InputError):
            list(store.uploads(prefix))
    expire(store, "run-1")
    assert list(store.list("runs/run-1/")) == []
    for run in RUNS[1:]:
        for stat in store.list(f"runs/{run}/"):
            assert store.get(stat.key).decode() == f"{run} {stat.key.removeprefix(f'runs/{run}/')}"
        assert len(list(store.list(f"runs/{run}/"))) == 3


def test_in_a_folder(tmp_path: Path) -> None:
    check(LocalStore(tmp_path))


def test_on_s3() -> None:
    with moto_server() as endpoint:
        check(s3_store(endpoint))
