"""Moving a group of small objects, each whole: files by the kernel, others through one buffer, hashed as they pass."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from blake3 import blake3

from storage.handoff.model import Item
from storage.handoff.survey import survey
from storage.handoff.tally import Tally
from storage.handoff.verify import is_there, settle, vouched, wrong
from storage.objects import files
from storage.objects.interface import Body, FileRange, Store


def move_group(
    group: Sequence[Item], source: Store, target: Store, tally: Tally, shared: bool, storage_class: str | None
) -> None:
    """Bring a group. With `shared`, items that others brought meanwhile are left out (they work from the far end)."""
    if shared and is_there(group[-1], target):
        found = survey(group, target, streams=1)
        tally.resumed(sum(item.size for item in found.present))
        tally.finished(len(found.present), sent=False)
        group = found.missing
    if not group:
        return
    with contextlib.ExitStack() as opened:
        bodies = _from_files(group, source, opened) or _through_memory(group, source)
        between_files = target.path("any") is not None and isinstance(bodies[0], FileRange)
        if not between_files:
            for item, body in zip(group, bodies, strict=True):
                _check(item, body, source, target)
        target.put_many(
            [(item.key, body) for item, body in zip(group, bodies, strict=True)], storage_class=storage_class
        )
    for item in group:
        if between_files or not vouched(target):
            settle(item, source, target, tally)
    tally.moved(sum(item.size for item in group))
    tally.finished(len(group))


def _from_files(group: Sequence[Item], source: Store, opened: contextlib.ExitStack) -> list[Body]:
    """Return the source's files as ranges to copy or send; empty where the source has no files."""
    bodies: list[Body] = []
    for item in group:
        path = source.path(item.key)
        if path is None:
            return []
        with files.file_errors("read", path):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, descriptor)
            bodies.append(FileRange(descriptor, 0, os.fstat(descriptor).st_size))
    return bodies


def _through_memory(group: Sequence[Item], source: Store) -> list[Body]:
    buffer = memoryview(bytearray(sum(item.size for item in group)))
    bodies: list[Body] = []
    start = 0
    for item in group:
        piece = buffer[start : start + item.size]
        source.fetch(item.key, piece)
        bodies.append(piece)
        start += item.size
    return bodies


def _check(item: Item, body: Body, source: Store, target: Store) -> None:
    with files.viewed(body) as data:
        got = blake3(data).hexdigest()
    if got != item.digest:
        raise wrong(item, source, target, got)
