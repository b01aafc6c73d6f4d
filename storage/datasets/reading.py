"""The values of reading: how a dataset is read, and one batch of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.datasets.order import Tail


@dataclass(frozen=True, slots=True, eq=False)
class Batch(Mapping[str, Any]):
    """This rank's part of one global batch: columns by name, and where it stands in the global sequence.

    `size` is of the global batch: where ranks get uneven parts, weigh the loss by len(ids) / size.
    """

    columns: Mapping[str, Any]
    ids: NDArray[np.int64]
    """Each sample's number in the dataset."""
    positions: NDArray[np.int64]
    """Each sample's position in the epoch: with seed and epoch the key for any chance in a transform."""
    epoch: int
    size: int
    samples: int
    """The cursor after this batch: samples consumed since the beginning of the run."""

    def __getitem__(self, name: str) -> Any:
        """Return a column: an array, or a list where rows differ in size."""
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the columns' names."""
        return iter(self.columns)

    def __len__(self) -> int:
        """Return how many columns there are."""
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a dataset is read. The first six decide the order; a resume under others is refused by name."""

    batch: int
    seed: int = 0
    lanes: int = 0
    """0: the largest divisor of the batch up to 64."""
    window: int = 4
    shuffle: bool = True
    tail: Tail = "keep"
    rank: int = 0
    world: int = 1
    epochs: int | None = None
    """How many epochs there are in all; None: no end."""
    columns: tuple[str, ...] | None = None
    cache: Path | None = None
    cache_bytes: int = 16 << 30
    ahead: int = 0
    """Batches that a thread prepares while the trainer computes; 0: none, they are made when asked for."""
    most_in_flight: int = 256 << 20
    """Bytes that may be fetched ahead, where the dataset is not on this machine."""

    def order(self) -> dict[str, Any]:
        """Return the settings that decide the order, as the state holds them."""
        names = ("batch", "seed", "lanes", "window", "shuffle", "tail")
        return {name: getattr(self, name) for name in names}
