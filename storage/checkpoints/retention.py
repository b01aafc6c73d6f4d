"""Which checkpoints stay: a pure decision over records, and the act that follows it.

Always kept: the newest, and whatever a baton, a tag or a person refers to. What goes is un-committed first, by
deleting its record; its chunks go later, when nothing refers to them (storage.checkpoints.collecting).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from regions.errors import InputError, NotFoundError
from storage.checkpoints.record import Record, canonical, stage_folder
from storage.objects import Store


@dataclass(frozen=True, slots=True)
class Best:
    """Keep the `n` checkpoints with the best value of a metric; those without it do not take part."""

    metric: str
    mode: Literal["min", "max"] = "min"
    n: int = 1


@dataclass(frozen=True, slots=True)
class Keep:
    """How many to keep: the `last` newest, one for each span of `every` on the run clock, the best."""

    last: int = 3
    every: timedelta | None = None
    best: Best | None = None

    def __post_init__(self) -> None:
        """Refuse what would keep nothing."""
        if self.last < 1 or (self.every is not None and self.every <= timedelta(0)):
            raise InputError(f"keep last={self.last}, every={self.every}: expected 1 or more, and a span", kind="keep")


def reasons(
    records: Sequence[Record], keep: Keep, *, tags: Mapping[str, str] | None = None, referred: Collection[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return why each kept record (by digest) is kept; the others may go. Records of one stage, in any order.

    `tags` are name -> digest; `referred` are digests that something outside needs: batons, running legs, stages
    that start from one.
    """
    newest_first = sorted(records, key=lambda record: (record.step, record.term), reverse=True)
    found: dict[str, list[str]] = {}

    def note(record: Record, reason: str) -> None:
        found.setdefault(record.digest, []).append(reason)

    for record in newest_first[: keep.last]:
        note(record, f"one of the last {keep.last}")
    for record in _one_for_each_span(newest_first, keep.every):
        note(record, f"the first within its {keep.every}")
    for record in _best(newest_first, keep.best):
        note(record, f"among the best by {keep.best.metric if keep.best else ''}")
    for record in newest_first:
        for name in sorted(name for name, digest in (tags or {}).items() if digest == record.digest):
            note(record, f"tagged {name}")
        if record.digest in referred:
            note(record, "referred to")
    return {digest: tuple(why) for digest, why in found.items()}


def retire(
    store: Store, records: Sequence[Record], keep: Keep, *, referred: Collection[str] = ()
) -> tuple[Record, ...]:
    """Un-commit what `keep` does not keep; return what was retired, oldest first. Tags are read from the store."""
    if not records:
        return ()
    kept = reasons(records, keep, tags=tags(store, records[0].run, records[0].stage), referred=referred)
    gone = sorted((each for each in records if each.digest not in kept), key=lambda each: (each.step, each.term))
    for record in gone:
        store.delete(record.key)
    return tuple(gone)


def tag(store: Store, record: Record, name: str) -> None:
    """Give a checkpoint a name; it stays until the name is taken away or given to another."""
    store.put(_tag_key(record.run, record.stage, name), canonical({"record": record.digest}))


def untag(store: Store, run: str, stage: str, name: str) -> None:
    """Take a name away. One that is not there is no error."""
    store.delete(_tag_key(run, stage, name))


def tags(store: Store, run: str, stage: str) -> dict[str, str]:
    """Return the digest of the record that each name of a stage stands for."""
    found = {}
    folder = f"{stage_folder(run, stage)}tags/"
    for stat in store.list(folder):
        try:
            found[stat.key[len(folder) :].removesuffix(".json")] = json.loads(store.get(stat.key))["record"]
        except NotFoundError:  # taken away meanwhile
            continue
    return found


def _one_for_each_span(newest_first: Sequence[Record], every: timedelta | None) -> list[Record]:
    if every is None:
        return []
    first: dict[int, Record] = {}
    for record in newest_first:  # the oldest of a span comes last and stays: it is there as soon as the span begins
        if record.at is not None:
            first[int(record.at.timestamp() // every.total_seconds())] = record
    return list(first.values())


def _best(newest_first: Sequence[Record], best: Best | None) -> list[Record]:
    if best is None:
        return []
    measured = [record for record in newest_first if best.metric in record.metrics]
    measured.sort(key=lambda record: record.metrics[best.metric], reverse=best.mode == "max")
    return measured[: best.n]


def _tag_key(run: str, stage: str, name: str) -> str:
    if not name or "/" in name:
        raise InputError(f"{name!r} cannot be a tag: expected a name without '/'", kind="tag")
    return f"{stage_folder(run, stage)}tags/{name}.json"
