"""Samples by their number in a reader's stream, wherever they lie: what mixtures are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from storage.datasets.feed import Feed, in_order_of_need
from storage.datasets.order import Order, Sequence

if TYPE_CHECKING:
    from storage.datasets.loader import Reader


class Taker:
    """Random access to a reader's stream: sample number i of all epochs, wherever it lies. Of one thread."""

    def __init__(self, reader: Reader, feed: Feed) -> None:
        self._reader, self._feed = reader, feed
        self._orders: dict[int, Order | Sequence] = {}

    def want(self, indices: NDArray[np.int64]) -> None:
        """Begin to fetch what these samples need."""
        self._feed.want(in_order_of_need(self._located(indices)[0]))

    def take(self, indices: NDArray[np.int64]) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Return the columns and the ids of these samples of the stream."""
        blocks, rows = self._located(indices)
        return self._reader.gathered(blocks, rows, self._feed)

    def close(self) -> None:
        """Let go of threads and bytes."""
        self._feed.close()

    def _located(self, indices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        epochs, positions = np.divmod(indices, self._reader.epochs.used)
        blocks, rows = np.empty_like(indices), np.empty_like(indices)
        for epoch in np.unique(epochs).tolist():
            if epoch not in self._orders:
                self._orders = {number: order for number, order in self._orders.items() if number == epoch - 1}
                self._orders[epoch] = self._reader.order_of(epoch)
            chosen = epochs == epoch
            blocks[chosen], rows[chosen] = self._orders[epoch].locate(positions[chosen])
        return self._reader.data_blocks[blocks], rows
