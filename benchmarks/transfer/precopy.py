"""What pre-copying saves: bytes and seconds of the switch with and without it, over a link of a set speed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from storage.handoff import Item, handoff
from storage.objects import chunk_of, open_store
from storage.objects.limiting import Limiting

CHUNK, CHUNKS = 1 << 20, 192
CHANGED = 24
"""Chunks that the last steps of the leg change: optimizer state and head, an eighth of what is partly frozen."""
RATE = 100e6


def switch(folder: Path, seed: int = 0) -> dict[str, Any]:
    """Measure the handoff at the end of a leg, once after a pre-copy of the checkpoint before, once without."""
    chance = random.Random(seed)
    source = open_store((folder / "source").as_uri())
    before, after = [], []
    for number in range(CHUNKS):
        data = chance.randbytes(CHUNK)
        source.put(chunk_of(data).key, data)
        before.append(Item.of_chunk(chunk_of(data)))
        if number < CHANGED:
            data = chance.randbytes(CHUNK)
            source.put(chunk_of(data).key, data)
        after.append(Item.of_chunk(chunk_of(data)))
    rows: dict[str, Any] = {"link_mb_per_second": RATE / 1e6, "checkpoint_bytes": CHUNK * CHUNKS}
    for name in ("with", "without"):
        target = Limiting(open_store((folder / name).as_uri()), rate=lambda instant: RATE)
        if name == "with":
            handoff(before, (), source, target)
        receipt = handoff(after, (), source, target)
        rows[name] = {"bytes": receipt.sent_bytes, "seconds": receipt.seconds}
    return rows
