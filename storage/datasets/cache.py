"""A cache of blocks on local disk, shared by all readers of a machine, within a limit of bytes.

Each block is a file of its own, renamed into place when it is whole: a reader killed at any moment leaves nothing
that another could mistake for data, and there are no locks and no shared memory to clean. Files are keyed by the
dataset's digest, so that nothing stale is ever served, and checked again when they are read. A file in use by
another reader may be evicted: its bytes stay with whoever has mapped them. Nothing is evicted whose shard cannot be
read at its source any more.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from pathlib import Path
from typing import Any

from regions.errors import OutsideError
from storage.datasets.places import Places

_PARTIAL = ".part-"


class BlockCache:
    """The cached blocks of one dataset. `folder` may be shared by datasets and processes; `limit` is over all of them.

    OutsideError (kind cache-too-small) names what the reader needs when that is above the limit.
    """

    def __init__(self, folder: Path, dataset: str, *, limit: int, needed: int) -> None:
        if needed > limit:
            raise OutsideError(
                f"the cache {folder} is limited to {limit} B, but this reader needs {needed} B at a time; "
                "raise the limit, or read with fewer lanes or a smaller window",
                kind="cache-too-small",
                needed=needed,
                limit=limit,
            )
        self._root, self._folder, self._limit = folder, folder / dataset[:32], limit
        self._lock = threading.Lock()
        self._proven: dict[int, bool] = {}
        self._folder.mkdir(parents=True, exist_ok=True)
        self._reclaim()
        self._used = sum(size for _, size, _ in self._files())

    def get(self, block: int, places: Places) -> Any:
        """Return a block's verified bytes, from the cache or through it. Safe to call from many threads."""
        path = self._folder / f"{block:08d}"
        cached = _mapped(path)
        if cached is not None:
            if places.verified(block, cached):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path)
                return cached
            path.unlink(missing_ok=True)
        data = places.read(block)
        self._make_room(len(data), places)
        partial = self._folder / f"{_PARTIAL}{os.getpid()}-{threading.get_ident()}-{block:08d}"
        partial.write_bytes(data)
        with contextlib.suppress(FileNotFoundError):  # a reader on another host, for whom we are dead, removed it
            partial.rename(path)
        return _mapped(path) or data

    def _make_room(self, size: int, places: Places) -> None:
        """Evict what was used least recently until `size` more bytes fit."""
        with self._lock:
            self._used += size
            if self._used <= self._limit:
                return
            files = sorted(self._files())
            self._used = sum(each for _, each, _ in files) + size
            for _, each, path in files:
                if self._used <= self._limit:
                    return
                if self._may_evict(path, places):
                    path.unlink(missing_ok=True)
                    self._used -= each

    def _may_evict(self, path: Path, places: Places) -> bool:
        """Only what its source still holds; another dataset's blocks are its own readers' to judge."""
        if path.parent != self._folder:
            return False
        shard = places.shard_of(int(path.name))
        if shard not in self._proven:
            self._proven[shard] = places.is_whole_elsewhere(shard)
        return self._proven[shard]

    def _files(self) -> list[tuple[float, int, Path]]:
        """Return (last use, size, path) of every cached block of every dataset."""
        found = []
        for path in self._root.glob("*/*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        return found

    def _reclaim(self) -> None:
        """Remove what dead readers left half written; what a living one is writing stays."""
        for path in self._root.glob(f"*/{_PARTIAL}*"):
            owner = int(path.name[len(_PARTIAL) :].split("-")[0])
            if not _is_alive(owner):
                path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _mapped(path: Path) -> mmap.mmap | None:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):  # not there; or empty, as after a power cut
        return None
