"""The handoff: survey, price, move what is missing on a few streams, then write the documents.

Work is cut into units: a group of small objects, or one part of a large one. Streams take units in order, so a kill
costs each of them at most the unit in hand. The first failure stops all; what was finished stays and is found again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from regions.clock import Clock, SystemClock
from regions.errors import ConflictError, IntegrityError
from storage.handoff.large import LargeObject
from storage.handoff.model import Document, Fare, Item, Progress, Receipt, distinct, set_digest
from storage.handoff.small import move_group
from storage.handoff.survey import survey
from storage.handoff.tally import Tally
from storage.objects.interface import Store

_GROUP_BYTES = 16 << 20
_GROUP_BYTES_LOCAL = 64 << 20
"""Between folders nothing of a group is held in memory."""
_GROUP_OBJECTS_LOCAL = 512
"""A folder flushes a whole group at once; the group is as large as its bytes allow."""
_GROUP_OBJECTS_REMOTE = 16
_PARTS_LOCAL = 16

Unit = Callable[[], None]


def handoff(
    items: Sequence[Item],
    documents: Sequence[Document],
    source: Store,
    target: Store,
    *,
    streams: int = 8,
    part_bytes: int = 16 << 20,
    fare: Fare | None = None,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    shared: bool = False,
    storage_class: str | None = None,
    clock: Clock | None = None,
) -> Receipt:
    """Bring the items the target lacks, verify each at the target, then write the documents.

    Idempotent: called again it finds what is there and goes on. `part_bytes` is the size of parts of large objects
    (at least 8 MiB); `progress` is called from the streams, one at a time; `cancelled` is asked between units; `shared`
    says that others move the same items at the same time, so that each unit looks again before it starts.

    PlanError (over-budget) before the first byte where the fare's cap does not reach; IntegrityError where bytes are
    not what their digest says (nothing is left under the key); else the stores' own errors. After any error or kill,
    calling again resumes.
    """
    clock = clock or SystemClock()
    begun = clock.monotonic()
    wanted = distinct(items)
    found = survey(wanted, target, streams=streams)
    cost = fare.check(found.missing_bytes) if fare else None
    tally = Tally(found, clock, progress)
    missing, complete = found.missing, False
    for last in (False, False, True):
        units = _units(missing, source, target, tally, part_bytes, streams, shared, storage_class)
        try:
            complete = _Streams(units, cancelled or (lambda: False)).run(streams)
            break
        except IntegrityError as error:
            # Damaged on the way, while the source is sound: the wrong object is gone again, bring it once more.
            if last or error.context.get("source_damaged") is not False:
                raise
            missing = survey(missing, target, streams=streams).missing
    if complete:
        for document in documents:
            _write_document(document, target)
    return Receipt(
        source=source.url,
        target=target.url,
        set_digest=set_digest(wanted),
        items=len(wanted),
        bytes=sum(item.size for item in wanted),
        sent_items=tally.sent_items,
        sent_bytes=tally.sent_bytes,
        present_items=len(found.present),
        present_bytes=sum(item.size for item in found.present),
        resumed_bytes=tally.resumed_bytes,
        read_back_bytes=tally.read_back_bytes,
        documents=tuple(document.key for document in documents) if complete else (),
        seconds=clock.monotonic() - begun,
        complete=complete,
        cost=cost,
    )


def _units(
    missing: Sequence[Item],
    source: Store,
    target: Store,
    tally: Tally,
    part_bytes: int,
    streams: int,
    shared: bool,
    storage_class: str | None,
) -> Iterator[Unit]:
    """Yield the work in order: the parts of large objects first, since they take longest to finish."""
    # The kernel copies files between folders so fast that parts are worth their bookkeeping only from a larger size.
    local = source.path("any") is not None and target.path("any") is not None
    whole = _PARTS_LOCAL * part_bytes if local else part_bytes
    large = [item for item in missing if item.size > whole]
    small = [item for item in missing if item.size <= whole]
    for item in large:
        moving = LargeObject(item, source, target, tally, part_bytes, storage_class)
        yield from moving.units(look_again=shared)
    most = _GROUP_OBJECTS_REMOTE if target.path("any") is None else _GROUP_OBJECTS_LOCAL
    if not local:  # every stream shall have work, since most of it is waiting
        most = min(most, max(_GROUP_OBJECTS_REMOTE, len(small) // (2 * streams)))
    for group in _groups(small, most, _GROUP_BYTES_LOCAL if local else _GROUP_BYTES):
        yield lambda group=group: move_group(group, source, target, tally, shared, storage_class)  # type: ignore[misc]


def _groups(items: Sequence[Item], most: int, most_bytes: int) -> Iterator[tuple[Item, ...]]:
    group: list[Item] = []
    size = 0
    for item in items:
        if group and (len(group) >= most or size + item.size > most_bytes):
            yield tuple(group)
            group, size = [], 0
        group.append(item)
        size += item.size
    if group:
        yield tuple(group)


class _Streams:
    """Threads that take units from one iterator, in order, until it ends, one fails, or all is cancelled."""

    def __init__(self, units: Iterator[Unit], cancelled: Callable[[], bool]) -> None:
        self._units, self._cancelled = units, cancelled
        self._lock = threading.Lock()
        self._stopped = self._was_cancelled = False
        self._failures: list[BaseException] = []

    def run(self, streams: int) -> bool:
        """Work until the end; return false where it was cancelled. Raises the first failure."""
        threads = [threading.Thread(target=self._work, name=f"handoff-{n}", daemon=True) for n in range(streams - 1)]
        for thread in threads:
            thread.start()
        try:
            self._work()
        finally:
            self._stopped = True
            for thread in threads:
                thread.join()
        if self._failures:
            raise self._failures[0]
        return not self._was_cancelled

    def _work(self) -> None:
        try:
            while (unit := self._next()) is not None:
                unit()
        except BaseException as error:
            self._stopped = True
            self._failures.append(error)

    def _next(self) -> Unit | None:
        with self._lock:
            if self._stopped:
                return None
            if self._cancelled():
                self._stopped = self._was_cancelled = True
                return None
            return next(self._units, None)


def _write_document(document: Document, target: Store) -> None:
    try:
        target.put(document.key, document.data, create=True)
    except ConflictError:
        if target.get(document.key) != document.data:
            raise
