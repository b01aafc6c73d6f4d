"""Asking a server what it really does: small objects are written, and what should be refused is tried.

Servers exist that accept `If-None-Match: *` and overwrite, that ignore conditions on uploads, or that store bodies
whose checksum is wrong. A promise counts only when its breach was refused. About 20 requests, once per bucket and
process, under `probe/<random>` and removed again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from regions.errors import (
    CapabilityError,
    ConflictError,
    IntegrityError,
    NotFoundError,
    NotReadyError,
    OutsideError,
    TransientError,
)
from storage.objects.interface import Body, Capabilities, Part, Stat

_REFUSALS = (ConflictError, CapabilityError, IntegrityError, OutsideError, NotFoundError)


class Probed(Protocol):
    """The part of a driver that the probe uses: verbs whose conditions are sent but not yet believed."""

    def put_unchecked(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
        checksum: Mapping[str, str] | None = None,
    ) -> Stat:
        """Write an object."""
        ...

    def complete_unchecked(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Complete an upload."""
        ...

    def delete_unchecked(self, key: str, if_match: str) -> None:
        """Delete an object."""
        ...

    def head(self, key: str) -> Stat:
        """Return an object's facts."""
        ...

    def get(self, key: str) -> bytes:
        """Return an object's bytes."""
        ...

    def open_upload(self, key: str, *, size: int, part_size: int) -> str:
        """Open an upload."""
        ...

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write a part."""
        ...

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        ...

    def copy(self, source: str, key: str) -> Stat:
        """Copy an object."""
        ...

    def restore_unchecked(self, key: str, *, days: int) -> Stat:
        """Ask a frozen object back."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object."""
        ...


def probe(store: Probed, *, infrequent_class: str, answers_with_checksum: str = "") -> Capabilities:
    """Return what the store was seen to do. Errors that say nothing about a promise (no access) are raised."""
    probing = _Probing(store, f"probe/{uuid.uuid4().hex}")
    try:
        return Capabilities(
            create_only=probing.create_only(),
            create_only_upload=probing.create_only_upload(),
            if_match=probing.if_match(),
            atomic_delete=probing.atomic_delete(),
            copy=probing.copy(),
            classes=probing.classes(infrequent_class),
            restore=probing.restore(),
            wire_checksum=answers_with_checksum or probing.wire_checksum(),
        )
    finally:
        store.delete(probing.key)
        store.delete(probing.key + "-copy")


class _Probing:
    def __init__(self, store: Probed, key: str) -> None:
        self._store = store
        self.key = key
        self._first = store.put_unchecked(key, b"first")

    def create_only(self) -> bool:
        return self._refused(lambda: self._store.put_unchecked(self.key, b"second", create=True))

    def create_only_upload(self) -> bool:
        upload = self._store.open_upload(self.key, size=6, part_size=6)
        part = self._store.put_part(self.key, upload, 1, b"upload")
        refused = self._refused(lambda: self._store.complete_unchecked(self.key, upload, (part,), create=True))
        self._store.abort(self.key, upload)
        return refused

    def if_match(self) -> bool:
        wrong = "0" * 32
        if not self._refused(lambda: self._store.put_unchecked(self.key, b"second", if_match=wrong)):
            return False
        try:
            self._store.put_unchecked(self.key, b"first", if_match=self._first.version)
        except _REFUSALS:
            return False
        return True

    def atomic_delete(self) -> bool:
        return self._refused(lambda: self._store.delete_unchecked(self.key, "0" * 32))

    def copy(self) -> bool:
        try:
            self._store.copy(self.key, self.key + "-copy")
        except _REFUSALS:
            return False
        return self._store.get(self.key + "-copy") == b"first"

    def classes(self, infrequent_class: str) -> bool:
        try:
            self._store.put_unchecked(self.key + "-copy", b"first", storage_class=infrequent_class)
        except _REFUSALS:
            return False
        return self._store.head(self.key + "-copy").storage_class == infrequent_class

    def restore(self) -> bool:
        """Ask for an object back that is not frozen: a server that can restore refuses that in particular words."""
        try:
            self._store.restore_unchecked(self.key, days=1)
        except NotReadyError:
            return True
        except (*_REFUSALS, TransientError) as error:
            return error.context.get("code") == "OperationNotSupported"
        return True

    def wire_checksum(self) -> str:
        wrong = {"crc32c": {"x-amz-checksum-crc32c": "AAAAAA=="}, "md5": {"content-md5": "AAAAAAAAAAAAAAAAAAAAAA=="}}
        for name, checksum in wrong.items():
            if self._refused(lambda sent=checksum: self._store.put_unchecked(self.key, b"damaged", checksum=sent)):  # type: ignore[misc]
                return name
        return ""

    def _refused(self, attempt: Callable[[], object]) -> bool:
        """Try what must not work; whatever the server answers, only the object's bytes afterwards are believed."""
        refused = False
        try:
            attempt()
        except (*_REFUSALS, TransientError) as error:
            if isinstance(error, TransientError) and error.kind != "damaged-on-the-way":
                raise
            refused = True
        try:
            kept = self._store.get(self.key) == b"first"
        except NotFoundError:
            kept = False
        if not kept:
            self._first = self._store.put_unchecked(self.key, b"first")
        return refused and kept
