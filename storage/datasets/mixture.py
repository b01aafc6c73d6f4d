"""Several datasets read as one, in given proportions, with the same promise: one integer is the whole state.

Positions come in periods of 1,024; in each, every dataset has its exact share of places, and a hash keyed by (seed,
period) says which. So how many samples of a dataset were used before any position is known without reading anything,
and each dataset goes through its own epochs in its own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regions.errors import InputError
from storage.datasets.loader import Reader
from storage.datasets.order import Split, key_of, permutation
from storage.datasets.reading import Batch
from storage.datasets.taking import Taker

PERIOD = 1024
_AHEAD = 8


class Blend:
    """Which dataset each position belongs to. Pure: a function of weights and seed."""

    def __init__(self, weights: Sequence[float], seed: int) -> None:
        self.shares = _shares(weights)
        self._labels = np.repeat(np.arange(len(weights)), self.shares)
        self._seed = seed

    def period(self, number: int) -> NDArray[np.int64]:
        """Return the dataset of each position of a period."""
        return self._labels[permutation(key_of(self._seed, number, 3), PERIOD)]

    def used_before(self, position: int) -> NDArray[np.int64]:
        """Return how many samples of each dataset come before a position."""
        number, within = divmod(position, PERIOD)
        started = np.bincount(self.period(number)[:within], minlength=len(self.shares))
        return number * self.shares + started

    def between(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the dataset of each position p with start <= p < stop."""
        first, last = start // PERIOD, (stop - 1) // PERIOD
        labels = np.concatenate([self.period(number) for number in range(first, last + 1)])
        return labels[start - first * PERIOD : stop - first * PERIOD]


class Mixture:
    """Iterates over mixed global batches, without end. The readers must agree in batch, seed, lanes, rank and world.

    A sample's id is its number in its own dataset; the column `dataset` says which one that is.
    """

    def __init__(self, readers: Sequence[Reader], weights: Sequence[float], consumed: int = 0) -> None:
        if len(readers) != len(weights) or not readers:
            raise InputError(
                f"{len(readers)} datasets and {len(weights)} weights: give one weight each", kind="mixture"
            )
        settings = {
            (r.reading.batch, r.reading.seed, r.reading.lanes, r.reading.rank, r.reading.world) for r in readers
        }
        if len(settings) > 1:
            raise InputError(
                "mixed datasets must be read with the same batch, seed, lanes, rank and world", kind="mixture"
            )
        self._readers = tuple(readers)
        reading = readers[0].reading
        self._batch = reading.batch
        self._split = Split.of(reading.rank, reading.world, reading.lanes)
        self.blend = Blend(weights, reading.seed)
        self.consumed = consumed

    def state_dict(self, consumed: int | None = None) -> dict[str, Any]:
        """Return the state after `consumed` samples of the mixture."""
        parts = [reader.state_dict(0) for reader in self._readers]
        at = self.consumed if consumed is None else consumed
        return {"parts": parts, "shares": self.blend.shares.tolist(), "consumed": at}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. InputError where datasets, proportions or settings differ."""
        own = self.state_dict()
        for name in ("shares", "parts"):
            if state.get(name) != own[name]:
                raise InputError(
                    f"this state continues another mixture: {name} saved {state.get(name)!r}, now {own[name]!r}",
                    kind="cursor",
                )
        self.consumed = int(state["consumed"])

    def __iter__(self) -> Iterator[Batch]:
        """Yield this rank's part of each mixed global batch, from `consumed` on."""
        takers = [reader.taker() for reader in self._readers]
        consumed = self.consumed
        try:
            while True:
                for start in range(consumed, consumed + _AHEAD * self._batch, self._batch):
                    for taker, (_, indices) in zip(takers, self._parts(start), strict=True):
                        taker.want(indices)
                for start in range(consumed, consumed + _AHEAD * self._batch, self._batch):
                    yield self._mixed(takers, start)
                consumed += _AHEAD * self._batch
        finally:
            for taker in takers:
                taker.close()

    def _parts(self, start: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each dataset: which of this rank's places it fills, and with which samples of its own stream."""
        labels = self.blend.between(start, start + self._batch)
        owned = self._split.of_range(start, start + self._batch) - start
        before = self.blend.used_before(start)
        parts = []
        for number in range(len(self._readers)):
            rank_in_stream = before[number] + np.cumsum(labels == number) - 1
            places = np.flatnonzero(labels[owned] == number)
            parts.append((places, rank_in_stream[owned[places]]))
        return parts

    def _mixed(self, takers: Sequence[Taker], start: int) -> Batch:
        parts = self._parts(start)
        count = sum(len(places) for places, _ in parts)
        dataset, ids = np.empty(count, np.int64), np.empty(count, np.int64)
        rooms: dict[str, Any] = {}
        for number, (taker, (places, indices)) in enumerate(zip(takers, parts, strict=True)):
            columns, ids[places] = taker.take(indices)
            dataset[places] = number
            for name, column in columns.items():
                if name not in rooms:
                    empty = isinstance(column, np.ndarray)
                    rooms[name] = np.empty((count, *column.shape[1:]), column.dtype) if empty else [None] * count
                _place(rooms[name], places, column)
        positions = self._split.of_range(start, start + self._batch)
        columns = rooms | {"dataset": dataset}
        return Batch(columns, ids, positions, 0, self._batch, start + self._batch)


def _place(room: Any, places: NDArray[np.int64], column: Any) -> None:
    if isinstance(room, np.ndarray):
        room[places] = column
        return
    for place, value in zip(places.tolist(), column, strict=True):
        room[place] = value


def _shares(weights: Sequence[float]) -> NDArray[np.int64]:
    """Return how many of PERIOD places each weight gets: largest remainders, none below one."""
    total = float(sum(weights))
    if not weights or min(weights) <= 0:
        raise InputError(f"weights {list(weights)}: each must be above 0", kind="mixture")
    exact = np.array(weights, np.float64) / total * PERIOD
    shares = np.floor(exact).astype(np.int64)
    for index in np.argsort(shares - exact, kind="stable")[: PERIOD - int(shares.sum())]:
        shares[index] += 1
    if shares.min() < 1:
        raise InputError(f"weights {list(weights)}: each must be at least 1/{PERIOD} of the sum", kind="mixture")
    return shares
