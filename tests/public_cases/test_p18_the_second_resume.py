"""P18: the second resume of an epoch must not forget what came before the first."""

from __future__ import annotations

from pathlib import Path

from storage.datasets import open_dataset
from tests.storage.datasets.datasets import build


def test_three_resumes_in_one_epoch_join_to_the_uninterrupted_list(tmp_path: Path) -> None:
    build(tmp_path, 400)
    settings = {"batch": 4, "seed": 1, "epochs": 1, "environ": {}}
    want = [number for batch in open_dataset(tmp_path, **settings) for number in batch.ids.tolist()]
    assert len(want) == 400

    got: list[int] = []
    cursor = 0
    for stop in (30, 40, 41, 100):
        for batch in open_dataset(tmp_path, cursor=cursor, **settings):
            got += batch.ids.tolist()
            cursor = batch.samples
            if cursor == 4 * stop:
                break
    assert got == want
    assert sorted(got) == list(range(400))
