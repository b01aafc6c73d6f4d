"""Uploads into a folder store: one staging file beside the target and one small log of the parts that arrived.

`.part-uploads/<id>` holds a JSON line (key, size, part size) and then one line per part; a line is written after its
bytes, so a killed process leaves a log that is true. Bytes become durable once, when the upload is completed.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regions.errors import InputError, IntegrityError, NotFoundError
from storage.objects import files
from storage.objects.interface import Body, Part, Upload, size_of


@dataclass(frozen=True, slots=True)
class _Opened:
    key: str
    size: int
    part_size: int
    parts: dict[int, Part]

    def range_of(self, number: int) -> tuple[int, int]:
        """Return where part `number` begins and how long it must be."""
        start = (number - 1) * self.part_size
        return start, min(self.part_size, self.size - start)


class LocalUploads:
    """The open uploads of one folder store."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / ".part-uploads"

    def open(self, key: str, size: int, part_size: int) -> str:
        """Begin an upload, with its space reserved."""
        if size <= 0 or part_size <= 0:
            raise InputError(f"cannot upload {key!r} of {size} bytes in parts of {part_size}: both must be above 0")
        upload = uuid.uuid4().hex
        staging = self._staging(key, upload)
        with files.file_errors("reserve space for", staging):
            staging.parent.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(staging, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            try:
                os.posix_fallocate(descriptor, 0, size)
            except BaseException:
                staging.unlink()
                raise
            finally:
                os.close(descriptor)
            head = {"key": key, "size": size, "part_size": part_size}
            (self._folder / upload).write_text(json.dumps(head) + "\n")
        return upload

    def write(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write a part into its place, then log it."""
        start, size = self._read(key, upload).range_of(number)
        if number < 1 or size <= 0 or size_of(body) != size:
            raise InputError(f"part {number} of {key!r} has {size_of(body)} bytes, expected {max(size, 0)}")
        staging = self._staging(key, upload)
        with files.file_errors("write", staging):
            descriptor = os.open(staging, os.O_RDWR | os.O_CLOEXEC)
            try:
                files.write_body(body, descriptor, start)
            finally:
                os.close(descriptor)
            log = os.open(self._folder / upload, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.write(log, f"{number} {size}\n".encode())
            finally:
                os.close(log)
        return Part(number, size, f"{number}-{size}")

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the logged parts by number."""
        found = self._read(key, upload).parts
        return tuple(found[number] for number in sorted(found))

    def finished(self, key: str, upload: str, parts: Sequence[Part]) -> Path:
        """Return the staging file, durable, or raise unless `parts` are all there and make up the object."""
        opened = self._read(key, upload)
        whole = sum(part.size for part in parts) == opened.size
        if not whole or [part.number for part in parts] != list(range(1, len(parts) + 1)):
            raise IntegrityError(f"{key!r}: the parts named do not make up its {opened.size} bytes")
        if missing := [part.number for part in parts if opened.parts.get(part.number) != part]:
            raise IntegrityError(f"{key!r}: parts {missing} of upload {upload} never arrived")
        staging = self._staging(key, upload)
        with files.file_errors("flush", staging):
            descriptor = os.open(staging, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return staging

    def abort(self, key: str, upload: str) -> None:
        """Remove an upload's files."""
        self._staging(key, upload).unlink(missing_ok=True)
        self.forget(upload)

    def forget(self, upload: str) -> None:
        """Remove an upload's log."""
        (self._folder / upload).unlink(missing_ok=True)

    def list(self, folder: str) -> Iterator[Upload]:
        """Yield the open uploads of keys in `folder`."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            with contextlib.suppress(NotFoundError, FileNotFoundError):
                opened = self._read(None, path.name)
                if opened.key.startswith(folder):
                    started = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    yield Upload(opened.key, path.name, started)

    def staging_names(self) -> frozenset[str]:
        """Return the names of the staging files that open uploads own."""
        return frozenset(f".part-tmp-{upload.upload}" for upload in self.list(""))

    def forget_lost(self) -> None:
        """Remove the logs whose staging file is gone: their process died between publishing and forgetting."""
        if not self._folder.is_dir():
            return
        known = {upload.upload for upload in self.list("")}
        for path in self._folder.iterdir():
            if path.name not in known:
                path.unlink(missing_ok=True)

    def _staging(self, key: str, upload: str) -> Path:
        return (self._root / key).parent / f".part-tmp-{upload}"

    def _read(self, key: str | None, upload: str) -> _Opened:
        try:
            lines = (self._folder / upload).read_text().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(f"{key!r} has no open upload {upload}: it was completed or aborted") from None
        head: dict[str, Any] = json.loads(lines[0]) if lines else {"key": ""}
        if (key is not None and head["key"] != key) or not self._staging(head["key"], upload).exists():
            raise NotFoundError(f"{key!r} has no open upload {upload}: it was completed or aborted")
        parts = {}
        for line in lines[1:]:
            number, _, size = line.partition(" ")
            parts[int(number)] = Part(int(number), int(size), f"{number}-{size}")
        return _Opened(head["key"], head["size"], head["part_size"], parts)
