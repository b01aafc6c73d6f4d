"""The tree below a folder store: its files as objects, its folders, and what killed writers left in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from storage.objects import files
from storage.objects.interface import Stat

RESERVED = ".part-"
"""Names that begin so are the store's own and no objects."""
STAGING = ".part-tmp-"
"""Names of files that are being written."""


def stat_of(key: str, found: os.stat_result) -> Stat:
    """Return a file's facts as an object's.

    Every write makes a new inode, so inode and time tell versions apart even within one tick of the clock.
    """
    return Stat(
        key=key,
        size=found.st_size,
        version=f"{found.st_ino:x}-{found.st_mtime_ns:x}",
        modified=datetime.fromtimestamp(found.st_mtime, UTC),
    )


def walk(base: Path, folder: str) -> Iterator[Stat]:
    """Yield the objects below `base`, whose keys begin with `folder`, in byte order of their keys."""
    try:
        entries = [(entry.name + "/" * entry.is_dir(), entry) for entry in os.scandir(base)]
    except FileNotFoundError:
        return
    for name, entry in sorted(entries, key=lambda pair: pair[0].encode()):
        if name.startswith(RESERVED):
            continue
        if name.endswith("/"):
            yield from walk(base / entry.name, folder + name)
        else:
            with contextlib.suppress(FileNotFoundError):
                yield stat_of(folder + name, entry.stat())


def make_folder(folder: Path, *, durable: bool) -> None:
    """Make a folder and its parents; `durable`: each name is, before anything is put below it."""
    missing = [folder, *folder.parents]
    missing = missing[: next(n for n, parent in enumerate(missing) if parent.is_dir())]
    for made in reversed(missing):
        made.mkdir(exist_ok=True)
        if durable:
            files.sync_folder(made.parent)


def sweep(root: Path, limit: float, kept: Collection[str]) -> int:
    """Remove staging files older than the instant `limit` (seconds of the epoch), but those named in `kept`."""
    swept = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            with contextlib.suppress(FileNotFoundError):
                if name.startswith(STAGING) and name not in kept and path.stat().st_mtime < limit:
                    path.unlink()
                    swept += 1
    return swept
