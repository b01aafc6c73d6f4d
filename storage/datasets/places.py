"""Where a dataset's bytes are read from: its own place, then its replicas; every byte verified before it is used.

A shard that is missing or cut is found when the dataset is opened, a wrong one when its first block is touched, both
before any of its samples is used. It is fetched again from the next place; where none is whole, IntegrityError.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from blake3 import blake3
from fastcrc.crc64 import xz

from regions.errors import InputError, IntegrityError, NightrelayError, NotFoundError, StoreUnavailable
from storage.datasets.manifest import Manifest, Shard, is_manifest
from storage.datasets.shards import join
from storage.objects import Store

Opener = Callable[[str], Store]
"""Opens the store at a URL; called once in each process, since a store may not be carried over a fork."""

_OPEN_FILES = 4096
"""Shards that stay mapped: above this the one mapped first is let go (Linux allows 65,530 maps for a process)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A dataset's folder in a store."""

    store: Store
    folder: str = ""

    def sizes(self) -> dict[str, int]:
        """Return the size of every object in the folder, by name."""
        listed = self.folder.rstrip("/") + "/" if self.folder else ""
        return {stat.key[len(listed) :]: stat.size for stat in self.store.list(listed)}

    def __str__(self) -> str:
        """Render as the folder's URL."""
        return join(self.store.url, self.folder)


def split_url(url: str) -> tuple[str, str]:
    """Return (folder URL, manifest's name or '') of a path or URL to a dataset's folder or manifest."""
    if "://" not in url:
        from pathlib import Path

        url = Path(url).absolute().as_uri()
    folder, _, last = url.rstrip("/").rpartition("/")
    if is_manifest(last):
        return folder, last
    if last.endswith(".json") and urlsplit(url).path:
        raise InputError(f"{url} is no dataset manifest: expected manifest-<digest>.json or its folder", kind="dataset")
    return url.rstrip("/"), ""


def read_manifest(place: Place, name: str = "") -> Manifest:
    """Return the manifest of this name, or the only one of the folder."""
    if not name:
        found = sorted(filter(is_manifest, place.sizes()))
        if not found:
            raise NotFoundError(f"{place} holds no dataset: no manifest-<digest>.json is there", kind="dataset")
        if len(found) > 1:
            raise InputError(
                f"{place} holds {len(found)} datasets ({', '.join(found)}): name the manifest to read", kind="dataset"
            )
        name = found[0]
    return Manifest.parse(place.store.get(join(place.folder, name)), name)


class Places:
    """The places of one dataset, the nearest first, and which of them has each shard whole by size."""

    def __init__(self, manifest: Manifest, places: Sequence[Place]) -> None:
        self.manifest = manifest
        self._places = tuple(places)
        self._first_block = np.concatenate(([0], np.cumsum([shard.blocks for shard in manifest.shards])))
        self._shard_of_block = np.repeat(np.arange(len(manifest.shards)), [shard.blocks for shard in manifest.shards])
        self._maps: dict[int, mmap.mmap] = {}
        self._lock = threading.Lock()
        self._faults: dict[int, list[str]] = {}
        self._checked = np.zeros(len(manifest.blocks.rows), np.bool_)  # blocks of mapped files, verified on first touch
        self._usable = self._check_sizes()
        self._local = [self._path(number, places[0]) is not None for number, places in enumerate(self._usable)]

    def shard_of(self, block: int) -> int:
        """Return the number of the shard that holds a block."""
        return int(self._shard_of_block[block])

    def number_in_shard(self, block: int) -> int:
        """Return which block of its shard a block is."""
        return block - int(self._first_block[self.shard_of(block)])

    def last_block(self, shard: int) -> int:
        """Return a shard's last block (of a Parquet file: its footer)."""
        return int(self._first_block[shard + 1]) - 1

    @property
    def all_local(self) -> bool:
        """Whether nothing has to be fetched."""
        return all(self._local)

    def is_local(self, block: int) -> bool:
        """Say whether a block's shard is a file of this machine."""
        return bool(self._local[self._shard_of_block[block]])

    def read(self, block: int) -> Any:
        """Return the verified bytes of a block. Safe to call from many threads."""
        shard = self.shard_of(block)
        while self._usable[shard]:
            place = self._usable[shard][0]
            data = self._range(shard, place, block)
            if self._checked[block] or self.verified(block, data):
                self._checked[block] = self.is_local(block)
                return data
            self._give_up(shard, place, f"block {self.number_in_shard(block)}: its bytes are damaged")
        raise self._integrity_error([shard])

    def is_whole_elsewhere(self, shard: int) -> bool:
        """Say whether a place still holds this shard whole by size: asked before a cached copy is evicted."""
        entry = self.manifest.shards[shard]
        for place in self._usable[shard]:
            try:
                if place.store.head(join(place.folder, entry.name)).size == entry.size:
                    return True
            except NightrelayError:
                continue
        return False

    def _check_sizes(self) -> list[list[Place]]:
        """Which places have each shard with the size its manifest says. Cut copies of a local folder are replaced."""
        shards = self.manifest.shards
        usable: list[list[Place]] = [[] for _ in shards]
        for place in self._places:
            sizes = self._sizes(place)
            for number, shard in enumerate(shards):
                if (size := sizes.get(shard.name)) == shard.size:
                    usable[number].append(place)
                else:
                    found = "nothing" if size is None else f"{size} B"
                    self._faults.setdefault(number, []).append(f"{place}: expected {shard.size} B, found {found}")
        lost = [number for number, places in enumerate(usable) if not places]
        if lost:
            raise self._integrity_error(lost)
        for number, places in enumerate(usable):
            if places[0] is not self._places[0]:
                self._heal(number, places)
        return usable

    def _sizes(self, place: Place) -> dict[str, int]:
        try:
            return place.sizes()
        except (NotFoundError, StoreUnavailable):
            if place is self._places[0] and len(self._places) == 1:
                raise
            return {}

    def _heal(self, number: int, places: list[Place]) -> None:
        """Fetch a shard anew into the first place, where that is a folder of this machine."""
        first, shard = self._places[0], self.manifest.shards[number]
        if first.store.path(join(first.folder, shard.name)) is None:
            return
        for place in places:
            data = place.store.get(join(place.folder, shard.name))
            if blake3(data).hexdigest() == shard.digest:
                first.store.put(join(first.folder, shard.name), data)
                places.insert(0, first)
                return

    def _give_up(self, shard: int, place: Place, why: str) -> None:
        """Note that a place's copy is damaged; try to fetch it anew, else go on with the next place."""
        with self._lock:
            places = self._usable[shard]
            if not places or places[0] is not place:
                return  # another thread was here first
            self._faults.setdefault(shard, []).append(f"{place}: {why}")
            places.pop(0)
            self._maps.pop(shard, None)
            self._local[shard] = bool(places) and self._path(shard, places[0]) is not None
            first = int(self._first_block[shard])
            self._checked[first : first + self.manifest.shards[shard].blocks] = False
            if place is self._places[0] and places:
                self._heal(shard, places)
                self._local[shard] = self._path(shard, places[0]) is not None

    def _range(self, shard: int, place: Place, block: int) -> Any:
        table, entry = self.manifest.blocks, self.manifest.shards[shard]
        start, size = int(table.offset[block]), int(table.length[block])
        path = self._path(shard, place)
        if path is None:
            return self._fetched(place, entry, start, size)
        with self._lock:
            if shard not in self._maps:
                try:
                    with path.open("rb") as file:
                        self._maps[shard] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                except (FileNotFoundError, ValueError):  # gone, or empty, since it was listed
                    return b""
                if len(self._maps) > _OPEN_FILES:
                    del self._maps[next(iter(self._maps))]
            return memoryview(self._maps[shard])[start : start + size]

    @staticmethod
    def _fetched(place: Place, shard: Shard, start: int, size: int) -> bytes:
        try:
            return place.store.get(join(place.folder, shard.name), start=start, size=size)
        except (IntegrityError, NotFoundError):
            return b""  # judged like any other wrong bytes: the next place is tried

    def verified(self, block: int, data: Any) -> bool:
        """Say whether these are a block's bytes."""
        blocks = self.manifest.blocks
        return bool(len(data) == blocks.length[block] and xz(data) == blocks.check[block])

    def _path(self, shard: int, place: Place) -> Any:
        return place.store.path(join(place.folder, self.manifest.shards[shard].name))

    def _integrity_error(self, shards: Sequence[int]) -> IntegrityError:
        lines = [
            f"\n  {self.manifest.shards[number].name}: {fault}"
            for number in shards
            for fault in self._faults.get(number, ["no place holds it"])
        ]
        return IntegrityError(
            f"dataset {self.manifest.digest[:16]}: {len(shards)} shard(s) are whole nowhere; fetch them again from "
            f"where the dataset was built, or build it anew:{''.join(lines)}",
            kind="shard-damaged",
            shards=[self.manifest.shards[number].name for number in shards],
        )


def damaged(manifest: Manifest, place: Place) -> Iterator[str]:
    """Yield a line for each shard of a place that is missing, cut or wrong: the whole dataset is read."""
    for shard in manifest.shards:
        try:
            data = place.store.get(join(place.folder, shard.name))
        except NotFoundError:
            yield f"{shard.name}: expected {shard.size} B, found nothing"
            continue
        found = blake3(data).hexdigest()
        if len(data) != shard.size:
            yield f"{shard.name}: expected {shard.size} B, found {len(data)} B"
        elif found != shard.digest:
            yield f"{shard.name}: expected BLAKE3 {shard.digest}, found {found}"
