"""The crash matrix: a handoff killed at every step it takes, and a server that breaks every request it gets.

After each fault nothing wrong may be visible and no document may be there before its items; the next attempt must find
all that had landed, send only the rest, and leave no upload behind. NIGHTRELAY_SOAK=1 sweeps every step.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from regions.errors import IntegrityError, NightrelayError, OutsideError
from storage.handoff import Document, Item, handoff, sweep
from storage.handoff.ledger import find_entry
from storage.objects import Store, open_store
from storage.objects.credentials import Credential
from storage.objects.http import HttpPool
from storage.objects.local import LocalStore
from storage.objects.memory import MemoryStore
from storage.objects.oss import open_oss
from storage.objects.retrying import Retrying, RetryPolicy
from storage.objects.s3 import open_s3
from tests.storage.test_handoff import fill
from tests.support.fault_proxy import EFFECTS, FaultProxy, fault_proxy, nothing, nth
from tests.support.oss_server import OssServer, oss_server
from tests.support.s3_server import credential, make_bucket, moto_server

MIB = 1 << 20
SOAK = "NIGHTRELAY_SOAK" in os.environ
SIZES = [0, 5_000, 60_000, 9 * MIB + 1]
RECORD = Document("runs/r/record.json", b'{"items": 4}')
OPTIONS: dict[str, Any] = {"part_bytes": 8 * MIB, "streams": 2}
STEPS = (
    ("os", "open"), ("os", "pwrite"), ("os", "write"), ("os", "copy_file_range"), ("os", "fsync"), ("os", "link"),
    ("os", "posix_fallocate"), ("os", "unlink"), ("os", "rename"), ("os", "replace"),
)  # fmt: skip


def visible_faults(items: list[Item], target: Store) -> list[str]:
    """Return what may never be seen: an object that is not its item, a record before its items."""
    known = {item.key: item for item in items}
    wrong, right = [], set()
    for stat in target.list():
        if stat.key.startswith(("handoff/ledger/", "probe/")):
            continue
        if stat.key == RECORD.key:
            continue
        item = known.get(stat.key)
        if item is None or blake3(target.get(stat.key)).hexdigest() != item.digest:
            wrong.append(stat.key)
        else:
            right.add(item.key)
    try:
        target.head(RECORD.key)
    except FileNotFoundError:
        return wrong
    return wrong + sorted(set(known) - right)


def landed(items: list[Item], target: Store) -> int:
    """Return the bytes that a next attempt need not send."""
    there = {stat.key for stat in target.list()}
    total = sum(item.size for item in items if item.key in there)
    for item in items:
        entry = find_entry(target, item)
        if item.key not in there and entry is not None:
            try:
                total += sum(part.size for part in target.parts(item.key, entry.upload))
            except FileNotFoundError:
                continue
    return total


def finish(items: list[Item], source: Store, target: Store) -> int:
    """Run to the end after a fault; return the bytes sent by this attempt."""
    before = landed(items, target)
    receipt = handoff(items, [RECORD], source, target, **OPTIONS)
    assert receipt.complete
    assert receipt.sent_bytes <= receipt.bytes - before  # less, where the server was still busy with a killed request
    assert visible_faults(items, target) == []
    assert target.get(RECORD.key) == RECORD.data
    sweep(target, older_than=timedelta(0), now=datetime.now(UTC) + timedelta(days=1))
    assert list(target.uploads()) == []
    assert list(target.list("handoff/")) == []
    return receipt.sent_bytes


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Run `work` in a child that kills itself before its step-th system call or request; tell whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            seen = 0

            def counted(original: Callable[..., Any]) -> Callable[..., Any]:
                def call(*arguments: Any, **named: Any) -> Any:
                    nonlocal seen
                    seen += 1
                    if seen == step:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return original(*arguments, **named)

                return call

            for module, name in STEPS:
                setattr(sys.modules[module], name, counted(getattr(sys.modules[module], name)))
            HttpPool.request = counted(HttpPool.request)  # type: ignore[method-assign]
            work()
        except BaseException as error:  # the child must never return into the test
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.mark.parametrize("ways", ["file-file", "file-s3", "s3-file", "s3-s3"])
def test_killed_at_every_step(tmp_path: Path, endpoint: str, ways: str, capsys: pytest.CaptureFixture[str]) -> None:
    start, end = ways.split("-")
    bucket = make_bucket(endpoint)

    def opened(kind: str, name: str) -> Store:
        if kind == "file":
            return LocalStore(tmp_path / name)
        return open_store(f"s3://{bucket}/{name}", endpoint=endpoint, region="us-east-1", credentials=credential)

    items = fill(opened(start, "source"), SIZES)
    kills, sent, step = 0, 0, 1
    stride = 1 if SOAK else 11
    while True:
        name = f"target-{step}"

        def work(name: str = name) -> None:
            handoff(items, [RECORD], opened(start, "source"), opened(end, name), **OPTIONS)

        if not killed_at(step, work):
            break
        target = opened(end, name)
        assert visible_faults(items, target) == [], f"killed at step {step}"
        sent += finish(items, opened(start, "source"), target)
        kills, step = kills + 1, step + stride
    with capsys.disabled():
        again = sent / kills / sum(SIZES)
        text = f"{kills} kills, 0 wrong objects, {again:.0%} of the bytes sent by the next attempt"
        sys.stdout.write(f"\n  {ways}: {text}\n")
    assert kills >= 2


def patient(store: Any) -> Store:
    return Retrying(store, RetryPolicy(first_pause=0.001, longest_pause=0.01))


@pytest.fixture(scope="module")
def server() -> Iterator[OssServer]:
    with oss_server() as running:
        yield running


@pytest.mark.parametrize("protocol", ["oss", "s3"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_every_request_broken_in_every_way(
    server: OssServer, endpoint: str, protocol: str, direction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Break the n-th request, n over the whole transfer, each way; at most one more attempt may be needed."""
    effects = EFFECTS if SOAK or protocol == "oss" else ("lost", "damaged")
    stride = 1 if SOAK else 7
    broken = again = 0
    with fault_proxy(server.endpoint if protocol == "oss" else endpoint) as proxy:
        for effect in effects:
            step = 1 + effects.index(effect)
            while True:
                here, far = _broken_pair(proxy, server, endpoint, protocol)
                source, target = (here, far) if direction == "up" else (far, here)
                items = fill(source, SIZES)
                _ = far.capabilities
                proxy.reset(nth(step, effect))
                try:
                    handoff(items, [RECORD], source, target, **OPTIONS)
                except NightrelayError as error:
                    assert not isinstance(error, IntegrityError) or error.context.get("source_damaged") is False
                    again += 1
                reached, plan = proxy.broken, nothing
                proxy.reset(plan)
                assert visible_faults(items, target) == [], f"{effect} at request {step}"
                finish(items, source, target)
                if not reached:
                    break
                broken, step = broken + 1, step + stride
    with capsys.disabled():
        text = f"{broken} requests broken, 0 wrong objects, {again} needed another attempt"
        sys.stdout.write(f"\n  {protocol} {direction}: {text}\n")
    assert broken >= len(effects)


def _broken_pair(proxy: FaultProxy, server: OssServer, endpoint: str, protocol: str) -> tuple[Store, Store]:
    """Return a sound store and one behind the proxy, with a client that loses patience soon."""
    here = MemoryStore()
    if protocol == "oss":
        far = open_oss(
            f"oss://{server.make_bucket()}/site",
            endpoint=proxy.endpoint,
            region="loop-1",
            credentials=lambda: Credential("access", "secret"),
            timeout=0.7,
        )
        return here, patient(far)
    url = f"s3://{make_bucket(endpoint)}/site"
    return here, patient(open_s3(url, endpoint=proxy.endpoint, region="us-east-1", credentials=credential, timeout=2.0))


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE stands in for the full disk: the same refusal in the middle of a write."""
    source, target = LocalStore(tmp_path / "source"), LocalStore(tmp_path / "target")
    items = fill(source, SIZES)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            handoff(items, [RECORD], source, target, **OPTIONS)
        except OutsideError as error:
            os._exit(0 if error.kind == "no-space" and "free space" in str(error) else 3)
        except BaseException:
            os._exit(4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert visible_faults(items, target) == []
    finish(items, source, target)
    assert list((tmp_path / "target").rglob(".part-tmp-*")) == []


def test_the_matrix_kills_really() -> None:
    assert killed_at(1, lambda: os.close(os.open("/dev/null", os.O_RDONLY)))
    assert not killed_at(2, lambda: os.close(os.open("/dev/null", os.O_RDONLY)))
