"""Cutting a set that is larger than one worker's network into n slices, and helping the slowest at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blake3 import blake3

from storage.handoff.engine import handoff
from storage.handoff.model import Item, Receipt, distinct
from storage.objects.interface import Store


def slice_of(items: Sequence[Item], slices: int, index: int) -> tuple[Item, ...]:
    """Return slice `index` (from 0) of `slices`: by hash of the key, so that every worker cuts alike."""
    return tuple(item for item in distinct(items) if _place(item) % slices == index)


def handoff_slice(
    items: Sequence[Item], slices: int, index: int, source: Store, target: Store, **options: Any
) -> tuple[Receipt, ...]:
    """Bring one slice, then what is still missing of the others: a straggler's work is stolen from its far end.

    `options` are those of handoff(). The documents come with a last handoff() of the whole set, which finds all of it
    present. Returns the receipts of this worker's own slice and of what it stole.
    """
    receipts = [handoff(slice_of(items, slices, index), (), source, target, shared=slices > 1, **options)]
    for step in range(1, slices):
        if not receipts[-1].complete:
            break
        others = slice_of(items, slices, (index + step) % slices)[::-1]
        receipts.append(handoff(others, (), source, target, shared=True, **options))
    return tuple(receipts)


def _place(item: Item) -> int:
    return int.from_bytes(blake3(item.key.encode()).digest(8), "big")
