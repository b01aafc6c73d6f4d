"""The store protocol: a dozen verbs over keys and bytes, and what each of them promises.

Every MUST below is proven for every driver and every server by the one suite in tests/conformance. A wrapper
(retrying, verifying, metering, limiting) is a Store too, so their order is a one-line choice. Where stores differ,
`capabilities` says so; a promise that is needed and not kept is refused by name, never assumed.

Keys are relative to the store's URL, '/'-separated, without empty, '.' or '..' parts. A store is safe to use from
many threads and MUST NOT be carried over a fork. All errors are of regions.errors and name the store and the key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from regions.errors import CapabilityError, InputError

Access = Literal["ready", "frozen", "restoring"]


@dataclass(frozen=True, slots=True)
class FileRange:
    """`size` bytes of an open file from `offset`: bytes go through system calls, never through Python objects."""

    descriptor: int
    offset: int
    size: int


_NAME = r"(?!\.{0,2}(?:/|\Z))(?!\.part-)[^/\\\x00-\x1f]+"
_KEY = re.compile(f"{_NAME}(?:/{_NAME})*")

Body = bytes | bytearray | memoryview | FileRange


@dataclass(frozen=True, slots=True)
class Stat:
    """What a store says about one object. `modified` is in UTC and of the store's clock.

    `version` pins reads: while it is the same the bytes are the same. It is opaque and differs between stores for
    equal bytes, so it is never an identity. `checksum` is the store's own ("crc64ecma:<decimal>" and the like) or ''.
    """

    key: str
    size: int
    version: str
    modified: datetime
    storage_class: str = ""
    checksum: str = ""
    access: Access = "ready"
    readable_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an upload as the store has it. Numbers begin at 1."""

    number: int
    size: int
    tag: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload that was opened and neither completed nor aborted. It is billed until it is."""

    key: str
    upload: str
    started: datetime


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store really does. Drivers over HTTP ask the server (storage.objects.probe) instead of believing it."""

    create_only: bool
    """put(create=True) never replaces an object, whoever else writes."""
    create_only_upload: bool
    """complete(create=True) never replaces an object."""
    if_match: bool
    """put(if_match=) replaces exactly the named version or nothing."""
    atomic_delete: bool
    """delete(if_match=) checks and deletes in one step; else it reads, compares, then deletes."""
    copy: bool
    """copy() moves no byte through this process."""
    classes: bool
    """Storage classes are kept and reported."""
    restore: bool
    """Frozen objects can be asked back with restore()."""
    wire_checksum: str
    """The checksum with which the server itself refuses damaged bodies (crc64nvme, md5, crc64ecma, ...), or ''."""


class Store(Protocol):
    """A place for objects. Visible means: head, get and list see it, whole, with its final bytes."""

    @property
    def url(self) -> str:
        """The store's address for messages and records. MUST hold no secret."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this store really does; the first call MAY ask the server and write a probe object."""
        ...

    def head(self, key: str) -> Stat:
        """Return what is known about an object. MUST see every finished write of any process at once.

        NotFoundError where there is none.
        """
        ...

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Return `size` bytes from `start` (None: to the end).

        MUST return exactly those bytes or raise: a range beyond the end is an IntegrityError, never a short answer.
        With `version` they MUST be of that version, else ConflictError. A frozen object is a NotReadyError.
        """
        ...

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Fill `into` wholly with the object's bytes from `start`, copying none in Python; promises as for get().

        MAY have written some of `into` when it raises.
        """
        ...

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write a whole object. MUST be atomic: readers see the old one, or the new one whole, nothing between.

        When it returns the object MUST be durable. With `create` an existing object MUST stay as it is
        (ConflictError); with `if_match` any version but that one MUST stay (ConflictError). Where the store cannot
        promise what is asked: CapabilityError, and nothing is written.
        """
        ...

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write many objects, each atomic as in put(). When it returns all MUST be durable.

        MAY make them durable together, which is far cheaper on a local disk. When it raises, any of them MAY exist.
        """
        ...

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Begin an upload of `size` bytes in parts of exactly `part_size` (the last one shorter); return its id.

        Nothing is visible under the key until complete(). The upload MUST outlive the process.
        """
        ...

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write part `number` (from 1), in any order, by any process. Writing it again replaces it."""
        ...

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the parts that arrived whole, by number. NotFoundError where the upload is completed or aborted."""
        ...

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Make the upload the object. MUST refuse (IntegrityError) unless `parts` are all there and add up."""
        ...

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload and its parts. Dropping one that is gone is no error."""
        ...

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Yield every open upload whose key lies in `folder` ('' for all, else ending in '/')."""
        ...

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Copy inside this store without moving bytes through here. MUST keep the class unless one is given.

        With `source_version` any other version is refused (ConflictError).
        """
        ...

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Move an object to another storage class; its bytes stay. Restarts minimum-days billing on most clouds."""
        ...

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Ask for a frozen object back for `days` days. Asking again while it warms is no error."""
        ...

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Yield every object in `folder` and below, by key in byte order.

        `folder` is '' or ends in '/': a bare prefix is refused (InputError), since `run-1` is also a prefix of
        `run-10`. MUST see every finished write of any process: no cache.
        """
        ...

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete one object. One that is not there is no error, except with `if_match` (ConflictError).

        With `if_match` any other version MUST stay (ConflictError).
        """
        ...

    def sweep(self, older_than: float) -> int:
        """Remove what killed writers left invisible, if untouched for `older_than` seconds; return how many.

        Open uploads are not among it: they can be resumed (storage.handoff sweeps those).
        """
        ...

    def path(self, key: str) -> Path | None:
        """Return the local file that holds the object, to read only; None where the store is not this machine's."""
        ...

    def close(self) -> None:
        """Let go of connections and descriptors. Using the store again afterwards MAY work."""
        ...


def check_key(key: str) -> str:
    """Return the key, or raise InputError for one that could leave the store or mean two things."""
    if _KEY.fullmatch(key) is None or len(key.encode("utf-8", "surrogatepass")) > 1024:
        raise _bad_key(key)
    return key


def check_folder(folder: str) -> str:
    """Return the folder, or raise InputError unless it is '' or a key followed by '/'."""
    if folder and not folder.endswith("/"):
        hint = f"use {folder + '/'!r}: a prefix without its '/' would take in its neighbours as well"
        raise InputError(f"cannot list {folder!r}: expected '' or a folder ending in '/'; {hint}", kind="folder")
    if folder:
        check_key(folder[:-1])
    return folder


def size_of(body: Body) -> int:
    """Return how many bytes a body has."""
    return body.size if isinstance(body, FileRange) else memoryview(body).nbytes


def bytes_of(body: Body) -> bytes:
    """Return a body as bytes (for small documents: this copies)."""
    if not isinstance(body, FileRange):
        return bytes(body)
    pieces, offset, end = [], body.offset, body.offset + body.size
    while offset < end and (piece := os.pread(body.descriptor, end - offset, offset)):
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)


def require(store: Store, promise: str, action: str) -> None:
    """Raise CapabilityError unless the store keeps the promise (a field name of Capabilities) that `action` needs."""
    if not getattr(store.capabilities, promise):
        raise CapabilityError(
            f"{store.url} cannot {action}: the store does not keep the promise `{promise}` "
            "(it was asked, and it replaced or ignored); use a store that does, see docs/decisions/0301",
            store=store.url,
            promise=promise,
        )


def _bad_key(key: str) -> InputError:
    return InputError(
        f"{key!r} cannot be a key: expected '/'-separated names without empty, '.', '..' or '.part-' parts, "
        "backslashes or control characters, of at most 1024 bytes",
        kind="key",
    )
