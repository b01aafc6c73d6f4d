"""The peers' side of benchmarks/data.py: runs in an environment of its own and knows nothing of ours.

python data_peers.py ROOT MIB build         -> ["litdata shuffled", ...]
python data_peers.py ROOT MIB read CASE     -> {"wall": MiB/s, "cpu": MiB/s}
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path

import numpy as np

LENGTH, BATCH = 2048, 64


def build(root: Path) -> list[str]:
    tokens = np.fromfile(root / "raw.bin", np.uint16)
    cases: list[str] = []
    try:
        import torch
        from litdata.streaming.item_loader import TokensLoader
        from litdata.streaming.writer import BinaryWriter

        (root / "litdata").mkdir()
        writer = BinaryWriter(str(root / "litdata"), chunk_bytes=64 << 20, item_loader=TokensLoader(LENGTH))
        for number, piece in enumerate(np.array_split(tokens, max(1, len(tokens) >> 20))):
            writer.add_item(number, torch.from_numpy(piece.view(np.int16)))
        writer.done()
        writer.merge()
        cases += ["litdata sequential", "litdata shuffled", "litdata shuffled, 1 worker"]
    except Exception as error:  # a peer that does not run here is left out, and says why
        print(f"litdata: {error!r}", file=sys.stderr)
    try:
        from streaming import MDSWriter

        with MDSWriter(out=str(root / "mds"), columns={"tokens": "bytes"}, size_limit=64 << 20) as writer:
            for row in tokens.reshape(-1, LENGTH):
                writer.write({"tokens": row.tobytes()})
        cases += ["mds sequential", "mds shuffled"]
    except Exception as error:
        print(f"mds: {error!r}", file=sys.stderr)
    return cases


def litdata(root: Path, shuffle: bool, workers: int) -> int:
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming.item_loader import TokensLoader

    dataset = StreamingDataset(str(root / "litdata"), item_loader=TokensLoader(LENGTH), shuffle=shuffle, seed=1)
    buffer = np.empty((BATCH, LENGTH), np.int16)
    rows = 0
    if workers:
        for batch in StreamingDataLoader(dataset, batch_size=BATCH, num_workers=workers):
            buffer[: len(batch)] = batch.numpy()
            rows += len(batch)
        return rows
    for sample in dataset:
        buffer[rows % BATCH] = sample.numpy()
        rows += 1
    return rows


def mds(root: Path, shuffle: bool) -> int:
    from streaming import StreamingDataset

    dataset = StreamingDataset(local=str(root / "mds"), shuffle=shuffle, batch_size=BATCH)
    buffer = np.empty((BATCH, LENGTH), np.uint16)
    rows = 0
    for sample in dataset:
        buffer[rows % BATCH] = np.frombuffer(sample["tokens"], np.uint16)
        rows += 1
    return rows


def read(root: Path, case: str) -> dict[str, float]:
    peer, _, rest = case.partition(" ")
    shuffle, workers = "shuffled" in rest, 1 if "1 worker" in rest else 0
    importlib.import_module("litdata" if peer == "litdata" else "streaming")  # its import is not what is measured
    wall, cpu = time.perf_counter(), time.process_time()
    rows = litdata(root, shuffle, workers) if peer == "litdata" else mds(root, shuffle)
    mib = rows * 2 * LENGTH / (1 << 20)
    return {"wall": mib / (time.perf_counter() - wall), "cpu": mib / (time.process_time() - cpu)}


if __name__ == "__main__":
    where, action = Path(sys.argv[1]), sys.argv[3]
    print(json.dumps(build(where) if action == "build" else read(where, sys.argv[4])))
