"""Objects as files in a folder: a temp name beside the target, fsync, then one rename or link makes it visible.

Names that begin with `.part-` are ours: temp files, open uploads, the lock. Listings never show them and sweep()
removes what a killed process left. The folder must be one file system. Replacing and deleting hold the lock shared,
conditional ones hold it alone, so a compare-and-swap cannot be overtaken.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from regions.clock import Clock, SystemClock
from regions.errors import CapabilityError, ConflictError, IntegrityError, NotFoundError
from storage.objects import files, local_tree
from storage.objects.interface import Body, Capabilities, FileRange, Part, Stat, Upload, check_folder, check_key
from storage.objects.local_tree import stat_of
from storage.objects.local_uploads import LocalUploads

_FLUSHED_ALONE = 4


class LocalStore:
    """A store in a folder. The folder is made with the first object."""

    capabilities = Capabilities(
        create_only=True,
        create_only_upload=True,
        if_match=True,
        atomic_delete=True,
        copy=True,
        classes=False,
        restore=False,
        wire_checksum="",
    )

    def __init__(self, root: Path, clock: Clock | None = None) -> None:
        self._root = root
        self._clock = clock or SystemClock()
        self._uploads = LocalUploads(root)
        self.url = root.absolute().as_uri()

    def head(self, key: str) -> Stat:
        """Return what is known about an object."""
        try:
            found = self._path(key).stat()
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(key) from None
        if not stat.S_ISREG(found.st_mode):
            raise self._missing(key)
        return stat_of(key, found)

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Return a range of an object's bytes."""
        with self._opened(key, version) as (descriptor, found):
            wanted = found.size - start if size is None else size
            self._check_range(found, start, wanted)
            data = os.pread(descriptor, wanted, start)
            if len(data) == wanted:
                return data
        buffer = bytearray(wanted)  # above 2 GiB one read does not give all
        self.fetch(key, memoryview(buffer), start=start, version=version)
        return bytes(buffer)

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Fill a buffer from an object."""
        with self._opened(key, version) as (descriptor, found):
            self._check_range(found, start, into.nbytes)
            view = into.cast("B")
            while view:
                got = os.preadv(descriptor, [view], start)
                if not got:
                    raise IntegrityError(f"{self.url}/{key}: the file became shorter while it was read")
                view, start = view[got:], start + got

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write an object: temp file, fsync, rename or link, fsync of the folder."""
        path = self._path(key)
        with files.file_errors("write", path):
            temp = self._staged(path, body, durable=True)
            try:
                self._publish(temp, path, key, create=create, if_match=if_match)
            except BaseException:
                temp.unlink(missing_ok=True)
                raise
            files.sync_folder(path.parent)
            return stat_of(key, path.stat())

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write many objects with one flush for all their bytes and one for all their names.

        The flush takes in whatever else is dirty on the file system, so a few objects are rather flushed one by one.
        """
        if len(objects) <= _FLUSHED_ALONE:
            return tuple(self.put(key, body) for key, body in objects)
        staged: list[tuple[Path, Path, str]] = []
        try:
            for key, body in objects:
                path = self._path(key)
                with files.file_errors("write", path):
                    staged.append((self._staged(path, body, durable=False), path, key))
            with files.file_errors("flush", self._root), self._lock(fcntl.LOCK_SH):
                files.sync_file_system(self._root)
                for temp, path, _ in staged:
                    temp.replace(path)
                files.sync_file_system(self._root)
        except BaseException:
            for temp, _, _ in staged:
                temp.unlink(missing_ok=True)
            raise
        return tuple(self.head(key) for _, _, key in staged)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Begin an upload; the space for all of it is taken at once."""
        self._path(key)
        return self._uploads.open(key, size, part_size)

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write a part into its place."""
        return self._uploads.write(key, upload, number, body)

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the parts that arrived whole."""
        return self._uploads.parts(key, upload)

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Make an upload the object."""
        path = self._path(key)
        temp = self._uploads.finished(key, upload, parts)
        with files.file_errors("complete", path):
            self._publish(temp, path, key, create=create, if_match=None)
            files.sync_folder(path.parent)
            self._uploads.forget(upload)
            return stat_of(key, path.stat())

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        self._uploads.abort(key, upload)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Yield the open uploads."""
        return self._uploads.list(check_folder(folder))

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Copy inside the store, by clone or copy_file_range."""
        with self._opened(source, source_version) as (descriptor, found):
            return self.put(key, FileRange(descriptor, 0, found.size))

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Refuse: a folder has no storage classes."""
        raise self._without("classes", "move an object to another storage class")

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Refuse: a folder freezes nothing."""
        raise self._without("restore", "restore an object")

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Yield the objects in a folder by key."""
        base = self._root / check_folder(folder)
        with files.file_errors("list", base):
            yield from local_tree.walk(base, folder)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete an object and make that durable."""
        path = self._path(key)
        if not path.parent.is_dir():
            if if_match is not None:
                raise self._conflict(key, "it is not there")
            return
        with (
            files.file_errors("delete", path),
            self._lock(fcntl.LOCK_SH if if_match is None else fcntl.LOCK_EX),
        ):
            if if_match is not None:
                self._check_version(path, key, if_match)
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                files.sync_folder(path.parent)

    def path(self, key: str) -> Path | None:
        """Return the object's file."""
        return self._path(key)

    def close(self) -> None:
        """Do nothing: no descriptor outlives a call."""

    def sweep(self, older_than: float) -> int:
        """Remove temp files (not open uploads) that no process has touched for `older_than` seconds; return how many.

        What a killed writer left is invisible but takes space. A day is a safe age: no single write lasts longer.
        """
        kept = self._uploads.staging_names()
        self._uploads.forget_lost()
        return local_tree.sweep(self._root, self._clock.real().timestamp() - older_than, kept)

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    @contextlib.contextmanager
    def _opened(self, key: str, version: str | None) -> Iterator[tuple[int, Stat]]:
        path = self._path(key)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise self._missing(key) from None
        except OSError:
            with files.file_errors("read", path):
                raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._missing(key)
            found = stat_of(key, status)
            if version is not None and found.version != version:
                raise self._conflict(key, f"it is version {found.version}, not {version}")
            with files.file_errors("read", path):
                yield descriptor, found
        finally:
            os.close(descriptor)

    def _staged(self, path: Path, body: Body, *, durable: bool) -> Path:
        temp = path.parent / f".part-tmp-{uuid.uuid4().hex}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = os.open(temp, flags, 0o644)
        except FileNotFoundError:
            local_tree.make_folder(path.parent, durable=durable)
            descriptor = os.open(temp, flags, 0o644)
        try:
            files.write_body(body, descriptor)
            if durable:
                os.fsync(descriptor)
        except BaseException:
            temp.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return temp

    def _publish(self, temp: Path, path: Path, key: str, *, create: bool, if_match: str | None) -> None:
        with self._lock(fcntl.LOCK_SH if if_match is None else fcntl.LOCK_EX):
            if if_match is not None:
                self._check_version(path, key, if_match)
            if not create:
                temp.replace(path)
                return
            try:
                os.link(temp, path)
            except FileExistsError:
                raise self._conflict(key, "it exists already") from None
            temp.unlink()

    def _check_version(self, path: Path, key: str, version: str) -> None:
        try:
            found = stat_of(key, path.stat()).version
        except FileNotFoundError:
            raise self._conflict(key, "it is not there") from None
        if found != version:
            raise self._conflict(key, f"it is version {found}, not {version}")

    @contextlib.contextmanager
    def _lock(self, kind: int) -> Iterator[None]:
        self._root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._root / ".part-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)

    def _check_range(self, found: Stat, start: int, size: int) -> None:
        if start < 0 or size < 0 or start + size > found.size:
            raise IntegrityError(
                f"{self.url}/{found.key}: bytes {start} to {start + size} were asked for, but it has {found.size}"
            )

    def _missing(self, key: str) -> NotFoundError:
        return NotFoundError(f"{self.url} has no object {key!r}", store=self.url, key=key)

    def _conflict(self, key: str, why: str) -> ConflictError:
        return ConflictError(f"{self.url}/{key} stays as it is: {why}", store=self.url, key=key)

    def _without(self, promise: str, action: str) -> CapabilityError:
        return CapabilityError(f"{self.url} cannot {action}: files in a folder have none", promise=promise)
