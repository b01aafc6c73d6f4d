"""Commit, find and restore checkpoints in one store.

Begin: a note says what is being saved, so that a save that never ends can be told from none. Put: the chunks that the
store lacks, verified. Commit: the record, last, smallest and create-only. Whoever is killed before that leaves a note
and some chunks, never a checkpoint. Rule and alternatives: docs/decisions/0403.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from regions.clock import Clock, SystemClock
from regions.errors import ConflictError, IntegrityError, NightrelayError, NotFoundError
from storage.checkpoints.folder import entries
from storage.checkpoints.reading import verified_chunk
from storage.checkpoints.record import Record, begun_folder_of, canonical, folder_of, name_of
from storage.objects import ChunkRef, Stat, Store, chunk_of
from storage.objects.interface import require

_THREADS = 4
_TOGETHER = 16 << 20
"""Bytes handed to the store at once: a local disk flushes them together."""

FRESH = timedelta(hours=1)
"""A chunk written this recently is not collected: far below the grace of storage.checkpoints.collecting."""

Fence = Callable[[], None]
"""Raises FencedError where a newer term stands. Called right before the record is written."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A checkpoint that was passed over, and why."""

    key: str
    step: int
    term: int
    reason: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store holds of a stage: committed checkpoints, newest first, and what is not one, with its reason."""

    records: tuple[Record, ...]
    passed: tuple[Passed, ...]


def commit(
    store: Store,
    folder: Path,
    *,
    run: str,
    stage: str,
    step: int,
    term: int,
    samples: int,
    epoch: int = 0,
    seed: int = 0,
    dataset: str | None = None,
    fingerprint: Mapping[str, Any] | None = None,
    metrics: Mapping[str, float] | None = None,
    parent: str | None = None,
    at: datetime | None = None,
    fence: Fence | None = None,
    clock: Clock | None = None,
) -> Record:
    """Make a folder a committed checkpoint; return its record. Committing the same again changes nothing.

    CapabilityError where the store cannot create without replacing; ConflictError where another checkpoint stands
    under this step and term; IntegrityError where the folder changes meanwhile. The folder is only read. A metric that
    is not finite is left out: JSON has no word for it.
    """
    require(store, "create_only", "commit checkpoints")
    record = Record(
        run=run,
        stage=stage,
        step=step,
        term=term,
        samples=samples,
        files=entries(folder),
        epoch=epoch,
        seed=seed,
        dataset=dataset,
        fingerprint=dict(fingerprint or {}),
        metrics={name: value for name, value in (metrics or {}).items() if math.isfinite(value)},
        parent=parent,
        at=at,
    )
    with _step_named(record):
        return _write(store, folder, record, fence, (clock or SystemClock()).real() - FRESH)


@contextlib.contextmanager
def _step_named(record: Record) -> Iterator[None]:
    """Whatever goes wrong, its message says of which step: it may be read long after."""
    try:
        yield
    except NightrelayError as error:
        error.message = f"step {record.step} of stage {record.stage} was not committed: {error.message}"
        error.args = (error.message,)
        raise


def _write(store: Store, folder: Path, record: Record, fence: Fence | None, fresh: datetime) -> Record:
    """Note, chunks, fence, record: in this order."""
    note = f"{begun_folder_of(record.run, record.stage)}{name_of(record.step, record.term)}"
    store.put(note, canonical({"files": len(record.files), "bytes": record.size}))
    _put_missing(store, folder, record, fresh)
    if fence is not None:
        fence()
    try:
        store.put(record.key, record.data, create=True)
    except ConflictError:
        standing = Record.parse(store.get(record.key), record.key)
        if (standing.content, standing.samples) != (record.content, record.samples):
            raise ConflictError(
                f"{store.url}/{record.key} is another checkpoint of the same step and term; it stays as it is. "
                "Resume from it, or let a new leg (a new term) commit this step",
                kind="checkpoint-exists",
            ) from None
        record = standing
    store.delete(note)
    return record


def survey(store: Store, run: str, stage: str) -> Survey:
    """Return the committed checkpoints of a stage, newest step and term first, and what was passed over."""
    found: list[Record] = []
    passed: list[Passed] = []
    folder = folder_of(run, stage)
    for stat in store.list(folder):
        step, term = _numbers(stat.key)
        try:
            found.append(Record.parse(store.get(stat.key), stat.key))
        except IntegrityError as error:
            passed.append(Passed(stat.key, step, term, error.message))
        except NotFoundError:  # retired between listing and reading
            continue
    committed = {(record.step, record.term) for record in found}
    for stat in store.list(begun_folder_of(run, stage)):
        step, term = _numbers(stat.key)
        if (step, term) not in committed:
            reason = f"step {step} was begun under term {term} and never committed: its record is not there"
            passed.append(Passed(stat.key, step, term, reason))
    found.sort(key=lambda record: (record.step, record.term), reverse=True)
    passed.sort(key=lambda each: (each.step, each.term), reverse=True)
    return Survey(tuple(found), tuple(passed))


def records(store: Store, run: str, stage: str) -> tuple[Record, ...]:
    """Return the committed checkpoints of a stage, newest step and term first."""
    return survey(store, run, stage).records


def newest(store: Store, run: str, stage: str) -> tuple[Record | None, tuple[Passed, ...]]:
    """Return the newest checkpoint whose parts are all there, and each newer one with why it was passed over."""
    found = survey(store, run, stage)
    passed = list(found.passed)
    for record in found.records:
        missing = missing_chunks(store, record)
        if not missing:
            return record, tuple(each for each in passed if (each.step, each.term) > (record.step, record.term))
        reason = f"{len(missing)} of its {len(record.chunks)} chunks are missing or cut, the first is {missing[0].key}"
        passed.append(Passed(record.key, record.step, record.term, reason))
    return None, tuple(passed)


def missing_chunks(store: Store, record: Record) -> tuple[ChunkRef, ...]:
    """Return the chunks of a checkpoint that a store lacks, plain and packed, or has with a wrong size."""
    with ThreadPoolExecutor(_THREADS) as pool:
        there = pool.map(lambda chunk: _found(store, chunk) or _found_packed(store, chunk), record.chunks)
        return tuple(chunk for chunk, found in zip(record.chunks, there, strict=True) if not found)


def _put_missing(store: Store, folder: Path, record: Record, fresh: datetime) -> None:
    """Put every chunk the store lacks, some at a time, and prove that it has them.

    A chunk that is there is relied on only if it cannot be collected before the record stands: because the newest
    checkpoint has it as well, or because it was written since `fresh`. Any other is written again, which renews it.
    """
    newest = records(store, record.run, record.stage)[:1]
    live = {chunk for each in newest for chunk in each.chunks}

    def relied_on(chunk: ChunkRef) -> bool:
        found = _found(store, chunk)
        return found is not None and (chunk in live or found.modified > fresh)

    with ThreadPoolExecutor(_THREADS) as pool:
        there = pool.map(relied_on, record.chunks)
        wanted = {chunk for chunk, relied in zip(record.chunks, there, strict=True) if not relied}
        putting: list[Future[None]] = []
        for group in _groups(folder, record, wanted):
            putting.append(pool.submit(_put_group, store, group))
            if len(putting) >= _THREADS:
                putting.pop(0).result()
        for each in putting:
            each.result()


def _groups(folder: Path, record: Record, wanted: set[ChunkRef]) -> Iterator[list[tuple[ChunkRef, bytes]]]:
    """Read the wanted chunks, each once, in groups of about _TOGETHER bytes."""
    group: list[tuple[ChunkRef, bytes]] = []
    size = 0
    for entry in record.files:
        with (folder / entry.path).open("rb") as file:
            for chunk, end in zip(entry.chunks, accumulate(chunk.size for chunk in entry.chunks), strict=True):
                if chunk not in wanted:
                    continue
                wanted.discard(chunk)
                data = os.pread(file.fileno(), chunk.size, end - chunk.size)
                if chunk_of(data) != chunk:
                    raise IntegrityError(f"{folder / entry.path} changed while it was being saved: save it again")
                group.append((chunk, data))
                size += chunk.size
                if size >= _TOGETHER:
                    yield group
                    group, size = [], 0
    yield group


def _put_group(store: Store, group: list[tuple[ChunkRef, bytes]]) -> None:
    store.put_many([(chunk.key, data) for chunk, data in group])
    if store.capabilities.wire_checksum:
        return  # the store has refused damaged bytes itself
    for chunk, _ in group:
        verified_chunk(store, chunk)


def _found(store: Store, chunk: ChunkRef) -> Stat | None:
    """What the store says of a chunk; None where it is missing or of another size."""
    try:
        stat = store.head(chunk.key)
    except NotFoundError:
        return None
    return stat if stat.size == chunk.size else None


def _found_packed(store: Store, chunk: ChunkRef) -> bool:
    from storage.checkpoints.packing import packed_key  # rarely needed, and it brings pyarrow

    try:
        return store.head(packed_key(chunk.digest)).size > 0
    except NotFoundError:
        return False


def _numbers(key: str) -> tuple[int, int]:
    """The step and term that a record's or note's name says; -1 for a name that says none."""
    step, _, term = key.rpartition("/")[2].removesuffix(".json").partition("-")
    return (int(step), int(term)) if step.isdigit() and term.isdigit() else (-1, -1)
