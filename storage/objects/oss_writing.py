"""Writing through fsspec without ever showing a short object: whole puts and uploads, dropped when the writer fails."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from storage.objects.interface import FileRange, Part, Store


class Writer(AbstractBufferedFile):  # type: ignore[misc]
    """A file being written: nothing is visible before close(), and nothing ever if the writer failed or was dropped."""

    def __init__(
        self,
        fs: AbstractFileSystem,
        store: Store,
        key: str,
        path: str,
        block_size: int,
        storage_class: str | None,
        create: bool,
    ) -> None:
        self.buffer: Any = None
        super().__init__(fs, path, "wb", block_size)
        self._handled = sys.exc_info()[1]
        self._store, self._key = store, key
        self._class, self._create = storage_class, create
        self._upload: str | None = None
        self._parts: list[Part] = []

    def _initiate_upload(self) -> None:
        """Do nothing yet: a small object needs no upload."""

    def _upload_chunk(self, final: bool = False) -> bool:
        data = self.buffer.getbuffer()
        if final and self._upload is None:
            self._store.put(self._key, bytes(data), create=self._create, storage_class=self._class)
            return True
        if self._upload is None:
            self._upload = self._store.open_upload(
                self._key, size=self.blocksize, part_size=self.blocksize, storage_class=self._class
            )
        if len(data):
            number = len(self._parts) + 1
            self._parts.append(self._store.put_part(self._key, self._upload, number, bytes(data)))
        if final:
            self._store.complete(self._key, self._upload, self._parts, create=self._create)
        return True

    def close(self) -> None:
        """Publish what was written, or drop it if an exception is on its way that was not when the file was opened.

        fsspec.open() closes its files in a `with` block without saying that the block failed, so this has to look.
        """
        if not self.closed and sys.exc_info()[1] is not self._handled:
            self.discard()
        super().close()

    def discard(self) -> None:
        """Drop what was written."""
        if self._upload is not None:
            self._store.abort(self._key, self._upload)
        self.buffer, self.closed = None, True

    def __del__(self) -> None:
        # A file that nobody closed is a writer that failed: the plain class would publish it here.
        if not getattr(self, "closed", True):
            with contextlib.suppress(Exception):
                self.discard()


class Uploading:
    """The parts of an upload as they are written."""

    def __init__(self, store: Store, key: str, upload: str) -> None:
        self._store, self._key, self._upload = store, key, upload
        self.parts: list[Part] = []

    def write(self, number: int, body: FileRange) -> None:
        """Write one part."""
        self.parts.append(self._store.put_part(self._key, self._upload, number, body))


@contextlib.contextmanager
def uploading(store: Store, key: str, part_size: int, storage_class: str | None, create: bool) -> Iterator[Uploading]:
    """Complete an upload at the block's end, abort it if the block fails."""
    upload = store.open_upload(key, size=part_size, part_size=part_size, storage_class=storage_class)
    written = Uploading(store, key, upload)
    try:
        yield written
        store.complete(key, upload, written.parts, create=create)
    except BaseException:
        store.abort(key, upload)
        raise
