"""P16: the answer that got lost. A write that landed without its reply counts once, a true conflict stays one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from regions.errors import ConflictError, StoreUnavailable
from storage.handoff import Document, handoff
from storage.objects.credentials import Credential
from storage.objects.memory import MemoryStore
from storage.objects.oss import open_oss
from storage.objects.retrying import Retrying, RetryPolicy
from tests.storage.test_handoff import fill
from tests.support.fault_proxy import FaultProxy, fault_proxy, nothing
from tests.support.oss_server import OssServer, oss_server


@pytest.fixture
def place() -> Iterator[tuple[OssServer, FaultProxy, Retrying]]:
    with oss_server() as server, fault_proxy(server.endpoint) as proxy:
        store = open_oss(
            f"oss://{server.make_bucket()}/site",
            endpoint=proxy.endpoint,
            region="loop-1",
            credentials=lambda: Credential("access", "secret"),
        )
        _ = store.capabilities
        yield server, proxy, Retrying(store, RetryPolicy(attempts=4, first_pause=0.001))


def puts_lose_their_reply(times: int) -> tuple[list[str], object]:
    lost: list[str] = []

    def plan(seen: int, method: str, target: str) -> str | None:
        if method == "PUT" and "record" in target and len(lost) < times:
            lost.append(target)
            return "lost"
        return None

    return lost, plan


@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_whose_reply_was_lost_is_a_success_once(
    place: tuple[OssServer, FaultProxy, Retrying], times: int
) -> None:
    _, proxy, store = place
    lost, proxy.plan = puts_lose_their_reply(times)  # type: ignore[assignment]
    source = MemoryStore()
    items = fill(source, [1000, 2000])
    receipt = handoff(items, [Document("record", b"mine")], source, store)
    assert len(lost) == times
    assert receipt.complete and receipt.documents == ("record",)
    assert store.get("record") == b"mine"
    again = handoff(items, [Document("record", b"mine")], source, store)
    assert again.sent_bytes == 0


def test_every_reply_lost_is_named_and_the_next_attempt_succeeds(
    place: tuple[OssServer, FaultProxy, Retrying],
) -> None:
    _, proxy, store = place
    _, proxy.plan = puts_lose_their_reply(1000)  # type: ignore[assignment]
    with pytest.raises((StoreUnavailable, ConflictError)):
        store.put("record", b"mine", create=True)
    proxy.plan = nothing
    receipt = handoff((), [Document("record", b"mine")], MemoryStore(), store)
    assert receipt.documents == ("record",)


def test_a_true_conflict_stays_one(place: tuple[OssServer, FaultProxy, Retrying]) -> None:
    _, proxy, store = place
    store.put("record", b"another's")
    _, proxy.plan = puts_lose_their_reply(1)  # type: ignore[assignment]
    with pytest.raises(ConflictError):
        store.put("record", b"mine", create=True)
    proxy.plan = nothing
    with pytest.raises(ConflictError):
        store.put("record", b"another's", create=True)  # equal bytes, but not ours: nothing of ours was ever sent
    assert store.get("record") == b"another's"
