"""Reading and writing sharded tokens: ours against a raw memory map, and against peers in an environment of their own.

    python -m benchmarks.data

Peers (LitData, MosaicML Streaming, WebDataset) run where NIGHTRELAY_PEERS_PYTHON points to an interpreter that has
them; without it only ours and the limits are measured. All cases alternate, so that a busy machine hits them alike:
trust ratios, and CPU figures more than wall figures.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from storage.datasets import Cut, from_tokens, open_dataset, write
from storage.objects import open_store

LENGTH, BATCH = 2048, 64
Case = Callable[[], dict[str, float]]


def run(mib: int = 256, rounds: int = 3) -> dict[str, Any]:
    """Return medians: MiB/s of wall and of CPU time for each case, milliseconds to the first batch, and the ratios."""
    with tempfile.TemporaryDirectory(prefix="benchmark-data-") as folder:
        root = Path(folder)
        cases = _ours(root, mib) | _peers(root, mib)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                found[name].append(case())
        rates = {name: _median(results) for name, results in found.items()}
        first = {f"at_{share:.0%}": _first_batch(root / "ours", mib, share) for share in (0.0, 0.5, 0.95)}
    return {"mib": mib, "rounds": rounds, "cases": rates, "first_batch_ms": first, "ratios": _ratios(rates)}


def _ours(root: Path, mib: int) -> dict[str, Case]:
    tokens = np.random.default_rng(0).zipf(1.2, mib << 19).astype(np.uint16)
    tokens.tofile(root / "raw.bin")
    rows = tokens.reshape(-1, LENGTH)
    writing = {"written raw": lambda: _timed(mib, lambda: _write_raw(root / "again.bin", rows))}
    writing["written ours"] = lambda: _timed(mib, lambda: _write(root / "again", tokens))
    _write(root / "ours", tokens)
    return writing | {
        "raw sequential": lambda: _timed(mib, lambda: _read_raw(root / "raw.bin", shuffled=False)),
        "raw shuffled": lambda: _timed(mib, lambda: _read_raw(root / "raw.bin", shuffled=True)),
        "ours sequential": lambda: _timed(mib, lambda: _read(root / "ours", shuffle=False)),
        "ours shuffled": lambda: _timed(mib, lambda: _read(root / "ours")),
        "ours shuffled, window 1": lambda: _timed(mib, lambda: _read(root / "ours", window=1)),
        "ours shuffled, 1 thread ahead": lambda: _timed(mib, lambda: _read(root / "ours", ahead=8)),
    }


def _peers(root: Path, mib: int) -> dict[str, Case]:
    python = os.environ.get("NIGHTRELAY_PEERS_PYTHON")
    if not python:
        return {}
    script = Path(__file__).with_name("data_peers.py")

    def call(*arguments: str) -> Any:
        command = [python, str(script), str(root), str(mib), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None

    return {name: lambda name=name: call("read", name) for name in call("build") or ()}


def _timed(mib: int, act: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return {"wall": mib / (time.perf_counter() - wall), "cpu": mib / (time.process_time() - cpu)}


def _write(folder: Path, tokens: Any) -> None:
    write(open_store(folder.as_uri()), from_tokens([tokens], LENGTH), cut=Cut())


def _write_raw(path: Path, rows: Any) -> None:
    with path.open("wb") as file:
        rows.tofile(file)
        file.flush()
        os.fsync(file.fileno())


def _read_raw(path: Path, *, shuffled: bool) -> None:
    rows = np.memmap(path, np.uint16, "r").reshape(-1, LENGTH)
    order = np.random.default_rng(1).permutation(len(rows)) if shuffled else np.arange(len(rows))
    buffer = np.empty((BATCH, LENGTH), np.uint16)
    for start in range(0, len(rows), BATCH):
        np.take(rows, order[start : start + BATCH], axis=0, out=buffer, mode="clip")


def _read(folder: Path, **settings: Any) -> None:
    buffer = np.empty((BATCH, LENGTH), np.uint16)
    for batch in open_dataset(folder, batch=BATCH, seed=1, epochs=1, environ={}, **settings):
        tokens = batch["tokens"]
        buffer[: len(tokens)] = tokens


def _first_batch(folder: Path, mib: int, share: float) -> float:
    cursor = int((mib << 20) // (2 * LENGTH) * share) // BATCH * BATCH
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        next(iter(open_dataset(folder, batch=BATCH, seed=1, cursor=cursor, environ={})))
        taken.append(1000 * (time.perf_counter() - begun))
    return statistics.median(taken)


def _median(results: list[dict[str, float]]) -> dict[str, float]:
    whole = [result for result in results if result]
    kinds = ("wall", "cpu") if whole else ()
    return {kind: round(statistics.median(result[kind] for result in whole)) for kind in kinds}


def _ratios(rates: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    pairs = {
        "shuffled / raw shuffled": ("ours shuffled", "raw shuffled"),
        "shuffled / litdata shuffled": ("ours shuffled", "litdata shuffled"),
        "shuffled / mds shuffled": ("ours shuffled", "mds shuffled"),
        "ahead / litdata, 1 worker": ("ours shuffled, 1 thread ahead", "litdata shuffled, 1 worker"),
        "written / written raw": ("written ours", "written raw"),
    }
    return {
        name: {kind: round(rates[one][kind] / rates[other][kind], 2) for kind in ("wall", "cpu")}
        for name, (one, other) in pairs.items()
        if rates.get(one) and rates.get(other)
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
