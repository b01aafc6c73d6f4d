"""Every MUST of storage.objects.interface, over every driver, server and wrapper.

A promise that a store declares not to keep must be refused by name; one that it declares must hold.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regions.errors import (
    CapabilityError,
    ConflictError,
    InputError,
    IntegrityError,
    NightrelayError,
    NotFoundError,
    NotReadyError,
)
from storage.objects import FileRange, Part, Store

PART = 5 << 20  # S3's smallest part
KEYS = ["plain", "deep/er/key", "space and +plus", "ünïcode/日本", "quote'\"&<>", "per%20cent", "~tilde-._", "a=b?c#d"]


def uploaded(
    store: Store, key: str, data: bytes, order: Callable[[list[int]], list[int]] = list
) -> tuple[str, list[Part]]:
    upload = store.open_upload(key, size=len(data), part_size=PART)
    numbers = list(range(1, -(-len(data) // PART) + 1))
    parts = {n: store.put_part(key, upload, n, memoryview(data)[(n - 1) * PART : n * PART]) for n in order(numbers)}
    return upload, [parts[n] for n in numbers]


@pytest.mark.parametrize("key", KEYS)
def test_what_is_put_is_there_whole_under_any_key(store: Store, key: str) -> None:
    stat = store.put(key, b"some bytes")
    assert (stat.key, stat.size) == (key, 10)
    assert store.get(key) == b"some bytes"
    seen = store.head(key)
    assert (seen.key, seen.size, seen.version) == (key, 10, stat.version)
    assert abs((seen.modified - datetime.now(UTC)).total_seconds()) < 120
    assert [found.key for found in store.list()] == [key]
    store.delete(key)
    assert list(store.list()) == []


@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_001])
def test_bodies_of_any_kind_and_size(store: Store, size: int, tmp_path: Path) -> None:
    data = os.urandom(size)
    path = tmp_path / "source"
    path.write_bytes(b"skip" + data + b"more")
    with path.open("rb") as file:
        for number, body in enumerate((data, bytearray(data), memoryview(data), FileRange(file.fileno(), 4, size))):
            store.put(f"k{number}", body)
            assert store.get(f"k{number}") == data
            buffer = memoryview(bytearray(size))
            store.fetch(f"k{number}", buffer)
            assert buffer == data


def test_ranges_are_exact_or_refused(store: Store) -> None:
    data = bytes(range(256)) * 40
    version = store.put("k", data).version
    for start, size in [(0, 1), (0, 256), (5, 1000), (10_239, 1), (10_000, None), (0, None), (10_240, 0), (3, 0)]:
        end = len(data) if size is None else start + size
        assert store.get("k", start=start, size=size) == data[start:end]
        assert store.get("k", start=start, size=size, version=version) == data[start:end]
    for start, size in [(0, 10_241), (10_240, 1), (10_000, 241), (99_999, 5), (99_999, None)]:
        with pytest.raises(IntegrityError):
            store.get("k", start=start, size=size)


def test_reads_are_pinned_to_a_version(store: Store) -> None:
    first = store.put("k", b"one" * 1000).version
    assert store.get("k", version=first) == b"one" * 1000
    second = store.put("k", b"two" * 1000).version
    assert first != second
    for start, size in [(0, None), (0, 3000), (5, 10)]:
        with pytest.raises(ConflictError):
            store.get("k", start=start, size=size, version=first)
    assert store.get("k", start=3, size=3, version=second) == b"two"


def test_what_is_missing_is_named(store: Store) -> None:
    for attempt in (
        lambda: store.head("no/such"),
        lambda: store.get("no/such"),
        lambda: store.get("no/such", start=3, size=4),
        lambda: store.parts("no/such", "0" * 32),
    ):
        with pytest.raises(NotFoundError) as caught:
            attempt()
        assert "no/such" in str(caught.value)
    store.put("no/such/child", b"x")
    with pytest.raises(NotFoundError):
        store.head("no/such")
    store.delete("never/there")
    store.abort("never/there", uuid.uuid4().hex)


def test_create_only_or_refused_by_name(store: Store) -> None:
    if not store.capabilities.create_only:
        with pytest.raises(CapabilityError, match="create_only"):
            store.put("k", b"x", create=True)
        return
    store.put("k", b"first", create=True)
    for body in (b"second", b"first"):
        with pytest.raises(ConflictError, match="k"):
            store.put("k", body, create=True)
    assert store.get("k") == b"first"
    store.delete("k")
    store.put("k", b"third", create=True)
    assert store.get("k") == b"third"


def test_one_creator_wins_a_race(store: Store) -> None:
    if not store.capabilities.create_only:
        pytest.skip("declared: no create-only")
    for key in ("r1", "r2", "r3"):
        wins: list[int] = []
        gate = threading.Barrier(6)

        def race(number: int, key: str = key, wins: list[int] = wins, gate: threading.Barrier = gate) -> None:
            gate.wait()
            try:
                store.put(key, b"%d" % number, create=True)
            except (ConflictError, NightrelayError):
                return
            wins.append(number)

        threads = [threading.Thread(target=race, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1
        assert store.get(key) == b"%d" % wins[0]


def test_compare_and_swap_or_refused_by_name(store: Store) -> None:
    version = store.put("k", b"one").version
    if not store.capabilities.if_match:
        with pytest.raises(CapabilityError, match="if_match"):
            store.put("k", b"two", if_match=version)
        assert store.get("k") == b"one"
        return
    second = store.put("k", b"two", if_match=version).version
    with pytest.raises(ConflictError):
        store.put("k", b"three", if_match=version)
    with pytest.raises(ConflictError):
        store.put("other", b"x", if_match=version)
    assert store.get("k") == b"two"
    assert store.head("k").version == second


def test_conditional_delete(store: Store) -> None:
    first = store.put("k", b"one").version
    second = store.put("k", b"two").version
    with pytest.raises(ConflictError):
        store.delete("k", if_match=first)
    assert store.get("k") == b"two"
    store.delete("k", if_match=second)
    with pytest.raises(NotFoundError):
        store.head("k")
    with pytest.raises(ConflictError):
        store.delete("k", if_match=second)


def test_put_many(store: Store) -> None:
    objects = [(f"many/{n % 3}/{n:03d}", bytes([n]) * (n * 100)) for n in range(40)]
    stats = store.put_many(objects)
    assert [(stat.key, stat.size) for stat in stats] == [(key, len(data)) for key, data in objects]
    for key, data in objects:
        assert store.get(key) == data
    assert store.put_many([]) == ()


def test_replacing_is_atomic_for_readers(store: Store) -> None:
    sizes = {b"a": 200_000, b"b": 50_000}
    store.put("k", b"a" * sizes[b"a"])
    done = threading.Event()
    wrong: list[str] = []

    def read() -> None:
        while not done.is_set():
            data = store.get("k")
            if data != data[:1] * sizes[data[:1]]:
                wrong.append(f"{len(data)} bytes of {set(data)}")

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20):
        name = b"ab"[number % 2 : number % 2 + 1]
        store.put("k", name * sizes[name])
    done.set()
    reader.join()
    assert wrong == []


def test_uploads_are_invisible_until_complete_and_resume(store: Store) -> None:
    data = os.urandom(2 * PART + 12_345)
    upload = store.open_upload("big", size=len(data), part_size=PART)
    last = store.put_part("big", upload, 3, memoryview(data)[2 * PART :])
    first = store.put_part("big", upload, 1, b"\0" * PART)
    with pytest.raises(NotFoundError):
        store.head("big")
    assert list(store.list()) == []
    assert [(found.key, found.upload) for found in store.uploads()] == [("big", upload)]
    assert [(part.number, part.size) for part in store.parts("big", upload)] == [(1, PART), (3, 12_345)]
    with pytest.raises(IntegrityError):
        store.complete("big", upload, [first, last])
    first = store.put_part("big", upload, 1, memoryview(data)[:PART])  # again: replaces
    second = store.put_part("big", upload, 2, memoryview(data)[PART : 2 * PART])
    assert store.parts("big", upload) == (first, second, last)
    stat = store.complete("big", upload, store.parts("big", upload))
    assert stat.size == len(data)
    assert store.get("big") == data
    assert store.get("big", start=PART - 3, size=6, version=stat.version) == data[PART - 3 : PART + 3]
    assert list(store.uploads()) == []
    with pytest.raises(NotFoundError):
        store.parts("big", upload)


def test_aborted_uploads_leave_nothing(store: Store) -> None:
    data = os.urandom(PART + 1)
    upload, _ = uploaded(store, "folder/big", data, order=lambda numbers: numbers[::-1])
    assert list(store.uploads("other/")) == []
    assert len(list(store.uploads("folder/"))) == 1
    store.abort("folder/big", upload)
    store.abort("folder/big", upload)
    assert list(store.uploads()) == []
    with pytest.raises(NotFoundError):
        store.parts("folder/big", upload)
    assert list(store.list()) == []


def test_complete_create_only_or_refused_by_name(store: Store) -> None:
    store.put("big", b"first")
    upload, parts = uploaded(store, "big", os.urandom(PART + 1))
    expected = ConflictError if store.capabilities.create_only_upload else CapabilityError
    with pytest.raises(expected):
        store.complete("big", upload, parts, create=True)
    assert store.get("big") == b"first"
    store.abort("big", upload)


def test_copies_stay_inside_and_pin_their_source(store: Store) -> None:
    version = store.put("a", b"body" * 100).version
    stat = store.copy("a", "b/copy", source_version=version)
    assert (stat.key, stat.size) == ("b/copy", 400)
    assert store.get("b/copy") == b"body" * 100
    with pytest.raises(ConflictError):
        store.copy("a", "c", source_version="0" * 32)
    with pytest.raises(NotFoundError):
        store.copy("none", "c")
    with pytest.raises(NotFoundError):
        store.head("c")


def test_classes_are_kept_or_refused_by_name(store: Store) -> None:
    store.put("k", b"x" * 100)
    colder = "IA" if store.url.startswith("oss") else "STANDARD_IA"
    if not store.capabilities.classes:
        with pytest.raises(CapabilityError):
            store.set_class("k", colder)
        return
    assert store.put("cold", b"y", storage_class=colder).size == 1
    assert store.head("cold").storage_class == colder
    assert store.copy("cold", "copied").storage_class == colder  # a copy keeps the class
    assert store.set_class("k", colder).storage_class == colder
    assert {stat.key: stat.storage_class for stat in store.list()} == dict.fromkeys(("k", "cold", "copied"), colder)
    assert store.get("k") == b"x" * 100


def test_frozen_objects_say_so(store: Store) -> None:
    if not store.capabilities.restore:
        with pytest.raises(CapabilityError):
            store.restore("k", days=1)
        return
    frozen = "Archive" if store.url.startswith("oss") else "GLACIER"
    store.put("k", b"asleep", storage_class=frozen)
    assert store.head("k").access == "frozen"
    with pytest.raises(NotReadyError):
        store.get("k")
    assert store.restore("k", days=2).access in ("restoring", "ready")
    store.restore("k", days=2)
    if store.head("k").access == "ready":
        assert store.get("k") == b"asleep"


def test_listing_is_by_folder_in_byte_order(store: Store) -> None:
    keys = ["run-1/a", "run-1/b/c", "run-10/a", "run-100/a", "run-1-x/a", "z", "run-1/ä", "run-1/B"]
    for key in keys:
        store.put(key, b"x")
    assert [stat.key for stat in store.list()] == sorted(keys, key=str.encode)
    inside = [key for key in sorted(keys, key=str.encode) if key.startswith("run-1/")]
    assert [stat.key for stat in store.list("run-1/")] == inside
    assert list(store.list("none/")) == []
    for prefix in ("run-1", "run", "z"):
        with pytest.raises(InputError, match="/"):
            list(store.list(prefix))
        with pytest.raises(InputError):
            list(store.uploads(prefix))


def test_long_listings_are_whole(store: Store) -> None:
    keys = [f"n/{number:05d}" for number in range(1203)]
    store.put_many([(key, b"") for key in keys])
    assert [stat.key for stat in store.list("n/")] == keys


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", "../a", "a/../b", ".", "a\nb", "a\\b", "x" * 1025, "a/.part-x"]
)
def test_keys_that_could_mean_two_things_are_refused(store: Store, key: str) -> None:
    for attempt in (lambda: store.put(key, b""), lambda: store.get(key), lambda: store.delete(key)):
        with pytest.raises(InputError):
            attempt()


def test_many_threads_share_a_store(store: Store) -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        for step in range(5):
            data = f"{number}-{step}".encode() * 500
            store.put(f"t/{number}", data)
            if store.get(f"t/{number}") != data:
                wrong.append(f"{number}-{step}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_second_store_sees_what_the_first_wrote(store: Store) -> None:
    assert list(store.list("x/")) == []
    store.put("x/k", b"1")
    assert [stat.size for stat in store.list("x/")] == [1]
    store.put("x/k", b"22")
    assert [stat.size for stat in store.list("x/")] == [2]
    assert store.head("x/k").size == 2


def test_closing_is_harmless(store: Store) -> None:
    store.put("k", b"x")
    store.close()
    store.close()
    assert store.get("k") == b"x"
