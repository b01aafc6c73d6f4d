"""Reading a checkpoint back: every chunk verified, the folder whole or not there."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

from regions.errors import ConflictError, IntegrityError, NotFoundError
from storage.checkpoints.folder import content_of
from storage.checkpoints.record import FileEntry, Record
from storage.objects import ChunkRef, Store, chunk_of

_THREADS = 4


def verify(store: Store, record: Record) -> tuple[str, ...]:
    """Read all of a checkpoint; return a line for each chunk that is missing or wrong."""
    faults: list[str] = []
    for chunk in record.chunks:
        try:
            verified_chunk(store, chunk)
        except (IntegrityError, NotFoundError) as error:
            faults.append(error.message)
    return tuple(faults)


def restore(store: Store, record: Record, folder: Path) -> Path:
    """Write a checkpoint's files into `folder`, which appears whole and verified or not at all.

    A folder that already holds exactly this checkpoint is left as it is; any other is a ConflictError.
    IntegrityError names the chunk that is wrong or missing.
    """
    if folder.exists():
        if content_of(folder) == record.content:
            return folder
        raise ConflictError(f"{folder} exists and is not this checkpoint; restore into a new folder", kind="restore")
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.parent / f".part-{folder.name}-{uuid.uuid4().hex}"
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            for entry in record.files:
                _restore_file(store, entry, partial / entry.path, pool)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return folder


def verified_chunk(store: Store, chunk: ChunkRef) -> bytes:
    """Return a chunk's bytes, plain or from its packed form, or IntegrityError naming it."""
    try:
        data = store.get(chunk.key)
    except NotFoundError:
        with contextlib.suppress(NotFoundError):
            return _from_packed(store, chunk)
        raise IntegrityError(
            f"{store.url}/{chunk.key} is missing: expected {chunk.size} B; use an older checkpoint or another copy",
            kind="chunk-missing",
            chunk=chunk.digest,
        ) from None
    found = chunk_of(data)
    if found != chunk:
        raise IntegrityError(
            f"{store.url}/{chunk.key} is damaged: expected {chunk.size} B with BLAKE3 {chunk.digest}, found "
            f"{found.size} B with {found.digest}; use an older checkpoint or another copy",
            kind="chunk-damaged",
            chunk=chunk.digest,
        )
    return data


def _from_packed(store: Store, chunk: ChunkRef) -> bytes:
    from storage.checkpoints.packing import read_packed  # rarely needed, and it brings NumPy and pyarrow

    return read_packed(store, chunk)


def _restore_file(store: Store, entry: FileEntry, path: Path, pool: ThreadPoolExecutor) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        os.truncate(file.fileno(), entry.size)
        ends = list(accumulate(chunk.size for chunk in entry.chunks))
        if (total := ends[-1] if ends else 0) != entry.size:
            raise IntegrityError(f"record of {entry.path}: its chunks are {total} B, the file {entry.size} B")

        def write(chunk: ChunkRef, end: int) -> None:
            view = memoryview(verified_chunk(store, chunk))
            while view:
                view = view[os.pwrite(file.fileno(), view, end - len(view)) :]

        for _ in pool.map(write, entry.chunks, ends):
            pass
