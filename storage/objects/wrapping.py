"""The base of wrappers: a store that hands every verb on. A wrapper overrides what it changes, no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from storage.objects.interface import Body, Capabilities, Part, Stat, Store, Upload


class Wrapper:
    """A store around a store."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    @property
    def url(self) -> str:
        """The inner store's address."""
        return self._inner.url

    @property
    def capabilities(self) -> Capabilities:
        """The inner store's capabilities."""
        return self._inner.capabilities

    def head(self, key: str) -> Stat:
        """Hand on."""
        return self._inner.head(key)

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Hand on."""
        return self._inner.get(key, start=start, size=size, version=version)

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Hand on."""
        self._inner.fetch(key, into, start=start, version=version)

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Hand on."""
        return self._inner.put(key, body, create=create, if_match=if_match, storage_class=storage_class)

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Hand on."""
        return self._inner.put_many(objects, storage_class=storage_class)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Hand on."""
        return self._inner.open_upload(key, size=size, part_size=part_size, storage_class=storage_class)

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Hand on."""
        return self._inner.put_part(key, upload, number, body)

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Hand on."""
        return self._inner.parts(key, upload)

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Hand on."""
        return self._inner.complete(key, upload, parts, create=create)

    def abort(self, key: str, upload: str) -> None:
        """Hand on."""
        self._inner.abort(key, upload)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Hand on."""
        return self._inner.uploads(folder)

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Hand on."""
        return self._inner.copy(source, key, source_version=source_version, storage_class=storage_class)

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Hand on."""
        return self._inner.set_class(key, storage_class)

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Hand on."""
        return self._inner.restore(key, days=days, speed=speed)

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Hand on."""
        return self._inner.list(folder)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Hand on."""
        self._inner.delete(key, if_match=if_match)

    def sweep(self, older_than: float) -> int:
        """Hand on."""
        return self._inner.sweep(older_than)

    def path(self, key: str) -> Path | None:
        """Hand on."""
        return self._inner.path(key)

    def close(self) -> None:
        """Hand on."""
        self._inner.close()
