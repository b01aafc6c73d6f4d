"""P13: writing past one block on OSS, to a new name and over an old object, while a reader polls it."""

from __future__ import annotations

import os
import threading

import fsspec

from storage.objects.oss_filesystem import register
from tests.support.oss_server import oss_server


def test_twelve_mib_in_blocks_twice_under_a_polling_reader() -> None:
    register()
    with oss_server() as server:
        bucket = server.make_bucket()
        options = {"endpoint": server.endpoint, "key": "access", "secret": "secret", "region": "loop-1"}
        old, new = os.urandom(12 << 20), os.urandom(12 << 20)
        done = threading.Event()
        wrong: list[str] = []
        seen: set[str] = set()

        def write(data: bytes) -> None:
            with fsspec.open(f"oss://{bucket}/checkpoint", "wb", block_size=5 << 20, **options) as file:
                for start in range(0, len(data), 999_999):
                    file.write(data[start : start + 999_999])

        def poll() -> None:
            fs = fsspec.filesystem("oss", **options)
            while not done.is_set():
                data = fs.cat_file(f"{bucket}/checkpoint")
                seen.add("old" if data == old else "new" if data == new else "wrong")
                if data not in (old, new):
                    wrong.append(f"{len(data)} bytes")

        write(old)
        assert server.buckets[bucket].things["checkpoint"].data == old
        reader = threading.Thread(target=poll)
        reader.start()
        write(new)
        done.set()
        reader.join()
        assert wrong == []
        assert seen <= {"old", "new"} and seen
        assert server.buckets[bucket].things["checkpoint"].data == new
        assert server.buckets[bucket].things["checkpoint"].kind == "Multipart"
