"""Transfers against the tools people use: MB/s and CPU-seconds per GiB in one run, alternating, medians.

`run()` measures every cell and returns what JSON can hold. Both object stores are `rclone serve s3` over folders: the
same server for every client. Ours verifies every object by BLAKE3 and, locally, makes it durable; the others do not.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from blake3 import blake3

from benchmarks.transfer import peers
from benchmarks.transfer.precopy import switch

ROOT = Path(__file__).parents[2]
WAYS = ("local-local", "local-s3", "s3-local", "s3-s3")
LARGE, SMALL = (16, 64 << 20), (5_000, 64 << 10)
QUICK = {"large": (4, 64 << 20), "small": (600, 64 << 10)}
CONTENDERS = {
    "local-local": ("nightrelay", "cp", "shutil"),
    "local-s3": ("nightrelay", "s5cmd", "rclone", "obstore", "boto3", "s3fs"),
    "s3-local": ("nightrelay", "s5cmd", "rclone", "obstore", "boto3", "s3fs"),
    "s3-s3": ("nightrelay", "rclone", "obstore", "boto3", "s3fs"),
}


def run(*, full: bool = False, rounds: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Measure all cells; `full` takes the sizes of record. Peers that cannot be had are left out and named."""
    shapes = {"large": LARGE, "small": SMALL} if full else QUICK
    rounds = rounds or (5 if full else 3)
    programs = peers.environment()
    if programs is None:
        return {"skipped": f"the peers' packages cannot be had: {', '.join(peers.PACKAGES)}"}
    chance = random.Random(seed)
    cells = {}
    with tempfile.TemporaryDirectory(prefix="nightrelay-bench-") as scratch:
        folder = Path(scratch)
        keys = {
            name: _fill(folder / f"files-{name}", folder / "one" / f"source-{name}", name, count, size, chance)
            for name, (count, size) in shapes.items()
        }
        with peers.served(programs, folder / "one") as one, peers.served(programs, folder / "two") as two:
            for name in shapes:
                for way in WAYS:
                    bench = _Cell(folder, name, way, keys[name], (one, two), programs)
                    cells[f"{name} {way}"] = bench.measure(rounds, chance)
            agreed = _agreement(folder, one, programs, chance, times=20)
        switched = switch(folder / "switch")
    return {
        "shapes": {name: {"objects": count, "bytes": size} for name, (count, size) in shapes.items()},
        "rounds": rounds,
        "cells": cells,
        "rclone_check": agreed,
        "switch": switched,
    }


def _fill(files: Path, served: Path, name: str, count: int, size: int, chance: random.Random) -> list[Any]:
    keys = []
    for number in range(count):
        data = chance.randbytes(size)
        key = f"{name}/{number % 16:02d}/{number:05d}.bin"
        for folder in (files, served):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(data)
        keys.append((key, size, blake3(data).hexdigest()))
    return keys


class _Cell:
    """One shape moved one way by everyone."""

    def __init__(
        self, folder: Path, name: str, way: str, keys: list[Any], endpoints: tuple[str, str], programs: Path
    ) -> None:
        self._folder, self._keys, self._programs, self._way = folder, keys, programs, way
        start, end = way.split("-")
        self._source: Any = (
            str(folder / f"files-{name}")
            if start == "local"
            else {"endpoint": endpoints[0], "bucket": f"source-{name}"}
        )
        self._end, self._endpoint = end, endpoints[1]
        self._bytes = sum(size for _, size, _ in keys)
        self._name = name

    def measure(self, rounds: int, chance: random.Random) -> dict[str, Any]:
        results: dict[str, list[tuple[float, float]]] = {method: [] for method in CONTENDERS[self._way]}
        faults: dict[str, str] = {}
        for number in range(rounds):
            order = list(results)
            chance.shuffle(order)
            for method in order:
                if method in faults:
                    continue
                try:
                    results[method].append(self._once(method, number))
                except (subprocess.CalledProcessError, AssertionError) as error:
                    faults[method] = str(getattr(error, "stderr", "") or error)[-300:]
        rows = {}
        for method, taken in results.items():
            if method in faults:
                rows[method] = {"failed": faults[method]}
                continue
            seconds = statistics.median(wall for wall, _ in taken)
            rows[method] = {
                "seconds": seconds,
                "mb_per_second": self._bytes / seconds / 1e6,
                "objects_per_second": len(self._keys) / seconds,
                "cpu_per_gib": statistics.median(cpu for _, cpu in taken) / (self._bytes / 2**30),
            }
        return {"methods": rows, **_ratios(rows)}

    def _once(self, method: str, number: int) -> tuple[float, float]:
        name = f"{self._name}-{self._way}-{method}-{number}"
        place = self._folder / ("two" if self._end == "s3" else "out") / name
        if self._end == "s3":
            peers.make_bucket(self._endpoint, name)
        else:
            place.mkdir(parents=True)
        target: Any = str(place) if self._end == "local" else {"endpoint": self._endpoint, "bucket": place.name}
        task = self._folder / "task.json"
        task.write_text(json.dumps({"from": self._source, "to": target, "keys": self._keys}))
        os.sync()
        try:
            taken = self._tool(method, target) if method in ("cp", "s5cmd", "rclone") else self._mover(method, task)
            self._check(place, method)
        finally:
            shutil.rmtree(place)
        return taken

    def _mover(self, method: str, task: Path) -> tuple[float, float]:
        python = self._programs / "python" if method == "obstore" else Path(sys.executable)
        script = Path(__file__).with_name("mover.py")
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [python, str(script), method, str(task)], capture_output=True, text=True, check=True, env=environ
        )
        result = json.loads(done.stdout.splitlines()[-1])
        return result["seconds"], result["cpu"]

    def _tool(self, method: str, target: Any) -> tuple[float, float]:
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        environ = {**os.environ, "AWS_ACCESS_KEY_ID": peers.KEYS[0], "AWS_SECRET_ACCESS_KEY": peers.KEYS[1]}
        environ |= {"AWS_REGION": "us-east-1"}
        subprocess.run(
            self._command(method, target), capture_output=True, text=True, check=True, env=environ, timeout=900
        )
        seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _command(self, method: str, target: Any) -> list[str]:
        if method == "cp":
            return ["cp", "-r", f"{self._source}/{self._name}", str(target)]
        if method == "rclone":

            def named(place: Any) -> str:
                return place if isinstance(place, str) else peers.remote(place["endpoint"]) + place["bucket"]

            return [
                str(self._programs / "rclone"), "copy", "--transfers", "8", "--checkers", "8",
                named(self._source), named(target),
            ]  # fmt: skip
        local_source = isinstance(self._source, str)
        endpoint = target["endpoint"] if local_source else self._source["endpoint"]
        start = f"{self._source}/" if local_source else f"s3://{self._source['bucket']}/*"
        end = f"s3://{target['bucket']}/" if local_source else f"{target}/"
        return [str(self._programs / "s5cmd"), "--endpoint-url", endpoint, "--numworkers", "8", "cp", start, end]

    def _check(self, place: Path, method: str) -> None:
        """Raise unless everything arrived (sizes for all, digests for a few): who drops parts looks fast."""
        for number, (key, size, digest) in enumerate(self._keys):
            path = place / key
            assert path.exists() and path.stat().st_size == size, f"{method} lost {key}"
            if number % 97 == 0:
                assert blake3(path.read_bytes()).hexdigest() == digest, f"{method} damaged {key}"


def _ratios(rows: dict[str, Any]) -> dict[str, Any]:
    """Return ours against the best of the others, against s3fs, and our CPU against boto3's."""
    good = {name: row for name, row in rows.items() if "seconds" in row}
    if "nightrelay" not in good:
        return {}
    ours = good["nightrelay"]
    others = {name: row for name, row in good.items() if name != "nightrelay"}
    if not others:
        return {}
    best = min(others, key=lambda name: others[name]["seconds"])
    ratios: dict[str, Any] = {"best_peer": best, "of_best_peer": others[best]["seconds"] / ours["seconds"]}
    if "s3fs" in others:
        ratios["of_s3fs"] = others["s3fs"]["seconds"] / ours["seconds"]
    if "boto3" in others:
        ratios["cpu_of_boto3"] = ours["cpu_per_gib"] / others["boto3"]["cpu_per_gib"]
    return ratios


def _agreement(folder: Path, endpoint: str, programs: Path, chance: random.Random, *, times: int) -> dict[str, int]:
    """Hand over random sets and let rclone, which knows nothing of us, compare source and target byte by byte."""
    from storage.handoff import Item, handoff
    from storage.objects import open_store
    from storage.objects.credentials import Credential

    agreed = 0
    for number in range(times):
        source, bucket = folder / f"random-{number}", f"random-{number}"
        peers.make_bucket(endpoint, bucket)
        items = []
        for index in range(chance.randint(1, 40)):
            data = chance.randbytes(chance.choice([0, 1, 100, 70_000, 1_000_000, 20_000_000][: 5 + (index == 0)]))
            key = f"{chance.choice('abc')}/{index}.bin"
            (source / key).parent.mkdir(parents=True, exist_ok=True)
            (source / key).write_bytes(data)
            items.append(Item(key, len(data), blake3(data).hexdigest()))
        store = open_store(
            f"s3://{bucket}", endpoint=endpoint, region="us-east-1", credentials=lambda: Credential(*peers.KEYS)
        )
        handoff(items, (), open_store(source.as_uri()), store)
        checked = subprocess.run(
            [programs / "rclone", "check", "--download", str(source), peers.remote(endpoint) + bucket],
            capture_output=True,
            check=False,
        )
        agreed += checked.returncode == 0
    return {"handoffs": times, "agreed": agreed}
