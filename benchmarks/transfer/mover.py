"""One measured transfer in a process of its own: `python mover.py METHOD JSON` prints {"seconds", "cpu"}.

Imports and the making of clients are outside the measured time, for everyone alike. `from` and `to` are a folder, or
{"endpoint", "bucket"}; `keys` gives the relative names and sizes.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Job = Callable[[], object]
ACCESS, SECRET = "bench-access", "bench-secret"
THREADS = 8


def ours(task: dict[str, Any]) -> Job:
    from storage.handoff import Item, handoff
    from storage.objects import Store, open_store
    from storage.objects.credentials import Credential

    def opened(place: Any) -> Store:
        if isinstance(place, str):
            return open_store(Path(place).absolute().as_uri())
        return open_store(
            f"s3://{place['bucket']}",
            endpoint=place["endpoint"],
            region="us-east-1",
            credentials=lambda: Credential(ACCESS, SECRET),
        )

    source, target = opened(task["from"]), opened(task["to"])
    items = [Item(key, size, digest) for key, size, digest in task["keys"]]
    _ = target.capabilities

    def run() -> None:
        assert handoff(items, (), source, target, streams=THREADS).complete

    return run


def copytree(task: dict[str, Any]) -> Job:
    return lambda: shutil.copytree(task["from"], task["to"], dirs_exist_ok=True)


def _paths(task: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (key, local source, local target); the local ends are '' where that end is a server."""
    source, target = task["from"], task["to"]
    rows = []
    for key, _, _ in task["keys"]:
        here = f"{source}/{key}" if isinstance(source, str) else ""
        there = f"{target}/{key}" if isinstance(target, str) else ""
        if there:
            Path(there).parent.mkdir(parents=True, exist_ok=True)
        rows.append((key, here, there))
    return rows


def boto3(task: dict[str, Any]) -> Job:
    import boto3
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config

    def client(place: Any) -> Any:
        config = Config(max_pool_connections=THREADS, response_checksum_validation="when_required")
        return boto3.client(
            "s3",
            endpoint_url=place["endpoint"],
            region_name="us-east-1",
            aws_access_key_id=ACCESS,
            aws_secret_access_key=SECRET,
            config=config,
        )

    source = None if isinstance(task["from"], str) else client(task["from"])
    target = None if isinstance(task["to"], str) else client(task["to"])
    one = TransferConfig(max_concurrency=2)

    def move(row: tuple[str, str, str]) -> None:
        key, here, there = row
        if source and target:
            body = source.get_object(Bucket=task["from"]["bucket"], Key=key)["Body"]
            target.upload_fileobj(body, task["to"]["bucket"], key, Config=one)
        elif source:
            source.download_file(task["from"]["bucket"], key, there, Config=one)
        else:
            assert target
            target.upload_file(here, task["to"]["bucket"], key, Config=one)

    rows = _paths(task)

    def run() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(move, rows))

    return run


def s3fs(task: dict[str, Any]) -> Job:
    import s3fs

    def system(place: Any) -> Any:
        return s3fs.S3FileSystem(
            key=ACCESS,
            secret=SECRET,
            endpoint_url=place["endpoint"],
            skip_instance_cache=True,
            use_listings_cache=False,
            config_kwargs={"response_checksum_validation": "when_required", "max_pool_connections": THREADS},
        )

    rows = _paths(task)
    if isinstance(task["from"], str):
        fs, bucket = system(task["to"]), task["to"]["bucket"]
        return lambda: fs.put([here for _, here, _ in rows], [f"{bucket}/{key}" for key, _, _ in rows])
    fs, bucket = system(task["from"]), task["from"]["bucket"]
    if isinstance(task["to"], str):
        return lambda: fs.get([f"{bucket}/{key}" for key, _, _ in rows], [there for _, _, there in rows])
    other, second = system(task["to"]), task["to"]["bucket"]

    def through() -> None:
        for key, _, _ in rows:
            other.pipe_file(f"{second}/{key}", fs.cat_file(f"{bucket}/{key}"))

    return through


def obstore(task: dict[str, Any]) -> Job:
    import obstore as client
    from obstore.store import S3Store

    def system(place: Any) -> Any:
        return S3Store(
            place["bucket"],
            endpoint=place["endpoint"],
            access_key_id=ACCESS,
            secret_access_key=SECRET,
            region="us-east-1",
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    source = None if isinstance(task["from"], str) else system(task["from"])
    target = None if isinstance(task["to"], str) else system(task["to"])

    def move(row: tuple[str, str, str]) -> None:
        key, here, there = row
        if source and target:
            client.put(target, key, client.get(source, key).bytes())
        elif source:
            with Path(there).open("wb") as file:
                for piece in client.get(source, key):
                    file.write(piece)
        else:
            client.put(target, key, Path(here))

    rows = _paths(task)

    def run() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(move, rows))

    return run


METHODS: dict[str, Callable[[dict[str, Any]], Job]] = {
    "nightrelay": ours,
    "shutil": copytree,
    "boto3": boto3,
    "s3fs": s3fs,
    "obstore": obstore,
}


def main() -> None:
    job = METHODS[sys.argv[1]](json.loads(Path(sys.argv[2]).read_text()))
    used, begun = _cpu(), time.perf_counter()
    job()
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "cpu": _cpu() - used}))


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
