"""The ledger of a large object on its way: one small object at the target that names the open upload.

`handoff/ledger/<hash of digest and key>.json` is written before the first part and removed after the last. With the
store's own list of parts it is all that a killed handoff needs to go on, on any machine; two handoffs of the same bytes
share it, and with it the upload. See docs/decisions/0302.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from blake3 import blake3

from regions.errors import ConflictError, NotFoundError
from storage.handoff.model import Item
from storage.objects.interface import Store

_FOLDER = "handoff/ledger/"
_SMALLEST_PART = 8 << 20
_MOST_PARTS = 9_000
"""S3 and OSS allow 10,000."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An upload in flight."""

    key: str
    size: int
    upload: str
    part_size: int


def part_size(size: int, wish: int) -> int:
    """Return the size of parts of an object: a function of its size and the wish alone, so that attempts agree."""
    needed = -(-size // _MOST_PARTS)
    chosen = max(wish, _SMALLEST_PART, needed)
    return -(-chosen // (1 << 20)) << 20


def open_entry(target: Store, item: Item, parts_of: int) -> Entry:
    """Return the entry to work with: the one that is there, or a new one with a new upload."""
    if (found := find_entry(target, item)) is not None and found.part_size == parts_of:
        return found
    upload = target.open_upload(item.key, size=item.size, part_size=parts_of)
    entry = Entry(item.key, item.size, upload, parts_of)
    document = json.dumps(
        {"key": entry.key, "size": entry.size, "upload": entry.upload, "part_size": entry.part_size}
    ).encode()
    try:
        target.put(_key(item), document, create=target.capabilities.create_only and found is None)
    except ConflictError:  # another handoff of the same bytes was faster: share its upload
        other = find_entry(target, item)
        target.abort(item.key, upload)
        if other is None or other.part_size != parts_of:
            raise
        return other
    if found is not None:
        target.abort(found.key, found.upload)
    return entry


def find_entry(target: Store, item: Item) -> Entry | None:
    """Return the entry for these bytes under this key, if there is one."""
    try:
        entry = _parsed(target.get(_key(item)))
    except NotFoundError:
        return None
    return entry if (entry.key, entry.size) == (item.key, item.size) else None


def close_entry(target: Store, item: Item) -> None:
    """Remove the entry: the object is whole, or its upload is gone."""
    target.delete(_key(item))


def drop_upload(target: Store, item: Item, entry: Entry) -> None:
    """Give an upload up, with its entry."""
    target.abort(entry.key, entry.upload)
    close_entry(target, item)


def sweep(target: Store, *, older_than: timedelta, now: datetime) -> int:
    """Remove what handoffs that nobody took up again left at the target: uploads, entries, temp files. Return how many.

    An upload counts as old when its entry is, or, without an entry, when the store says so. `now` is real time.
    """
    limit, swept = now - older_than, 0
    live: set[str] = set()
    for key, entry, modified in list(_entries(target)):
        if modified >= limit:
            live.add(entry.upload)
            continue
        target.abort(entry.key, entry.upload)
        target.delete(key)
        swept += 1
    for upload in list(target.uploads()):
        if upload.upload not in live and upload.started < limit:
            target.abort(upload.key, upload.upload)
            swept += 1
    return swept + target.sweep(older_than.total_seconds())


def _entries(target: Store) -> Iterator[tuple[str, Entry, datetime]]:
    for stat in target.list(_FOLDER):
        yield stat.key, _parsed(target.get(stat.key)), stat.modified


def _parsed(data: bytes) -> Entry:
    document = json.loads(data)
    return Entry(document["key"], document["size"], document["upload"], document["part_size"])


def _key(item: Item) -> str:
    return f"{_FOLDER}{blake3(f'{item.digest} {item.key}'.encode()).hexdigest(16)}.json"
