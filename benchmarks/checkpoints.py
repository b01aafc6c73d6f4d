"""Saving, loading and committing checkpoints: raw tensors against torch, and what a frozen half costs.

    python -m benchmarks.checkpoints

torch is measured where it is installed, in the same process and alternating. Everything goes to the page cache of one
disk, without fsync, as a trainer saves; commits are durable.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from storage.checkpoints import Record, commit, restore
from storage.objects import open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "trainers"))
import tensors

_TENSORS = 24


def run(mib: int = 240, rounds: int = 3) -> dict[str, Any]:
    """Return medians in seconds, the extra memory of saving and loading, and bytes stored for a frozen half."""
    with tempfile.TemporaryDirectory(prefix="benchmark-checkpoints-") as folder:
        root = Path(folder)
        arrays = _arrays(mib, seed=0)
        cases = _raw(root, arrays) | _torch(root, arrays)
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                begun = time.perf_counter()
                case()
                taken[name].append(time.perf_counter() - begun)
        seconds = {name: round(statistics.median(times), 4) for name, times in taken.items()}
        memory = {name: _extra_memory(cases[name]) for name in ("raw save", "raw load")}
        return {"mib": mib, "seconds": seconds, "extra_memory_mib": memory, **_frozen_half(root, mib)}


def _arrays(mib: int, seed: int) -> dict[str, Any]:
    chance = np.random.default_rng(seed)
    each = (mib << 20) // 4 // _TENSORS
    return {f"layer.{number}": chance.standard_normal(each, np.float32) for number in range(_TENSORS)}


def _raw(root: Path, arrays: dict[str, Any]) -> dict[str, Callable[[], None]]:
    into = {name: np.empty_like(array) for name, array in arrays.items()}
    for array in into.values():
        array.fill(0)
    return {
        "raw save": lambda: tensors.save(root / "raw.safetensors", arrays),
        "raw load": lambda: tensors.load(root / "raw.safetensors", into),
    }


def _torch(root: Path, arrays: dict[str, Any]) -> dict[str, Callable[[], object]]:
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    state = {name: torch.from_numpy(array) for name, array in arrays.items()}
    into = {name: torch.zeros_like(tensor) for name, tensor in state.items()}

    def load() -> None:
        for name, tensor in torch.load(root / "torch.pt").items():
            into[name].copy_(tensor)

    cases: dict[str, Callable[[], object]] = {
        "torch save": lambda: torch.save(state, root / "torch.pt"),
        "torch load": load,
    }
    if importlib.util.find_spec("safetensors") is not None:
        from safetensors.torch import load_file, save_file

        def load_numbers() -> None:
            for name, tensor in load_file(root / "peer.safetensors").items():
                into[name].copy_(tensor)

        cases["safetensors save"] = lambda: save_file(state, root / "peer.safetensors")
        cases["safetensors load"] = load_numbers
    return cases


def _extra_memory(case: Callable[[], object]) -> float:
    """How far the process's peak rises during one more call, in MiB. The kernel's mark is reset first."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    case()
    return round((_status("VmHWM") - before) / 1024, 1)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _frozen_half(root: Path, mib: int) -> dict[str, Any]:
    """Two steps of a model of which one half is frozen: seconds and bytes of each commit, seconds of a restore."""
    store = open_store((root / "store").as_uri())
    arrays = _arrays(mib, seed=1)
    found: dict[str, Any] = {}
    records: list[Record] = []
    for step in (1, 2):
        trained = dict(list(_arrays(mib, seed=step + 1).items())[: _TENSORS // 2])
        folder = root / f"step-{step}"
        folder.mkdir()
        tensors.save(folder / "model.safetensors", arrays | trained)
        before = sum(stat.size for stat in store.list("chunks/"))
        begun = time.perf_counter()
        records.append(commit(store, folder, run="r", stage="s", step=step, term=1, samples=step))
        found[f"commit_{step}_seconds"] = round(time.perf_counter() - begun, 3)
        found[f"commit_{step}_bytes"] = sum(stat.size for stat in store.list("chunks/")) - before
    begun = time.perf_counter()
    restore(store, records[-1], root / "back")
    found["restore_seconds"] = round(time.perf_counter() - begun, 3)
    found["second_share"] = round(found["commit_2_bytes"] / found["commit_1_bytes"], 3)
    return found


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
