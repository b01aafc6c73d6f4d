"""P19: resuming at sample N of N begins the next epoch at its first sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.datasets import open_dataset
from tests.storage.datasets.datasets import build


@pytest.mark.parametrize("stop", [0, 511, 512])
def test_the_next_epoch_begins_at_its_first_sample(tmp_path: Path, stop: int) -> None:
    build(tmp_path, 512)
    settings = {"batch": 1, "seed": 2, "environ": {}}
    want = [batch.ids[0] for batch in open_dataset(tmp_path, epochs=2, **settings)]
    assert sorted(want[:512]) == sorted(want[512:]) == list(range(512))

    first = [batch for batch in open_dataset(tmp_path, epochs=2, **settings) if batch.samples <= stop]
    resumed = list(open_dataset(tmp_path, epochs=2, cursor=stop, **settings))
    assert [batch.ids[0] for batch in first + resumed] == want
    at_the_end = [batch for batch in resumed if batch.samples == 513]
    assert (at_the_end[0].epoch, at_the_end[0].positions.tolist()) == (1, [0])


def test_a_state_saved_at_the_very_end_is_taken_up(tmp_path: Path) -> None:
    build(tmp_path, 512)
    reader = open_dataset(tmp_path, batch=64, epochs=2, environ={})
    reader.load_state_dict(reader.state_dict(512))
    assert [batch.epoch for batch in reader] == [1] * 8
    reader.load_state_dict(reader.state_dict(1024))
    assert list(reader) == []
