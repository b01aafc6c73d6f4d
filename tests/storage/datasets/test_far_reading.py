"""Reading from a store over the network: the same batches, fetched ahead, within a bound of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.datasets import open_dataset
from storage.datasets.feed import Feed
from storage.objects import Store
from tests.storage.datasets.datasets import build
from tests.support.s3_server import moto_server, s3_store

SETTINGS = {"batch": 12, "seed": 5, "epochs": 2, "environ": {}}


@pytest.fixture(scope="module")
def site() -> Iterator[Store]:
    with moto_server() as endpoint:
        store = s3_store(endpoint)
        build(store, 300)
        yield store


@pytest.mark.parametrize("cached", [False, True])
def test_the_batches_are_those_of_a_folder(site: Store, tmp_path: Path, cached: bool) -> None:
    build(tmp_path / "near", 300)
    want = [batch.ids.tolist() for batch in open_dataset(tmp_path / "near", **SETTINGS)]
    cache = tmp_path / "cache" if cached else None
    far = open_dataset(site.url, opener=lambda url: site, cache=cache, **SETTINGS)
    assert [batch.ids.tolist() for batch in far] == want
    assert [
        batch.ids.tolist() for batch in open_dataset(site.url, opener=lambda url: site, cache=cache, **SETTINGS)
    ] == want


def test_what_is_fetched_ahead_is_bounded(site: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    flying: list[int] = []
    want = Feed.want

    def counting(self: Feed, blocks) -> None:
        want(self, blocks)
        flying.append(self._in_flight)

    monkeypatch.setattr(Feed, "want", counting)
    reader = open_dataset(site.url, opener=lambda url: site, most_in_flight=2000, **SETTINGS | {"epochs": 1})
    group = reader.manifest.size  # the last group asked for may go beyond the bound, by itself
    assert sum(len(batch.ids) for batch in reader) == 300
    assert 0 < max(flying) < 2000 + group
