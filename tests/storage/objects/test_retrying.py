"""Retries: which faults, how long the pauses, where they end; nothing sleeps, the clock is set by hand."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.clock import ManualClock
from regions.errors import ConflictError, NightrelayError, NotFoundError, OutsideError, StoreUnavailable
from storage.objects.interface import Stat
from storage.objects.memory import MemoryStore
from storage.objects.retrying import Retrying, RetryPolicy
from storage.objects.wrapping import Wrapper


class Failing(Wrapper):
    """Raises the given errors first, one per call."""

    def __init__(self, errors: list[NightrelayError]) -> None:
        super().__init__(MemoryStore())
        self.errors, self.calls = errors, 0

    def head(self, key: str) -> Stat:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return super().head(key)


def retrying(errors: list[NightrelayError], **policy: float) -> tuple[Retrying, Failing, ManualClock]:
    clock = ManualClock(datetime(2026, 12, 1, tzinfo=UTC))
    inner = Failing(errors)
    inner.put("k", b"x")
    return Retrying(inner, RetryPolicy(**policy), clock=clock, chance=random.Random(1)), inner, clock  # type: ignore[arg-type]


@given(failures=st.integers(0, 9))
def test_transient_faults_pass(failures: int) -> None:
    store, inner, clock = retrying([StoreUnavailable("busy") for _ in range(failures)])
    assert store.head("k").size == 1
    assert inner.calls == failures + 1
    bounds = [min(10.0, 0.1 * 2.0**n) for n in range(failures)]
    assert 0 <= clock.monotonic() <= sum(bounds)


def test_the_attempts_end_and_the_last_error_is_raised() -> None:
    store, inner, _ = retrying([StoreUnavailable(f"busy {n}") for n in range(50)])
    with pytest.raises(StoreUnavailable, match="busy 9"):
        store.head("k")
    assert inner.calls == 10


def test_the_deadline_ends_them_earlier() -> None:
    store, inner, clock = retrying([StoreUnavailable("busy", retry_after=30.0) for _ in range(50)], deadline=100.0)
    with pytest.raises(StoreUnavailable):
        store.head("k")
    assert inner.calls == 4 and clock.monotonic() < 100


def test_the_servers_wish_is_honoured() -> None:
    store, _, clock = retrying([StoreUnavailable("busy", retry_after=7.0)])
    store.head("k")
    assert 7.0 <= clock.monotonic() <= 7.1


@pytest.mark.parametrize(
    "error", [NotFoundError("no"), ConflictError("no"), OutsideError("full", kind="no-space"), OutsideError("denied")]
)
def test_permanent_faults_are_the_answer(error: NightrelayError) -> None:
    store, inner, clock = retrying([error])
    with pytest.raises(type(error)):
        store.head("k")
    assert inner.calls == 1 and clock.monotonic() == 0
