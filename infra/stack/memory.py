"""How much memory processes take together."""

from __future__ import annotations

from contextlib import suppress

import psutil


def tree_bytes(root: psutil.Process) -> int:
    """Return the memory of a process and its descendants: PSS where the system counts it, else what is theirs alone."""
    total = 0
    with suppress(psutil.Error):
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                full = process.memory_full_info()
                total += getattr(full, "pss", 0) or full.uss
    return total
