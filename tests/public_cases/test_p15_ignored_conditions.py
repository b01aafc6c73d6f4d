"""P15: a store that accepts and ignores conditions. It is found out, and a commit there is refused by name."""

from __future__ import annotations

import threading

import pytest

from regions.errors import CapabilityError, ConflictError
from storage.objects import Store, open_store
from storage.objects.credentials import Credential
from tests.support.oss_server import OssServer, oss_server


def opened(server: OssServer, bucket: str) -> Store:
    return open_store(
        f"oss://{bucket}/site",
        endpoint=server.endpoint,
        region="loop-1",
        credentials=lambda: Credential("access", "secret"),
    )


def both_commit(first: Store, second: Store, key: str) -> list[str]:
    """Two coordinators add themselves to the same list at the same moment, each by the rule: create-only, then read."""
    gate = threading.Barrier(2)
    outcomes: dict[str, str] = {}

    def commit(name: str, store: Store) -> None:
        gate.wait()
        try:
            store.put(key, name.encode(), create=True)
            outcomes[name] = "success"
        except (ConflictError, CapabilityError) as error:
            outcomes[name] = error.kind

    threads = [threading.Thread(target=commit, args=pair) for pair in (("a", first), ("b", second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes.values())


def test_a_server_that_keeps_conditions_lets_one_win() -> None:
    with oss_server() as server:
        bucket = server.make_bucket()
        first, second = opened(server, bucket), opened(server, bucket)
        for number in range(50):
            assert both_commit(first, second, f"commit-{number}") == ["conflict", "success"]


def test_a_server_that_ignores_them_is_refused_before_anything_is_lost() -> None:
    with oss_server(ignores_conditions=True) as server:
        bucket = server.make_bucket()
        first, second = opened(server, bucket), opened(server, bucket)
        assert not first.capabilities.create_only and not first.capabilities.if_match
        for number in range(50):
            assert both_commit(first, second, f"commit-{number}") == ["capability", "capability"]
        assert list(first.list("commit/")) == []
        with pytest.raises(CapabilityError, match="create_only"):
            first.put("k", b"x", create=True)
        with pytest.raises(CapabilityError, match="if_match"):
            first.put("k", b"x", if_match="0" * 32)
