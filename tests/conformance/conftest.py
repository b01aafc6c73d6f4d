"""The stores that the suite runs over: every driver, every server that can be had, every wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage.objects import Store, open_store
from storage.objects.credentials import Credential
from storage.objects.limiting import Limiting
from storage.objects.local import LocalStore
from storage.objects.memory import MemoryStore
from storage.objects.metering import Metering
from storage.objects.retrying import Retrying
from storage.objects.verifying import Verifying
from tests.support.ceph import ceph_server
from tests.support.oss_server import oss_server
from tests.support.s3_server import moto_server, s3_store

WRAPPERS: dict[str, Callable[[Store], Store]] = {
    "verifying": Verifying,
    "metering": Metering,
    "retrying": Retrying,
    "limiting": lambda inner: Limiting(inner, rate=lambda instant: 1e12, at_once=4),
}
STORES = ("memory", "file", "moto", "oss", "ceph", *WRAPPERS)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def oss_store() -> Iterator[Callable[[], Store]]:
    with oss_server() as server:

        def make() -> Store:
            url = f"oss://{server.make_bucket()}/site"
            return open_store(
                url, endpoint=server.endpoint, region="loop-1", credentials=lambda: Credential("access", "secret")
            )

        yield make


@pytest.fixture(scope="session")
def ceph_store() -> Iterator[Callable[[], Store]]:
    with ceph_server() as server:
        yield lambda: server.store()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of its own, empty."""
    kind = request.param
    if kind == "memory":
        return MemoryStore()
    if kind == "file":
        return LocalStore(tmp_path / "site")
    if kind == "moto":
        return s3_store(request.getfixturevalue("moto_endpoint"))
    if kind in ("oss", "ceph"):
        made: Store = request.getfixturevalue(f"{kind}_store")()
        return made
    return WRAPPERS[kind](LocalStore(tmp_path / "site"))
