"""Reclaims the space of what no record refers to: retired checkpoints, killed saves, copies without a record.

Nothing younger than `grace` goes, whatever it looks like: a save under way, or a copy made by hand whose record is
still to come, is told from rubbish by nothing but its age. Each chunk is deleted only in the version that was judged,
and a commit renews what it relies on, so the two may run at the same time (docs/decisions/0403).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from regions.errors import ConflictError, InputError, IntegrityError
from storage.checkpoints.packing import PACKED, base_of
from storage.checkpoints.record import Record
from storage.checkpoints.store import FRESH
from storage.objects import Stat, Store
from storage.objects.chunks import CHUNKS, digest_in

GRACE = timedelta(days=1)
"""How long what nothing refers to is kept."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection deleted, and what it left although nothing refers to it: `uncommitted` is too young to go."""

    deleted: tuple[str, ...]
    bytes: int
    uncommitted: tuple[Stat, ...]


def collect(store: Store, *, now: datetime, grace: timedelta = GRACE, live: Collection[str] = ()) -> Collected:
    """Delete chunks and notes that no record needs and that are older than `grace` on the store's clock.

    `live` are digests of chunks that something other than a checkpoint refers to. A record that cannot be read stops
    the collection (IntegrityError): what it refers to cannot be known. `now` is a real instant.
    """
    if grace < 2 * FRESH:
        raise InputError(
            f"a grace of {grace}: expected at least {2 * FRESH}, or a running save could be hurt", kind="grace"
        )
    chunks = list(store.list(CHUNKS))  # before the records: a chunk that is newer than this list is not judged at all
    records, notes = _documents(store)
    needed = set(live).union(*({chunk.digest for chunk in record.chunks} for record in records))
    done = {record.key.replace("/checkpoints/", "/begun/") for record in records}
    packed = list(store.list(PACKED))
    needed |= {base for stat in packed if _name(stat) in needed and (base := base_of(store, _name(stat))) is not None}
    unused = [stat for stat in chunks if (digest := digest_in(stat.key)) is not None and digest not in needed]
    unused += [stat for stat in packed if _name(stat) not in needed]
    unused += [stat for stat in notes if stat.key not in done or stat.modified < now - grace]
    old = [stat for stat in unused if stat.modified < now - grace]
    deleted = [stat for stat in old if _deleted(store, stat)]
    young = tuple(stat for stat in unused if stat not in set(old))
    return Collected(tuple(stat.key for stat in deleted), sum(stat.size for stat in deleted), young)


def _documents(store: Store) -> tuple[list[Record], list[Stat]]:
    """Every record of every run, and every note of a save that has begun."""
    records, notes = [], []
    for stat in store.list("runs/"):
        kind = stat.key.split("/")[3:4]
        if kind == ["checkpoints"]:
            try:
                records.append(Record.parse(store.get(stat.key), stat.key))
            except FileNotFoundError:  # retired meanwhile
                continue
            except IntegrityError as error:
                raise IntegrityError(
                    f"nothing is collected in {store.url}: {error.message}; restore or delete that record first",
                    kind="record-damaged",
                ) from error
        elif kind == ["begun"]:
            notes.append(stat)
    return records, notes


def _name(stat: Stat) -> str:
    return stat.key.rpartition("/")[2]


def _deleted(store: Store, stat: Stat) -> bool:
    try:
        store.delete(stat.key, if_match=stat.version)
    except ConflictError:  # renewed since it was judged: somebody needs it
        return False
    return True
