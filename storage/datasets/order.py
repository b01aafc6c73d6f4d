"""The order of samples: a pure function of (rows of each block, seed, epoch, lanes, window), and of nothing else.

All blocks are permuted; each `window` of consecutive blocks in that order is permuted row by row; the resulting line
of N samples is cut into `lanes` equal stretches, and position p reads stretch `p mod lanes` at offset `p div lanes`.
Ranks own lanes, so any number of them reads the same global sequence, and each block is read by one rank at a time.
The whole state is the number of samples consumed. Only integer hashes are used: NumPy's generators do not promise
the same stream in its next version. Proof and alternatives: docs/decisions/0401.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regions.errors import InputError

Positions = NDArray[np.int64]
Tail = Literal["keep", "drop"]

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def key_of(*parts: int) -> int:
    """Return a 64-bit key of integers; different lists of integers give unrelated keys."""
    key = len(parts)
    for part in parts:
        key = _mix_one((key ^ (part & _MASK)) + _GAMMA & _MASK)
    return key


def hashes(key: int, count: int) -> NDArray[np.uint64]:
    """Return the first `count` numbers of splitmix64 from `key`."""
    state = np.arange(1, count + 1, dtype=np.uint64)
    state *= np.uint64(_GAMMA)
    state += np.uint64(key)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    state *= np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return state


def permutation(key: int, count: int) -> Positions:
    """Return a permutation of 0..count-1 that depends on the key alone."""
    return np.argsort(hashes(key, count), kind="stable")


def default_lanes(batch: int, most: int = 64) -> int:
    """Return the largest divisor of the global batch that is not above `most`."""
    return next(lanes for lanes in range(min(batch, most), 0, -1) if batch % lanes == 0)


@dataclass(frozen=True, slots=True)
class Split:
    """The part of the positions that rank `rank` of `world` owns: the lanes `first` <= lane < `last` of `lanes`."""

    first: int
    last: int
    lanes: int

    @classmethod
    def of(cls, rank: int, world: int, lanes: int) -> Split:
        """Return what a rank owns. InputError where a rank would be left without a lane."""
        if not 0 <= rank < world:
            raise InputError(f"rank {rank} of {world}: expected a rank from 0 to {world - 1}", kind="rank")
        if world > lanes:
            raise InputError(
                f"{world} ranks cannot share {lanes} lanes: each rank needs one; "
                "use fewer ranks, or begin the run with more lanes (a divisor of the global batch)",
                kind="lanes",
            )
        return cls(rank * lanes // world, (rank + 1) * lanes // world, lanes)

    def of_range(self, start: int, stop: int) -> Positions:
        """Return the owned positions p with start <= p < stop, ascending."""
        positions = np.arange(start, stop, dtype=np.int64)
        if self.last - self.first == self.lanes:
            return positions
        lane = positions % self.lanes
        return positions[(lane >= self.first) & (lane < self.last)]


class Order:
    """One epoch's order over blocks of the given row counts. Building it costs O(blocks); any position is then O(1)."""

    def __init__(self, rows: NDArray[np.int64], *, seed: int, epoch: int, lanes: int, window: int) -> None:
        if lanes < 1 or window < 1:
            raise InputError(f"lanes={lanes}, window={window}: both must be at least 1", kind="order")
        self.samples = int(rows.sum())
        self.lanes = lanes
        self._window_key = key_of(seed, epoch, 2)
        self._block_of_slot = permutation(key_of(seed, epoch, 1), len(rows))
        self._slot_start = np.concatenate(([0], np.cumsum(rows[self._block_of_slot])))
        self._window_start = np.append(self._slot_start[:-1:window], self.samples)
        base, longer = divmod(self.samples, lanes)
        lane = np.arange(lanes, dtype=np.int64)
        self._lane_start = lane * base + np.minimum(lane, longer)
        self._windows: OrderedDict[int, Positions] = OrderedDict()

    def locate(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return (block, row in the block) of each position. Positions must lie in 0..samples-1."""
        line = self._lane_start[positions % self.lanes] + positions // self.lanes
        window = np.searchsorted(self._window_start, line, side="right") - 1
        line = self._shuffle_within(window, line)
        slot = np.searchsorted(self._slot_start, line, side="right") - 1
        return self._block_of_slot[slot], line - self._slot_start[slot]

    def _shuffle_within(self, window: Positions, line: Positions) -> Positions:
        by_window = np.argsort(window, kind="stable")
        ordered = window[by_window]
        cuts = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
        shuffled = np.empty_like(line)
        for begin, end in pairwise(cuts):
            if begin == end:
                continue
            which = int(ordered[begin])
            chosen, start = by_window[begin:end], self._window_start[which]
            shuffled[chosen] = start + self._permuted(which)[line[chosen] - start]
        return shuffled

    def _permuted(self, window: int) -> Positions:
        """The row permutation of a window; those in use are kept, since each lane stays in one for a while."""
        rows = self._windows.get(window)
        if rows is None:
            count = int(self._window_start[window + 1] - self._window_start[window])
            rows = self._windows[window] = permutation(key_of(self._window_key, window), count)
            while len(self._windows) > 2 * self.lanes:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(window)
        return rows


class Sequence:
    """The order that does not shuffle: position p is row p of the dataset, in every epoch."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.samples = int(rows.sum())
        self._start = np.concatenate(([0], np.cumsum(rows)))

    def locate(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return (block, row in the block) of each position."""
        block = np.searchsorted(self._start, positions, side="right") - 1
        return block, positions - self._start[block]


@dataclass(frozen=True, slots=True)
class Epochs:
    """Where a count of consumed samples lies: epochs of `samples`, read in global batches of `batch`.

    tail "keep": an epoch's last batch is short, and every sample is used. "drop": the last `samples mod batch`
    positions of each epoch are left out, the same ones for every world.
    """

    samples: int
    batch: int
    tail: Tail = "keep"

    def __post_init__(self) -> None:
        """Refuse what could never give a batch."""
        if self.batch < 1:
            raise InputError(f"a global batch of {self.batch}: expected at least 1 sample", kind="batch")
        if self.used < 1:
            raise InputError(
                f"a dataset of {self.samples} samples gives no batch of {self.batch} with tail={self.tail!r}",
                kind="batch",
            )

    @property
    def used(self) -> int:
        """Samples used in one epoch."""
        return self.samples if self.tail == "keep" else self.samples - self.samples % self.batch

    def batch_at(self, consumed: int) -> tuple[int, int, int]:
        """Return (epoch, first position, end position) of the batch that follows `consumed` samples."""
        if consumed < 0:
            raise InputError(f"a cursor of {consumed} samples: expected 0 or more", kind="cursor")
        epoch, start = divmod(consumed, self.used)
        return epoch, start, min(start + self.batch, self.used)

    def skip(self, consumed: int, batches: int) -> int:
        """Return the samples consumed after `batches` more batches."""
        per_epoch = -(-self.used // self.batch)
        epoch, start = divmod(consumed, self.used)
        left = -(-(self.used - start) // self.batch)
        if batches < left:
            return consumed + batches * self.batch
        more, rest = divmod(batches - left, per_epoch)
        return (epoch + 1 + more) * self.used + min(rest * self.batch, self.used)


def _mix_one(value: int) -> int:
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)
