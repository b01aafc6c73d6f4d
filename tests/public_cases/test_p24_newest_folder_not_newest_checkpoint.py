"""P24: a step whose weights are there but whose commit is not is passed over, and the reason is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.errors import StoreUnavailable
from storage.checkpoints import newest, restore
from storage.objects import open_store
from storage.objects.wrapping import Wrapper
from tests.storage.checkpoints.saves import commit_step


class WithoutRecord(Wrapper):
    """Takes every byte and then is gone."""

    def put(self, key, body, **more):
        if "/checkpoints/" in key:
            raise StoreUnavailable("gone")
        return super().put(key, body, **more)


def test_twenty_is_found_and_thirty_explained(tmp_path: Path) -> None:
    store = open_store((tmp_path / "site").as_uri())
    for step in (10, 20):
        commit_step(store, tmp_path, step)
    with pytest.raises(StoreUnavailable):
        commit_step(WithoutRecord(store), tmp_path, 30)

    record, passed = newest(store, "r", "s")
    assert record is not None and record.step == 20
    assert [(each.step, each.term) for each in passed] == [(30, 1)]
    assert passed[0].reason == "step 30 was begun under term 1 and never committed: its record is not there"
    restore(store, record, tmp_path / "back")
    assert (tmp_path / "back" / "more" / "state.json").read_text() == '{"step": 20}'
