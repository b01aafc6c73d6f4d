"""Objects in this process's memory: for tests and dry runs. Keeps every promise a store can make, except to last."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from regions.clock import Clock, SystemClock
from regions.errors import ConflictError, IntegrityError, NotFoundError, NotReadyError
from storage.objects.interface import (
    Body,
    Capabilities,
    Part,
    Stat,
    Upload,
    bytes_of,
    check_folder,
    check_key,
    size_of,
)

_FROZEN_CLASSES = frozenset({"GLACIER", "DEEP_ARCHIVE", "Archive", "ColdArchive", "DeepColdArchive"})


class MemoryStore:
    """A store in memory. `clock` stamps the objects."""

    capabilities = Capabilities(
        create_only=True,
        create_only_upload=True,
        if_match=True,
        atomic_delete=True,
        copy=True,
        classes=True,
        restore=True,
        wire_checksum="memory",
    )

    def __init__(self, name: str = "memory", clock: Clock | None = None) -> None:
        self.url = f"memory://{name}"
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._objects: dict[str, tuple[Stat, bytes]] = {}
        self._open: dict[str, tuple[Upload, str, dict[int, tuple[Part, bytes]]]] = {}
        self._versions = 0

    def head(self, key: str) -> Stat:
        """Return what is known about an object."""
        return self._entry(key)[0]

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Return a range of an object's bytes."""
        stat, data = self._entry(key)
        if version is not None and stat.version != version:
            raise self._conflict(key, f"it is version {stat.version}, not {version}")
        if stat.access != "ready":
            raise NotReadyError(f"{self.url}/{key} is {stat.access} ({stat.storage_class}): restore it first")
        end = stat.size if size is None else start + size
        if not 0 <= start <= end <= stat.size:
            raise IntegrityError(f"{self.url}/{key}: bytes {start} to {end} were asked for, but it has {stat.size}")
        return data[start:end]

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Fill a buffer from an object."""
        into.cast("B")[:] = self.get(key, start=start, size=into.nbytes, version=version)

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write an object."""
        data = bytes_of(body)
        with self._lock:
            found = self._objects.get(check_key(key))
            if create and found:
                raise self._conflict(key, "it exists already")
            if if_match is not None and (found is None or found[0].version != if_match):
                raise self._conflict(key, f"it is not version {if_match}")
            self._versions += 1
            chosen = storage_class or "STANDARD"
            stat = Stat(
                key,
                len(data),
                str(self._versions),
                self._clock.real(),
                chosen,
                access="frozen" if chosen in _FROZEN_CLASSES else "ready",
            )
            self._objects[key] = (stat, data)
            return stat

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write many objects."""
        return tuple(self.put(key, body, storage_class=storage_class) for key, body in objects)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Begin an upload."""
        upload = uuid.uuid4().hex
        opened = Upload(check_key(key), upload, self._clock.real())
        with self._lock:
            self._open[upload] = (opened, storage_class or "STANDARD", {})
        return upload

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write a part."""
        part = Part(number, size_of(body), uuid.uuid4().hex)
        with self._lock:
            self._upload(key, upload)[2][number] = (part, bytes_of(body))
        return part

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the parts that arrived."""
        with self._lock:
            found = self._upload(key, upload)[2]
            return tuple(found[number][0] for number in sorted(found))

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Make an upload the object."""
        with self._lock:
            _, storage_class, found = self._upload(key, upload)
            numbers = list(range(1, len(parts) + 1))
            if [part.number for part in parts] != numbers or [found[n][0] for n in numbers if n in found] != list(
                parts
            ):
                raise IntegrityError(f"{self.url}/{key}: the parts named are not all the parts of upload {upload}")
            data = b"".join(found[part.number][1] for part in parts)
            stat = self.put(key, data, create=create, storage_class=storage_class)
            del self._open[upload]
            return stat

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        with self._lock:
            self._open.pop(upload, None)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Yield the open uploads."""
        check_folder(folder)
        with self._lock:
            found = [opened for opened, _, _ in self._open.values() if opened.key.startswith(folder)]
        yield from found

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Copy inside the store."""
        with self._lock:
            stat = self.head(source)
            data = self.get(source, version=source_version)
            return self.put(key, data, storage_class=storage_class or stat.storage_class)

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Move an object to another class."""
        with self._lock:
            return self.put(key, self._entry(key)[1], storage_class=storage_class)

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Make a frozen object readable at once."""
        with self._lock:
            stat, data = self._entry(key)
            stat = replace(stat, access="ready")
            self._objects[key] = (stat, data)
            return stat

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Yield the objects in a folder by key."""
        check_folder(folder)
        with self._lock:
            found = sorted((key.encode(), stat) for key, (stat, _) in self._objects.items() if key.startswith(folder))
        yield from (stat for _, stat in found)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete an object."""
        with self._lock:
            found = self._objects.get(check_key(key))
            if if_match is not None and (found is None or found[0].version != if_match):
                raise self._conflict(key, f"it is not version {if_match}")
            self._objects.pop(key, None)

    def sweep(self, older_than: float) -> int:
        """Return 0: a write that was cut off leaves nothing."""
        return 0

    def path(self, key: str) -> Path | None:
        """Return None: nothing is on disk."""
        return None

    def close(self) -> None:
        """Do nothing."""

    def _entry(self, key: str) -> tuple[Stat, bytes]:
        with self._lock:
            found = self._objects.get(check_key(key))
        if found is None:
            raise NotFoundError(f"{self.url} has no object {key!r}", store=self.url, key=key)
        return found

    def _upload(self, key: str, upload: str) -> tuple[Upload, str, dict[int, tuple[Part, bytes]]]:
        found = self._open.get(upload)
        if found is None or found[0].key != key:
            raise NotFoundError(f"{self.url}/{key} has no open upload {upload}: it was completed or aborted")
        return found

    def _conflict(self, key: str, why: str) -> ConflictError:
        return ConflictError(f"{self.url}/{key} stays as it is: {why}", store=self.url, key=key)


_named: dict[str, MemoryStore] = {}
_naming = threading.Lock()


def named_store(name: str) -> MemoryStore:
    """Return this process's memory store of that name: opening memory://name twice gives the same objects."""
    with _naming:
        return _named.setdefault(name, MemoryStore(name))
