"""What must be equal for a resumed training to give the same bits: recorded with each commit, compared at a handoff."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from flows.messages import Order

_FRAMEWORKS = ("numpy", "torch", "jax", "jaxlib")
_CAPABILITIES = ("avx512f", "avx2", "asimd", "sve")


def fingerprint_of(order: Order, threads: int = 1) -> dict[str, Any]:
    """Return this machine's fingerprint for a leg; the trainer's Python is taken to be the leg's own."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpu": _cpu_capability(),
        "threads": threads,
        "width": order.width,
        "frameworks": {name: version for name in _FRAMEWORKS if (version := _version(name)) is not None},
    }


def guarantee(before: Mapping[str, Any] | None, here: Mapping[str, Any]) -> Literal["bits", "sequence", "first"]:
    """Return what going on here promises: the same bits where both fingerprints are equal, else the same sequence."""
    if before is None:
        return "first"
    return "bits" if dict(before) == dict(here) else "sequence"


def _cpu_capability() -> str:
    """Return the widest vector instructions numeric libraries would choose here."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return platform.processor() or "unknown"
    return next((name for name in _CAPABILITIES if name in flags), "baseline")


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
