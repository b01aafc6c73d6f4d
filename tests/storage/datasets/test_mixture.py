"""Mixtures keep their proportions and the promise: one integer, any width, nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.errors import InputError
from storage.datasets import Mixture
from storage.datasets.mixture import PERIOD, Blend
from tests.storage.datasets.datasets import build, readers


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = [tmp_path_factory.mktemp("part") for _ in range(3)]
    for folder, rows in zip(made, (40, 75, 300), strict=True):
        build(folder, rows)
    return made


def mixtures(folders: list[Path], world: int, consumed: int = 0, weights=(1, 2, 5)) -> list[Mixture]:
    parts = [readers(folder, world, batch=12, seed=3) for folder in folders]
    return [Mixture([part[rank] for part in parts], weights, consumed) for rank in range(world)]


def batches(ranks: list[Mixture], count: int) -> list[list[tuple[int, int]]]:
    found = []
    for _, parts in zip(range(count), zip(*(iter(rank) for rank in ranks), strict=False), strict=False):
        rows = [
            (position, dataset, number)
            for part in parts
            for position, dataset, number in zip(
                part.positions.tolist(), part["dataset"].tolist(), part["id"].tolist(), strict=True
            )
        ]
        assert all((part["id"] == part.ids).all() for part in parts)
        found.append([row[1:] for row in sorted(rows)])
    return found


def test_proportions_are_exact_in_each_period() -> None:
    blend = Blend([1, 2, 5], seed=1)
    assert blend.shares.tolist() == [128, 256, 640]
    for number in range(3):
        assert np.bincount(blend.period(number)).tolist() == [128, 256, 640]
    assert blend.period(0).tolist() != blend.period(1).tolist()


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 5000), st.integers(1, 3000))
def test_what_was_used_before_is_counted_without_reading(weights: list[float], start: int, length: int) -> None:
    try:
        blend = Blend(weights, seed=2)
    except InputError:
        return
    before, after = blend.used_before(start), blend.used_before(start + length)
    counted = np.bincount(blend.between(start, start + length), minlength=len(weights))
    assert (before + counted).tolist() == after.tolist() and sum(blend.shares) == PERIOD


def test_each_dataset_goes_through_its_epochs(folders: list[Path]) -> None:
    rows = [row for batch in batches(mixtures(folders, 1), 100) for row in batch]
    for number, size in enumerate((40, 75, 300)):
        used = [sample for dataset, sample in rows if dataset == number]
        for start in range(0, len(used) - size, size):
            assert sorted(used[start : start + size]) == list(range(size))


@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_any_width_and_stop_gives_the_same_mixture(folders: list[Path], data: st.DataObject) -> None:
    want = batches(mixtures(folders, 1), 30)
    got: list[list[tuple[int, int]]] = []
    while len(got) < 30:
        world, count = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 10))
        got += batches(mixtures(folders, world, consumed=12 * len(got)), min(count, 30 - len(got)))
    assert got == want


def test_a_state_goes_on_only_in_its_own_mixture(folders: list[Path]) -> None:
    mixture = mixtures(folders, 1)[0]
    state = mixture.state_dict(24)
    mixture.load_state_dict(state)
    assert next(iter(mixture)).samples == 36
    with pytest.raises(InputError, match="shares saved"):
        mixtures(folders, 1, weights=(1, 2, 6))[0].load_state_dict(state)
    with pytest.raises(InputError, match="each must be above 0"):
        mixtures(folders, 1, weights=(1, 0, 6))
    with pytest.raises(InputError, match="at least 1/1024"):
        mixtures(folders, 1, weights=(1, 20000, 6))
    with pytest.raises(InputError, match="same batch"):
        Mixture([readers(folders[0], 1, batch=12)[0], readers(folders[1], 1, batch=6)[0]], [1, 1])
