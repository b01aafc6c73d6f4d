"""What stays and what goes: by count, by time, by metric, by name; and when space is reclaimed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.errors import InputError, IntegrityError
from storage.checkpoints import Record, newest, records, restore
from storage.checkpoints.collecting import GRACE, collect
from storage.checkpoints.retention import Best, Keep, reasons, retire, tag, tags, untag
from storage.objects import open_store
from tests.storage.checkpoints.saves import commit_step

START = datetime(2026, 12, 1, tzinfo=UTC)


def record(step: int, *, hours: float = 0, loss: float | None = None) -> Record:
    metrics = {} if loss is None else {"loss": loss}
    return Record("r", "s", step, 1, step, (), metrics=metrics, at=START + timedelta(hours=hours))


def steps(kept: dict[str, tuple[str, ...]], among: list[Record]) -> list[int]:
    return [each.step for each in among if each.digest in kept]


def test_the_last_by_number_not_by_name() -> None:
    among = [record(step) for step in (9, 10, 100, 11)]
    assert steps(reasons(among, Keep(last=2)), among) == [100, 11]


def test_one_for_each_span_and_the_best() -> None:
    among = [record(step, hours=step * 5, loss=abs(step - 4)) for step in range(12)]
    assert steps(reasons(among, Keep(last=1, every=timedelta(hours=24))), among) == [0, 5, 10, 11]
    assert steps(reasons(among, Keep(last=1, best=Best("loss", "min", 2))), among) == [4, 5, 11]
    assert steps(reasons(among, Keep(last=1, best=Best("loss", "max", 1))), among) == [11]
    assert steps(reasons(among, Keep(last=1, best=Best("accuracy"))), among) == [11]


def test_each_kept_one_says_why() -> None:
    among = [record(1), record(2)]
    kept = reasons(among, Keep(last=1), tags={"paper": among[0].digest}, referred={among[1].digest})
    assert kept == {among[1].digest: ("one of the last 1", "referred to"), among[0].digest: ("tagged paper",)}


@given(st.lists(st.integers(0, 50), min_size=1, unique=True), st.integers(1, 5))
def test_the_newest_always_stays(found: list[int], last: int) -> None:
    among = [record(step) for step in found]
    kept = steps(reasons(among, Keep(last=last)), among)
    assert max(found) in kept and len(kept) == min(last, len(found))


def test_keeping_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="last=0"):
        Keep(last=0)


def test_retired_checkpoints_lose_their_record_then_their_chunks(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}")
    made = [commit_step(store, tmp_path, step) for step in (10, 20, 30)]
    tag(store, made[0], "paper")
    assert tags(store, "r", "s") == {"paper": made[0].digest}
    assert retire(store, records(store, "r", "s"), Keep(last=1)) == (made[1],)
    assert records(store, "r", "s") == (made[2], made[0])

    now = datetime.now(UTC)
    young = collect(store, now=now)
    assert young.deleted == () and len(young.uncommitted) == 2
    gone = collect(store, now=now + GRACE + timedelta(minutes=1))
    only_there = {chunk.key for chunk in made[1].chunks} - {chunk.key for r in (made[0], made[2]) for chunk in r.chunks}
    assert set(gone.deleted) == only_there and gone.bytes == sum(c.size for c in made[1].chunks if c.key in only_there)
    for each in (made[0], made[2]):
        restore(store, each, tmp_path / f"back-{each.step}")
    untag(store, "r", "s", "paper")
    assert retire(store, records(store, "r", "s"), Keep(last=1)) == (made[0],)
    assert retire(store, (), Keep()) == ()


def test_what_something_else_needs_stays(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}")
    made = commit_step(store, tmp_path, 10)
    store.delete(made.key)
    live = [chunk.digest for chunk in made.chunks]
    later = datetime.now(UTC) + 2 * GRACE
    assert collect(store, now=later, live=live).deleted == ()
    assert len(collect(store, now=later).deleted) == len(made.chunks)


def test_an_unreadable_record_stops_the_collection(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}")
    made = commit_step(store, tmp_path, 10)
    store.put(made.key, b"broken")
    with pytest.raises(IntegrityError, match="nothing is collected"):
        collect(store, now=datetime.now(UTC) + 2 * GRACE)
    with pytest.raises(InputError, match="a grace of"):
        collect(store, now=datetime.now(UTC), grace=timedelta(minutes=1))


def test_a_commit_renews_what_a_collection_has_already_judged(tmp_path: Path) -> None:
    """The race: a chunk nothing refers to is old and about to go, while a save that needs it is under way."""
    store = open_store(f"memory://{tmp_path.name}")
    first = commit_step(store, tmp_path, 10)
    store.delete(first.key)
    later = datetime.now(UTC) + 2 * GRACE

    class Late:
        """Stands for the store's clock a day later, as the commit sees it."""

        def real(self) -> datetime:
            return later

    judged = {stat.key: stat.version for stat in store.list("chunks/")}
    commit_step(store, tmp_path, 10, term=2, clock=Late())
    assert all(store.head(key).version != version for key, version in judged.items())
    assert newest(store, "r", "s")[0] is not None
