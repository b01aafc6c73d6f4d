"""A store that counts what a bill counts: requests by kind and storage class, bytes in and out.

Local reads through path() are not seen: no cloud bills them. Requests are counted as asked for here; what a retry
below repeats is billed as well, so the meter belongs inside the retrying wrapper.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from storage.objects.interface import Body, Part, Stat, Store, Upload, size_of
from storage.objects.wrapping import Wrapper

Kind = Literal["put", "get", "list", "copy", "restore", "delete"]
"""As clouds price requests: writes, reads, listings (priced as writes), copies, restores, deletions (free)."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used of one kind and class. The class is '' where the request did not tell it: the bucket's own."""

    kind: Kind
    storage_class: str
    requests: int
    bytes_in: int
    bytes_out: int


class Metering(Wrapper):
    """Counts. Safe for threads."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._counts: dict[tuple[Kind, str], list[int]] = {}

    def usage(self) -> tuple[Usage, ...]:
        """Return what was used so far, by kind and class."""
        with self._lock:
            return tuple(Usage(kind, name, *counts) for (kind, name), counts in sorted(self._counts.items()))

    def head(self, key: str) -> Stat:
        """Count a read without bytes."""
        self._count("get")
        return self._inner.head(key)

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Count a read and its bytes."""
        data = self._inner.get(key, start=start, size=size, version=version)
        self._count("get", bytes_out=len(data))
        return data

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Count a read and its bytes."""
        self._inner.fetch(key, into, start=start, version=version)
        self._count("get", bytes_out=into.nbytes)

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Count a write and its bytes."""
        self._count("put", storage_class, bytes_in=size_of(body))
        return self._inner.put(key, body, create=create, if_match=if_match, storage_class=storage_class)

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Count the writes and their bytes."""
        for _, body in objects:
            self._count("put", storage_class, bytes_in=size_of(body))
        return self._inner.put_many(objects, storage_class=storage_class)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Count a write."""
        self._count("put", storage_class)
        return self._inner.open_upload(key, size=size, part_size=part_size, storage_class=storage_class)

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Count a write and its bytes."""
        self._count("put", bytes_in=size_of(body))
        return self._inner.put_part(key, upload, number, body)

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Count a listing."""
        self._count("list")
        return self._inner.parts(key, upload)

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Count a write."""
        self._count("put")
        return self._inner.complete(key, upload, parts, create=create)

    def abort(self, key: str, upload: str) -> None:
        """Count a deletion."""
        self._count("delete")
        self._inner.abort(key, upload)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Count a listing."""
        self._count("list")
        return self._inner.uploads(folder)

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Count a copy."""
        self._count("copy", storage_class)
        return self._inner.copy(source, key, source_version=source_version, storage_class=storage_class)

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Count a copy."""
        self._count("copy", storage_class)
        return self._inner.set_class(key, storage_class)

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Count a restore."""
        self._count("restore")
        return self._inner.restore(key, days=days, speed=speed)

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Count a listing per thousand objects, as they are asked for."""
        for number, stat in enumerate(self._inner.list(folder)):
            if number and number % 1000 == 0:
                self._count("list")
            yield stat
        self._count("list")

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Count a deletion."""
        self._count("delete")
        self._inner.delete(key, if_match=if_match)

    def _count(self, kind: Kind, storage_class: str | None = None, *, bytes_in: int = 0, bytes_out: int = 0) -> None:
        with self._lock:
            counts = self._counts.setdefault((kind, storage_class or ""), [0, 0, 0])
            counts[0] += 1
            counts[1] += bytes_in
            counts[2] += bytes_out
