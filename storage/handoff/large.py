"""Moving a large object in parts that several streams carry, resumable from what the target already has.

Parts are hashed in order as they pass. Where that covered every part and the server refuses damaged bodies, the object
is verified when it is completed; else (resumed, shared, or a server that checks nothing) it is read back.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator

from blake3 import blake3

from regions.errors import ConflictError, IntegrityError, NotFoundError
from storage.handoff import ledger
from storage.handoff.model import Item
from storage.handoff.survey import holds
from storage.handoff.tally import Tally
from storage.handoff.verify import is_there, settle, vouched, wrong
from storage.objects import files
from storage.objects.interface import Body, FileRange, Part, Store


class LargeObject:
    """One large item on its way. The first unit that runs opens or resumes the upload, the last one completes it."""

    def __init__(
        self, item: Item, source: Store, target: Store, tally: Tally, part_bytes: int, storage_class: str | None
    ) -> None:
        self._item, self._source, self._target, self._tally = item, source, target, tally
        self._part_size = ledger.part_size(item.size, part_bytes)
        self._storage_class = storage_class
        self._count = -(-item.size // self._part_size)
        self._lock = threading.Lock()
        self._parts: dict[int, Part] = {}
        self._hash = _InOrder(self._count)
        self._version: str | None = None
        self._done_elsewhere = False

    def units(self, *, look_again: bool) -> Iterator[Callable[[], None]]:
        """Yield one unit per part that is missing. Opening the upload happens here, between units."""
        if look_again and is_there(self._item, self._target) and holds(self._target, self._item):
            self._tally.resumed(self._item.size)
            self._tally.finished(1, sent=False)
            return
        self._version = self._source.head(self._item.key).version
        self._entry = ledger.open_entry(self._target, self._item, self._part_size)
        try:
            here = self._target.parts(self._item.key, self._entry.upload)
        except NotFoundError:
            # Its ledger outlived it: completed by a process that died before it could say so, or aborted.
            ledger.close_entry(self._target, self._item)
            if is_there(self._item, self._target) and holds(self._target, self._item):
                self._tally.finished(1, sent=False)
                return
            self._entry = ledger.open_entry(self._target, self._item, self._part_size)
            here = ()
        for part in here:
            if part.size == self._range(part.number)[1]:
                self._parts[part.number] = part
        self._tally.resumed(sum(part.size for part in self._parts.values()))
        if self._parts:
            self._hash.give_up()
        missing = [number for number in range(1, self._count + 1) if number not in self._parts]
        if not missing:
            yield self._complete
        for number in missing:
            yield lambda number=number: self._move(number)  # type: ignore[misc]

    def _move(self, number: int) -> None:
        try:
            part = self._moved(number)
        except BaseException:
            self._hash.give_up()  # nobody may wait for this part's turn
            raise
        with self._lock:
            if part is None:
                first, self._done_elsewhere = not self._done_elsewhere, True
            else:
                self._parts[number] = part
            last = len(self._parts) == self._count
        if part is None:
            self._hash.give_up()
            self._tally.finished(int(first), sent=False)
        else:
            self._tally.moved(part.size)
        if last:
            self._complete()

    def _moved(self, number: int) -> Part | None:
        """Move one part; None where another worker completed the shared upload meanwhile."""
        start, size = self._range(number)
        with contextlib.ExitStack() as opened:
            body = self._body(start, size, opened)
            if self._target.path(self._item.key) is None:
                self._hash.update(number, body)
            try:
                return self._target.put_part(self._item.key, self._entry.upload, number, body)
            except NotFoundError:
                if holds(self._target, self._item):
                    return None
                raise

    def _complete(self) -> None:
        item = self._item
        hashed = self._hash.digest()
        if hashed is not None and hashed != item.digest:
            ledger.drop_upload(self._target, item, self._entry)
            raise wrong(item, self._source, self._target, hashed)
        parts = [self._parts[number] for number in sorted(self._parts)]
        try:
            self._target.complete(item.key, self._entry.upload, parts)
        except (NotFoundError, ConflictError):
            hashed = None  # completed before, by us with the reply lost, or by another: the bytes decide
        except IntegrityError:
            ledger.drop_upload(self._target, item, self._entry)
            raise
        try:
            if hashed is None or not vouched(self._target):
                settle(item, self._source, self._target, self._tally)
        finally:
            ledger.close_entry(self._target, item)
        self._tally.finished(1)

    def _body(self, start: int, size: int, opened: contextlib.ExitStack) -> Body:
        path = self._source.path(self._item.key)
        if path is not None:
            with files.file_errors("read", path):
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                opened.callback(os.close, descriptor)
                return FileRange(descriptor, start, size)
        buffer = memoryview(bytearray(size))
        self._source.fetch(self._item.key, buffer, start=start, version=self._version)
        return buffer

    def _range(self, number: int) -> tuple[int, int]:
        start = (number - 1) * self._part_size
        return start, min(self._part_size, self._item.size - start)


class _InOrder:
    """A digest over parts that arrive in any order. Streams take parts in order, so nobody waits for long."""

    def __init__(self, count: int) -> None:
        self._count, self._next = count, 1
        self._hasher = blake3()
        self._turn = threading.Condition()
        self._given_up = False

    def give_up(self) -> None:
        """Stop hashing: not every part will pass here."""
        with self._turn:
            self._given_up = True
            self._turn.notify_all()

    def update(self, number: int, body: Body) -> None:
        """Wait for the part's turn and hash it."""
        with self._turn:
            self._turn.wait_for(lambda: self._given_up or self._next == number)
            if self._given_up:
                return
        with files.viewed(body) as data:
            self._hasher.update(data)
        with self._turn:
            self._next += 1
            self._turn.notify_all()

    def digest(self) -> str | None:
        """Return the digest of the whole, or None where not every part was hashed here."""
        return self._hasher.hexdigest() if not self._given_up and self._next > self._count else None
