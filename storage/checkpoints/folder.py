"""A folder of files as a record describes it."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from regions.errors import InputError
from storage.checkpoints.cutting import cut
from storage.checkpoints.record import FileEntry, content_digest
from storage.objects import ChunkRef, chunk_of


def entries(folder: Path) -> tuple[FileEntry, ...]:
    """Return what a record says of a folder's files, sorted by path. Links are followed if they stay inside."""
    found = tuple(_entry(folder, path) for path in _files(folder))
    if not found:
        raise InputError(f"{folder} holds no file: nothing to commit", kind="checkpoint")
    return found


def content_of(folder: Path) -> str | None:
    """Return the content digest of a folder's files, or None where there is no file."""
    paths = list(_files(folder))
    return content_digest(_entry(folder, path) for path in paths) if paths else None


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            if not path.resolve().is_relative_to(root):
                raise InputError(f"{path} links out of the checkpoint's folder: save the file", kind="checkpoint")
            yield path
        elif not path.is_dir():
            raise InputError(f"{path} is neither a file nor a folder: it cannot be saved", kind="checkpoint")


def _entry(folder: Path, path: Path) -> FileEntry:
    name = path.relative_to(folder).as_posix()
    with _mapped(path) as data:
        digest = blake3(data).hexdigest()
        places = cut(data)
        chunks = tuple(
            ChunkRef(digest, size) if size == len(data) else chunk_of(data[offset : offset + size])
            for offset, size in places
        )
        return FileEntry(name, len(data), digest, chunks)


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[memoryview]:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            yield memoryview(b"")
            return
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = memoryview(mapped)
    try:
        yield view
    finally:
        view.release()
        with contextlib.suppress(BufferError):  # an exception's frames may still hold a slice; it goes with them
            mapped.close()
