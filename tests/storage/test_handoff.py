"""The handoff between real stores: what moves, what does not, what is left after faults, and what the receipt says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from blake3 import blake3

from regions.errors import ConflictError, IntegrityError, PlanError
from regions.money import Money
from storage.handoff import Document, Fare, Item, Progress, handoff, handoff_slice, slice_of, survey, sweep
from storage.handoff.ledger import find_entry, open_entry
from storage.objects import Store, chunk_of
from storage.objects.local import LocalStore
from storage.objects.memory import MemoryStore
from storage.objects.wrapping import Wrapper
from tests.support.s3_server import moto_server, s3_store

MIB = 1 << 20
Maker = Callable[[], Store]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def maker(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], Store]:
    counter = iter(range(1000))

    def make(kind: str) -> Store:
        if kind == "s3":
            return s3_store(request.getfixturevalue("endpoint"))
        number = next(counter)
        return LocalStore(tmp_path / f"store-{number}") if kind == "file" else MemoryStore(f"m{number}")

    return make


def fill(store: Store, sizes: list[int], seed: int = 0) -> list[Item]:
    chance = random.Random(seed)
    items = []
    for number, size in enumerate(sizes):
        data = chance.randbytes(size)
        digest = blake3(data).hexdigest()
        key = chunk_of(data).key if number % 2 else f"shards/part-{number:04d}.bin"
        store.put(key, data)
        items.append(Item(key, size, digest))
    return items


def check_equal(items: list[Item], source: Store, target: Store) -> None:
    for item in items:
        data = target.get(item.key)
        assert blake3(data).hexdigest() == item.digest
        assert data == source.get(item.key)


class Counting(Wrapper):
    """Counts the bytes written, and can break a chosen call."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.written = 0
        self.part_calls = 0
        self.break_part: int | None = None

    def put_many(self, objects, **options):  # type: ignore[no-untyped-def]
        self.written += sum(len(memoryview(body)) if not hasattr(body, "size") else body.size for _, body in objects)
        return super().put_many(objects, **options)

    def put_part(self, key, upload, number, body):  # type: ignore[no-untyped-def]
        self.part_calls += 1
        if self.part_calls == self.break_part:
            raise KeyboardInterrupt
        part = super().put_part(key, upload, number, body)
        self.written += part.size
        return part


PAIRS = [("file", "file"), ("file", "s3"), ("s3", "file"), ("s3", "s3"), ("memory", "s3"), ("file", "memory")]


@pytest.mark.parametrize(("start", "end"), PAIRS)
def test_brings_everything_and_says_so(maker: Callable[[str], Store], start: str, end: str) -> None:
    source, target = maker(start), maker(end)
    items = fill(source, [0, 1, 1000, 70_000, 3 * MIB, 21 * MIB])
    record = Document("runs/r/record.json", b'{"items": 6}')
    seen: list[Progress] = []
    receipt = handoff(items, [record], source, target, part_bytes=8 * MIB, streams=3, progress=seen.append)
    check_equal(items, source, target)
    assert target.get(record.key) == record.data
    assert (receipt.complete, receipt.sent_items, receipt.present_items) == (True, 6, 0)
    assert receipt.sent_bytes == receipt.bytes == sum(item.size for item in items)
    assert seen[-1].done_bytes == seen[-1].total_bytes == receipt.bytes
    assert seen[-1].done_items == 6
    assert list(target.uploads()) == [] and list(target.list("handoff/")) == []

    again = handoff(items, [record], source, target, part_bytes=8 * MIB)
    assert (again.sent_bytes, again.present_items, again.set_digest) == (0, 6, receipt.set_digest)


def test_only_what_is_missing_moves_and_a_wrong_object_is_replaced(maker: Callable[[str], Store]) -> None:
    source, target = maker("file"), maker("s3")
    items = fill(source, [50_000] * 40)
    handoff(items[:30], (), source, target)
    target.put(items[0].key, b"x" * 50_000)  # right size, wrong bytes, under a name that does not carry a digest
    receipt = handoff(items, (), source, target)
    assert receipt.sent_items == 11
    check_equal(items, source, target)


def test_a_kill_costs_at_most_one_part_per_stream(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), Counting(maker("s3"))
    items = fill(source, [60 * MIB])
    target.break_part = 6
    with pytest.raises(KeyboardInterrupt):
        handoff(items, [Document("record", b"r")], source, target, part_bytes=8 * MIB, streams=2)
    assert find_entry(target, items[0]) is not None
    with pytest.raises(FileNotFoundError):
        target.head("record")
    first, target.break_part = target.written, None
    receipt = handoff(items, [Document("record", b"r")], source, target, part_bytes=8 * MIB, streams=2)
    assert receipt.resumed_bytes == first
    assert target.written == 60 * MIB
    check_equal(items, source, target)
    assert list(target.uploads()) == []


def test_cancelling_keeps_what_is_done_and_writes_no_document(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), maker("file")
    items = fill(source, [30 * MIB, 1 * MIB])
    asked = iter([False, False, True, True, True])
    receipt = handoff(
        items, [Document("d", b"d")], source, target, part_bytes=8 * MIB, streams=1, cancelled=lambda: next(asked)
    )
    assert not receipt.complete and receipt.documents == () and 0 < receipt.sent_bytes < receipt.bytes
    with pytest.raises(FileNotFoundError):
        target.head("d")
    rest = handoff(items, [Document("d", b"d")], source, target, part_bytes=8 * MIB)
    assert rest.complete and rest.resumed_bytes + rest.sent_bytes == receipt.bytes
    check_equal(items, source, target)


@pytest.mark.parametrize("size", [40_000, 20 * MIB])
@pytest.mark.parametrize("kind", ["file", "s3", "memory"])
def test_a_damaged_source_is_named_and_leaves_nothing(maker: Callable[[str], Store], size: int, kind: str) -> None:
    source, target = maker("memory"), maker(kind)
    items = fill(source, [size])
    data = bytearray(source.get(items[0].key))
    data[size // 2] ^= 1
    source.put(items[0].key, bytes(data))
    with pytest.raises(IntegrityError, match="the source is damaged") as caught:
        handoff(items, [Document("d", b"d")], source, target, part_bytes=8 * MIB)
    assert items[0].digest in str(caught.value)
    assert list(target.list()) == []
    assert list(target.uploads()) == []


def test_a_document_that_differs_is_a_conflict(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), maker("file")
    target.put("record", b"another's")
    with pytest.raises(ConflictError):
        handoff((), [Document("record", b"ours")], source, target)
    handoff((), [Document("record", b"another's")], source, target)


def test_the_fare_is_known_and_capped_before_a_byte_moves(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), Counting(maker("memory"))
    items = fill(source, [1_000_000] * 4)
    price = Money(Decimal("100"), "CNY")
    with pytest.raises(PlanError, match="cap") as caught:
        handoff(items, (), source, target, fare=Fare(price, cap=Money(Decimal("0.3"), "CNY")))
    assert caught.value.kind == "over-budget" and target.written == 0
    receipt = handoff(items, (), source, target, fare=Fare(price, cap=Money(Decimal("0.4"), "CNY")))
    assert receipt.cost == Money(Decimal("0.4"), "CNY")


def test_slices_cover_the_set_once_and_idle_workers_steal(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), Counting(maker("file"))
    items = fill(source, [2000] * 60)
    parts = [slice_of(items, 3, index) for index in range(3)]
    assert sorted(item for part in parts for item in part) == sorted(items)
    receipts = handoff_slice(items, 3, 1, source, target)  # the others never start
    assert sum(receipt.sent_items for receipt in receipts) == 60
    assert target.written == 60 * 2000
    assert handoff_slice(items, 3, 0, source, target)[0].sent_items == 0
    check_equal(items, source, target)


def test_sweep_removes_what_nobody_takes_up_and_keeps_what_is_young(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), maker("file")
    (item,) = fill(source, [20 * MIB])
    open_entry(target, item, 8 * MIB)
    target.open_upload("lost", size=5, part_size=5)
    now = datetime.now(UTC)
    assert sweep(target, older_than=timedelta(hours=1), now=now) == 0
    assert sweep(target, older_than=timedelta(hours=1), now=now + timedelta(hours=2)) == 2
    assert list(target.uploads()) == [] and list(target.list()) == []


def test_survey_asks_little(maker: Callable[[str], Store]) -> None:
    source, target = maker("memory"), maker("s3")
    items = fill(source, [100] * 50)
    handoff(items[:20], (), source, target)
    found = survey(items, target)
    assert (len(found.present), len(found.missing), found.missing_bytes) == (20, 30, 3000)
