"""Blocks on their way to the reader: fetched ahead while the trainer computes, decoded once, let go when not needed.

What lies on this machine is mapped and costs no memory. What lies elsewhere is fetched by threads in the order of
need; the bytes in flight begin at 32 MiB (160 MiB/s at 80 ms) and grow while the reader has to wait, up to a bound.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.datasets.cache import BlockCache
from storage.datasets.columns import Block, Column, Decoder, FixedColumn
from storage.datasets.places import Places

_FETCHERS = 32
_FIRST_BUDGET = 32 << 20
_SPARE = 3
"""Rooms kept for use again."""
_UNUSED = 3
"""References to a room that no batch looks into: the list's, the loop's, and the question's own."""


def in_order_of_need(blocks: NDArray[np.int64]) -> list[int]:
    """Return each block once, in the order in which it is first needed."""
    return list(dict.fromkeys(blocks.tolist()))


class Feed:
    """Gives the decoded columns of blocks, in any order. Of one thread; `keep` decoded blocks stay at hand."""

    def __init__(
        self, places: Places, decoder: Decoder, *, keep: int, cache: BlockCache | None, most_in_flight: int
    ) -> None:
        self._places, self._decoder, self._cache = places, decoder, cache
        self._keep = keep
        self._columns: OrderedDict[int, tuple[Column, ...]] = OrderedDict()
        self._flying: dict[int, Future[Any]] = {}
        self._in_flight = 0
        self._budget, self._most = min(_FIRST_BUDGET, most_in_flight), most_in_flight
        self._pool: ThreadPoolExecutor | None = None
        self._rooms: dict[int, list[NDArray[Any]]] = {}

    @property
    def hungry(self) -> bool:
        """Whether more blocks may be asked for ahead: never where nothing has to be fetched."""
        return self._pool is not None and self._in_flight < self._budget

    def want(self, blocks: Iterable[int]) -> None:
        """Begin to fetch what is not on this machine, in this order."""
        if self._places.all_local:
            return
        for block in blocks:
            if block in self._columns or block in self._flying or self._places.is_local(block):
                continue
            self._pool = self._pool or ThreadPoolExecutor(_FETCHERS, thread_name_prefix="dataset")
            self._flying[block] = self._pool.submit(self._fetch, block)
            self._in_flight += int(self._places.manifest.blocks.length[block])

    def get(self, block: int) -> tuple[Column, ...]:
        """Return a block's columns; waits for its bytes where they are still on their way."""
        columns = self._columns.get(block)
        if columns is None:
            columns = self._columns[block] = self._decoder.columns(self._block(block))
            while len(self._columns) > self._keep:
                self._columns.popitem(last=False)
        else:
            self._columns.move_to_end(block)
        return columns

    def room(self, index: int, column: Column, count: int) -> Any:
        """Return room for `count` rows of the column of this index.

        Memory whose batches nobody holds any more is used again: fresh pages cost as much as copying the rows.
        """
        if not isinstance(column, FixedColumn):
            return column.room(count)
        rooms = self._rooms.setdefault(index, [])
        for room in rooms:
            if len(room) >= count and sys.getrefcount(room) == _UNUSED:
                return room[:count]
        rooms[:] = [room for room in rooms if len(room) >= count][-_SPARE:]
        rooms.append(column.room(count))
        return rooms[-1][:count]

    def close(self) -> None:
        """Let go of threads and bytes."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = None
        self._columns.clear()
        self._rooms.clear()
        self._flying.clear()
        self._in_flight = 0

    def _block(self, block: int) -> Block:
        manifest = self._places.manifest
        data = self._bytes(block)
        if manifest.format == "arrow":
            return Block(data)
        footer = self._bytes(self._places.last_block(self._places.shard_of(block)))
        return Block(data, int(manifest.blocks.offset[block]), self._places.number_in_shard(block), footer)

    def _bytes(self, block: int) -> Any:
        flying = self._flying.pop(block, None)
        if flying is None:
            return self._places.read(block) if self._places.is_local(block) else self._fetch(block)
        if not flying.done():
            self._budget = min(2 * self._budget, self._most)
        self._in_flight -= int(self._places.manifest.blocks.length[block])
        return flying.result()

    def _fetch(self, block: int) -> Any:
        if self._cache is None:
            return self._places.read(block)
        return self._cache.get(block, self._places)
