"""Verifying, metering and limiting: what each adds to the store it wraps (what they keep: the conformance suite)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from regions.clock import ManualClock
from regions.errors import IntegrityError, SettingsError
from storage.objects import chunk_of
from storage.objects.limiting import HourlyRate, Limiting
from storage.objects.memory import MemoryStore
from storage.objects.metering import Metering, Usage
from storage.objects.verifying import Verifying

START = datetime(2026, 12, 1, 13, 0, tzinfo=UTC)  # 21:00 in Shanghai


def test_a_chunk_that_is_not_its_key_is_neither_written_nor_returned() -> None:
    inner = MemoryStore()
    store, chunk = Verifying(inner), chunk_of(b"right")
    with pytest.raises(IntegrityError, match=chunk.digest):
        store.put(chunk.key, b"wrong")
    with pytest.raises(IntegrityError):
        store.put_many([(chunk.key, b"wrong")])
    assert list(inner.list()) == []
    store.put(chunk.key, b"right")
    assert store.get(chunk.key) == b"right"
    inner.put(chunk.key, b"rotte")
    with pytest.raises(IntegrityError, match="another copy"):
        store.get(chunk.key)


def test_a_meter_counts_what_a_bill_counts() -> None:
    store = Metering(MemoryStore())
    store.put("a", b"12345", storage_class="IA")
    store.put_many([("b", b"1"), ("c", b"22")])
    store.get("a")
    store.fetch("c", memoryview(bytearray(2)))
    store.head("b")
    list(store.list())
    store.delete("b")
    assert set(store.usage()) == {
        Usage("put", "IA", 1, 5, 0),
        Usage("put", "", 2, 3, 0),
        Usage("get", "", 3, 0, 7),
        Usage("list", "", 1, 0, 0),
        Usage("delete", "", 1, 0, 0),
    }


def test_a_rate_is_kept_on_average() -> None:
    clock = ManualClock(START)
    store = Limiting(MemoryStore(), rate=lambda instant: 1000.0, clock=clock)
    for number in range(5):
        store.put(f"{number}", b"x" * 500)
    assert clock.monotonic() == pytest.approx(2.0)  # the fifth begins when four have had their time
    store.get("1")
    store.fetch("2", memoryview(bytearray(500)))
    assert clock.monotonic() == pytest.approx(3.0)


def test_the_rate_changes_with_the_hour_of_the_region() -> None:
    hours = tuple(1000.0 if hour < 22 else None for hour in range(24))
    rate = HourlyRate(ZoneInfo("Asia/Shanghai"), hours)
    clock = ManualClock(START)
    store = Limiting(MemoryStore(), rate=rate, clock=clock)
    store.put("a", b"x" * 1000)
    store.put("b", b"x" * 1000)
    assert clock.monotonic() == pytest.approx(1.0)
    clock.advance(3600)
    for number in range(10):
        store.put(f"night-{number}", b"x" * 100_000)
    assert clock.monotonic() == pytest.approx(3601.0)


@pytest.mark.parametrize("hours", [(), (1.0,) * 23, (0.0,) * 24])
def test_a_plan_that_is_none_is_refused(hours: tuple[float, ...]) -> None:
    with pytest.raises(SettingsError):
        HourlyRate(ZoneInfo("UTC"), hours)
