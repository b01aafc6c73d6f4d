"""Each fault of plain ossfs that loses or invents bytes, shown on a server with OSS's rules, and its absence here."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import ossfs
import pytest

from regions.errors import ConflictError
from storage.objects.oss_filesystem import OssFileSystem, register
from tests.support.fault_proxy import fault_proxy, nth
from tests.support.oss_server import OssServer, oss_server

MIB = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[OssServer]:
    with oss_server() as running:
        yield running


def plain(server: OssServer, **options: Any) -> Any:
    return ossfs.OSSFileSystem(
        endpoint=server.endpoint, key="access", secret="secret", skip_instance_cache=True, **options
    )


def ours(server: OssServer, endpoint: str | None = None, **options: Any) -> OssFileSystem:
    return OssFileSystem(
        endpoint=endpoint or server.endpoint,
        key="access",
        secret="secret",
        region="loop-1",
        skip_instance_cache=True,
        **options,
    )


@pytest.fixture
def bucket(server: OssServer) -> str:
    return server.make_bucket()


def test_ranges(server: OssServer, bucket: str) -> None:
    fs, data = ours(server), bytes(range(256)) * 10
    fs.pipe_file(f"{bucket}/k", data)
    assert plain(server).cat_file(f"{bucket}/k", 0, 10) == data[:11]  # the fault
    for start, end in [(0, 10), (5, 5), (None, 7), (100, None), (-10, None), (-10, -3), (None, None), (0, 99_999)]:
        assert fs.cat_file(f"{bucket}/k", start, end) == data[start:end]


@pytest.mark.parametrize("cache", ["none", "readahead", "bytes", "blockcache", "first", "background", "all", "mmap"])
def test_every_cache_reads_right(server: OssServer, bucket: str, cache: str) -> None:
    data = os.urandom(300_000)
    fs = ours(server)
    fs.pipe_file(f"{bucket}/k", data)
    with fs.open(f"{bucket}/k", "rb", block_size=50_000, cache_type=cache) as file:
        for start, size in [(0, 10), (49_990, 20), (299_000, 5000), (120_000, 100_000)]:
            file.seek(start)
            assert file.read(size) == data[start : start + size]


def test_plain_reads_wrong_bytes_through_a_cache(server: OssServer, bucket: str) -> None:
    data = os.urandom(300_000)
    fs = plain(server)
    fs.pipe_file(f"{bucket}/k", data)
    with fs.open(f"{bucket}/k", "rb", cache_type="none") as file:
        assert file.read(10) + file.read(10) != data[:20]


def test_overwriting_never_shows_a_gap(server: OssServer, bucket: str) -> None:
    fs = plain(server)
    fs.pipe_file(f"{bucket}/old", b"old")
    with fs.open(f"{bucket}/old", "wb", block_size=MIB) as file:
        file.write(os.urandom(2 * MIB))
        shown = server.buckets[bucket].things.get("old")
        assert shown is None or shown.data != b"old"  # the fault: gone or short while it is written
    assert server.buckets[bucket].things["old"].kind == "Appendable"

    fs, data = ours(server), os.urandom(5 * MIB + 17)
    fs.pipe_file(f"{bucket}/new", b"old")
    with fs.open(f"{bucket}/new", "wb", block_size=MIB) as file:
        for start in range(0, len(data), 700_000):
            file.write(data[start : start + 700_000])
            assert server.buckets[bucket].things["new"].data == b"old"
    assert server.buckets[bucket].things["new"].data == data
    assert server.buckets[bucket].things["new"].kind == "Multipart"


@pytest.mark.parametrize("size", [1000, 3 * MIB])
def test_a_failed_writer_publishes_nothing(server: OssServer, bucket: str, size: int) -> None:
    def fail(fs: Any, name: str) -> None:
        with pytest.raises(RuntimeError), fs.open(f"{bucket}/{name}", "wb", block_size=MIB) as file:
            file.write(os.urandom(size))
            raise RuntimeError

    fail(plain(server), "plain")
    assert "plain" in server.buckets[bucket].things  # the fault
    fail(ours(server), "ours")
    dropped = ours(server).open(f"{bucket}/ours", "wb", block_size=MIB)
    dropped.write(os.urandom(size))
    del dropped
    gc.collect()
    assert "ours" not in server.buckets[bucket].things
    assert server.buckets[bucket].uploads == {}


def test_copies_keep_the_class_and_cross_buckets(server: OssServer, bucket: str) -> None:
    other = server.make_bucket()
    things = server.buckets[bucket].things
    ours(server).pipe_file(f"{bucket}/k", b"x" * 1000, headers={"x-oss-storage-class": "IA"})
    assert things["k"].storage_class == "IA"
    plain(server).cp_file(f"{bucket}/k", f"{bucket}/plain")
    assert things["plain"].storage_class == "Standard"  # the fault
    with pytest.raises(TypeError):
        plain(server).cp_file(f"{bucket}/k", f"{other}/plain")  # the fault
    fs = ours(server)
    fs.cp_file(f"{bucket}/k", f"{bucket}/ours")
    fs.cp_file(f"{bucket}/k", f"{other}/ours")
    fs.cp_file(f"{bucket}/k", f"{bucket}/warm", headers={"x-oss-storage-class": "Standard"})
    assert [things[name].storage_class for name in ("ours", "warm")] == ["IA", "Standard"]
    assert server.buckets[other].things["ours"].data == b"x" * 1000
    assert server.buckets[other].things["ours"].storage_class == "IA"


def test_new_accounts_take_version_4_only(server: OssServer, bucket: str) -> None:
    server.accounts["access"].version_4_only = True
    try:
        with pytest.raises(OSError):
            plain(server).pipe_file(f"{bucket}/k", b"x")  # the fault
        fs = ours(server)
        fs.pipe_file(f"{bucket}/k", b"x")
        assert fs.ls(f"{bucket}/", detail=False) == [f"{bucket}/k"]
    finally:
        server.accounts["access"].version_4_only = False


def test_a_busy_server_is_asked_again(server: OssServer, bucket: str) -> None:
    with fault_proxy(server.endpoint) as proxy:
        proxy.reset(nth(1, "503"))
        fs = ossfs.OSSFileSystem(endpoint=proxy.endpoint, key="access", secret="secret", skip_instance_cache=True)
        with pytest.raises(OSError):
            fs.pipe_file(f"{bucket}/plain", b"x")  # the fault
        fs = ours(server, proxy.endpoint)
        for attempt in (
            lambda: fs.pipe_file(f"{bucket}/ours", b"x"),
            lambda: fs.cat_file(f"{bucket}/ours"),
            lambda: fs.ls(f"{bucket}/"),
            lambda: fs.info(f"{bucket}/ours"),
        ):
            proxy.reset(nth(1, "503"))
            attempt()
            assert proxy.broken == 1


def test_listings_are_the_servers(server: OssServer, bucket: str) -> None:
    both = {"plain": plain(server), "ours": ours(server)}
    writer = ours(server)
    for name in ("a/1", "a/2", "b/1"):
        writer.pipe_file(f"{bucket}/{name}", b"1")
    assert len(both["plain"].find(f"{bucket}", prefix="a")) == len(both["ours"].find(f"{bucket}", prefix="a")) == 2
    shown = {name: sorted(fs.ls(f"{bucket}", detail=False)) for name, fs in both.items()}
    assert shown["plain"] == [f"{bucket}/a/1", f"{bucket}/a/2"]  # the fault: find() poisoned the cache
    assert [name.rstrip("/") for name in shown["ours"]] == [f"{bucket}/a", f"{bucket}/b"]
    assert sorted(both["ours"].find(f"{bucket}/a")) == [f"{bucket}/a/1", f"{bucket}/a/2"]
    both["ours"].ls(f"{bucket}/a")
    writer.pipe_file(f"{bucket}/a/3", b"333")
    writer.pipe_file(f"{bucket}/a/1", b"4444")
    assert len(both["ours"].ls(f"{bucket}/a")) == 3
    assert both["ours"].info(f"{bucket}/a/1")["size"] == 4
    assert both["ours"].exists(f"{bucket}/a") and not both["ours"].exists(f"{bucket}/none")


def test_files_go_up_and_down(server: OssServer, bucket: str, tmp_path: Path) -> None:
    fs, data = ours(server), os.urandom(20 * MIB)
    (tmp_path / "up").write_bytes(data)
    fs.put_file(str(tmp_path / "up"), f"{bucket}/big", headers={"x-oss-storage-class": "IA"})
    fs.get_file(f"{bucket}/big", str(tmp_path / "down" / "big"))
    assert (tmp_path / "down" / "big").read_bytes() == data
    info = fs.info(f"{bucket}/big")
    assert (info["size"], info["StorageClass"], info["checksum"][:9]) == (len(data), "IA", "crc64ecma")
    with pytest.raises(ConflictError):
        fs.pipe_file(f"{bucket}/big", b"x", mode="create")
    fs.rm(f"{bucket}/big")
    assert not fs.exists(f"{bucket}/big")


def test_fsspec_opens_ours_once_registered(server: OssServer, bucket: str) -> None:
    register()
    options = {"endpoint": server.endpoint, "key": "access", "secret": "secret", "region": "loop-1"}
    with fsspec.open(f"oss://{bucket}/via/fsspec", "wb", **options) as file:
        file.write(b"hello")
    with fsspec.open(f"oss://{bucket}/via/fsspec", "rb", **options) as file:
        assert file.read() == b"hello"
    fs, _ = fsspec.core.url_to_fs(f"oss://{bucket}/via", **options)
    assert type(fs) is OssFileSystem
