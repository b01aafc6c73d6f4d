"""The public reader: global batches of a dataset from any cursor, in an order that nobody's number of workers changes.

    from storage.datasets import open_dataset

    reader = open_dataset(batch=32)  # in a leg: dataset, seed and cursor come from NIGHTRELAY_*
    for batch in reader:
        train(batch["tokens"])
        cursor = batch.samples       # all there is to save

Importing this needs NumPy and pyarrow alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regions.errors import InputError
from storage.datasets.ahead import Ahead
from storage.datasets.cache import BlockCache
from storage.datasets.columns import Decoder
from storage.datasets.feed import Feed, in_order_of_need
from storage.datasets.order import Epochs, Order, Split, default_lanes
from storage.datasets.order import Sequence as Unshuffled
from storage.datasets.places import Opener, Place, Places, read_manifest, split_url
from storage.datasets.reading import Batch, Reading
from storage.datasets.taking import Taker
from storage.objects import open_store

_GROUP_BYTES = 16 << 20
"""Batches are gathered together up to this size: the cost of one NumPy call is shared by all their rows."""


_MOST_PLANS = 64
"""Groups planned ahead while their blocks are fetched."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Batches to be gathered together: their rows' blocks and where each batch ends in them."""

    epoch: int
    ends: tuple[int, ...]
    sizes: tuple[int, ...]
    consumed: tuple[int, ...]
    positions: NDArray[np.int64]
    blocks: NDArray[np.int64]
    rows: NDArray[np.int64]


class Reader:
    """Iterates over a dataset's global batches from `consumed` on. Iterating again begins at `consumed` again.

    Fork and spawn safe: stores, maps and threads are opened in the process that iterates. Of one thread.
    """

    def __init__(self, urls: Sequence[str], reading: Reading, consumed: int, opener: Opener = open_store) -> None:
        self._urls, self._opener = tuple(urls), opener
        self._opened_by = -1
        lanes = reading.lanes or default_lanes(reading.batch)
        self.reading = replace(reading, lanes=lanes)
        if reading.batch % lanes:
            raise InputError(
                f"{lanes} lanes do not divide a global batch of {reading.batch}: use a divisor of it", kind="lanes"
            )
        self._split = Split.of(reading.rank, reading.world, lanes)
        self.consumed = consumed
        self.manifest = self._places().manifest
        blocks = self.manifest.blocks
        self.data_blocks = np.flatnonzero(blocks.rows)  # without the footers of Parquet shards
        self._block_rows = blocks.rows[self.data_blocks]
        self._first_id = np.concatenate(([0], np.cumsum(self._block_rows)))
        self.epochs = Epochs(self.manifest.rows, reading.batch, reading.tail)
        self.epochs.batch_at(consumed)
        missing = self._decoder().missing()
        if missing:
            raise InputError(f"dataset {self.dataset[:16]} has no column {', '.join(missing)}", kind="column")

    @property
    def dataset(self) -> str:
        """The dataset's id."""
        return self.manifest.digest

    def state_dict(self, consumed: int | None = None) -> dict[str, Any]:
        """Return the state after `consumed` samples (default: where iterating begins): what a checkpoint keeps."""
        return {
            "dataset": self.dataset,
            **self.reading.order(),
            "consumed": self.consumed if consumed is None else consumed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state. InputError names every setting that differs from the one the state was saved under."""
        own = self.state_dict()
        differing = [name for name in own if name != "consumed" and state.get(name) != own[name]]
        if differing:
            pairs = "; ".join(f"{name}: saved {state.get(name)!r}, now {own[name]!r}" for name in differing)
            raise InputError(
                f"this state continues another order of samples: {pairs}; open the dataset with the saved settings, "
                "or begin a new run",
                kind="cursor",
            )
        self.epochs.batch_at(state["consumed"])
        self.consumed = int(state["consumed"])

    def __iter__(self) -> Iterator[Batch]:
        """Yield this rank's part of each global batch, from `consumed` on."""
        if self.reading.ahead:
            return Ahead(self.batches(), self.reading.ahead)
        return self.batches()

    def taker(self) -> Taker:
        """Return random access to the stream of samples that iterating would give."""
        return Taker(self, self._feed(1))

    def batches(self, *, first: int = 0, step: int = 1) -> Iterator[Batch]:
        """Yield every `step`-th batch, beginning `first` batches after `consumed`: what one of `step` workers reads."""
        feed = self._feed(step)
        planned = self._plans(first, step)
        ahead: list[_Plan] = []
        try:
            while True:
                while not ahead or (feed.hungry and len(ahead) < _MOST_PLANS):
                    plan = next(planned, None)
                    if plan is None:
                        break
                    ahead.append(plan)
                    feed.want(in_order_of_need(plan.blocks))
                if not ahead:
                    return
                yield from self._gather(ahead.pop(0), feed)
        finally:
            feed.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {name: value for name, value in vars(self).items() if name != "_own_places"} | {"_opened_by": -1}

    def _places(self) -> Places:
        """The dataset's places, opened by this very process."""
        if self._opened_by != os.getpid():
            opened = []
            name = ""
            for url in self._urls:
                folder, named = split_url(url)
                opened.append(Place(self._opener(folder)))
                name = name or named
            manifest = getattr(self, "manifest", None) or read_manifest(opened[0], name)
            self._own_places = Places(manifest, opened)
            self._opened_by = os.getpid()
        return self._own_places

    def _decoder(self) -> Decoder:
        return Decoder(self.manifest.schema, self.manifest.format, self.reading.columns)

    def _feed(self, workers: int) -> Feed:
        places, reading = self._places(), self.reading
        lanes = self._split.last - self._split.first
        keep = 2 * (lanes * reading.window + 1)
        cache = None
        if reading.cache is not None:
            largest = int(self.manifest.blocks.length.max())
            needed = min(lanes * reading.window * largest, self.manifest.size)
            cache = BlockCache(reading.cache, self.dataset, limit=reading.cache_bytes, needed=needed)
        most = reading.most_in_flight // workers
        return Feed(places, self._decoder(), keep=keep, cache=cache, most_in_flight=most)

    def _plans(self, first: int, step: int) -> Iterator[_Plan]:
        """Plan groups of batches; the first groups are small, so that the first batch comes soon."""
        consumed = self.epochs.skip(self.consumed, first)
        per_row = max(1, self.manifest.size // self.manifest.rows)
        most = max(1, _GROUP_BYTES // (per_row * max(1, self.reading.batch // self.reading.world)))
        count, epoch, order = 1, -1, None
        while True:
            now = self.epochs.batch_at(consumed)[0]
            if self.reading.epochs is not None and now >= self.reading.epochs:
                return
            if now != epoch or order is None:
                epoch, order = now, self.order_of(now)
            plan, consumed = self._plan(order, epoch, consumed, count, step)
            yield plan
            count = min(2 * count, most)

    def _plan(self, order: Order | Unshuffled, epoch: int, consumed: int, count: int, step: int) -> tuple[_Plan, int]:
        """Plan up to `count` batches of one epoch; return them and the samples consumed before the next one."""
        positions: list[NDArray[np.int64]] = []
        ends: list[int] = []
        sizes: list[int] = []
        after: list[int] = []
        for _ in range(count):
            now, start, stop = self.epochs.batch_at(consumed)
            if now != epoch:
                break
            positions.append(self._split.of_range(start, stop))
            ends.append(len(positions[-1]) + (ends[-1] if ends else 0))
            sizes.append(stop - start)
            after.append(consumed + stop - start)
            consumed = self.epochs.skip(consumed, step)
        joined = np.concatenate(positions)
        blocks, rows = order.locate(joined)
        plan = _Plan(epoch, tuple(ends), tuple(sizes), tuple(after), joined, self.data_blocks[blocks], rows)
        return plan, consumed

    def order_of(self, epoch: int) -> Order | Unshuffled:
        """Return the order of an epoch."""
        reading = self.reading
        if not reading.shuffle:
            return Unshuffled(self._block_rows)
        return Order(self._block_rows, seed=reading.seed, epoch=epoch, lanes=reading.lanes, window=reading.window)

    def _gather(self, plan: _Plan, feed: Feed) -> Iterator[Batch]:
        gathered, ids = self.gathered(plan.blocks, plan.rows, feed)
        begin = 0
        for end, size, consumed in zip(plan.ends, plan.sizes, plan.consumed, strict=True):
            columns = {name: column[begin:end] for name, column in gathered.items()}
            yield Batch(columns, ids[begin:end], plan.positions[begin:end], plan.epoch, size, consumed)
            begin = end

    def gathered(
        self, blocks: NDArray[np.int64], rows: NDArray[np.int64], feed: Feed
    ) -> tuple[dict[str, Any], NDArray[np.int64]]:
        """Return the columns and ids of rows, gathered block by block. There may be none."""
        by_block = np.argsort(blocks, kind="stable")
        ordered = blocks[by_block]
        columns = feed.get(int(ordered[0] if len(ordered) else self.data_blocks[0]))
        rooms = [feed.room(index, column, len(ordered)) for index, column in enumerate(columns)]
        cuts = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
        for start, end in pairwise(cuts if len(ordered) else []):
            where = by_block[start:end]
            for column, room in zip(feed.get(int(ordered[start])), rooms, strict=True):
                column.place(room, where, rows[where])
        ids = self._first_id[np.searchsorted(self.data_blocks, blocks)] + rows
        return dict(zip(self._decoder().names, rooms, strict=True)), ids


def open_dataset(
    url: str | Path | None = None,
    *,
    batch: int,
    replicas: Sequence[str] = (),
    cursor: int | None = None,
    seed: int | None = None,
    rank: int | None = None,
    world: int | None = None,
    opener: Opener = open_store,
    environ: Mapping[str, str] = os.environ,
    **reading: Any,
) -> Reader:
    """Open a dataset by the path or URL of its folder or manifest; its `replicas` help out where a shard is damaged.

    What is not given comes from the leg's environment: NIGHTRELAY_DATASET, NIGHTRELAY_CURSOR (samples consumed),
    NIGHTRELAY_SEED, and torchrun's RANK and WORLD_SIZE. `reading` are the further fields of Reading. InputError
    where the environment names no dataset, IntegrityError where a shard is whole nowhere: before the first batch.
    """
    place = str(url) if url is not None else environ.get("NIGHTRELAY_DATASET", "")
    if not place:
        raise InputError("no dataset: give its folder or URL, or set NIGHTRELAY_DATASET", kind="dataset")
    settings = Reading(
        batch=batch,
        seed=seed if seed is not None else _number(environ, "NIGHTRELAY_SEED", 0),
        rank=rank if rank is not None else _number(environ, "RANK", 0),
        world=world if world is not None else _number(environ, "WORLD_SIZE", 1),
        **reading,
    )
    consumed = cursor if cursor is not None else _number(environ, "NIGHTRELAY_CURSOR", 0)
    return Reader([place, *replicas], settings, consumed, opener)


def _number(environ: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environ.get(name, "")
    try:
        return int(text) if text else otherwise
    except ValueError:
        raise InputError(f"{name}={text!r}: expected a whole number", kind="environment") from None
