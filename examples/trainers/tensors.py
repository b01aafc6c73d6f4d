"""Tensors in a file that anybody opens: the safetensors layout, written and read without a copy in between.

Eight bytes with the header's length, the header as JSON, then the tensors' bytes. Saving writes each array as it
lies in memory; loading reads each into the array that is there. So neither needs memory of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8"}
_ALIGNED = 64


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write C-contiguous NumPy arrays (a CPU tensor's `.numpy()` is one)."""
    header: dict[str, Any] = {}
    at = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNED)
    with path.open("wb", buffering=0) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            _write(file, memoryview(array.reshape(-1)).cast("B"))


def load(path: Path, arrays: Mapping[str, Any]) -> None:
    """Read a file into arrays of the same names, shapes and types. ValueError names what differs."""
    with path.open("rb", buffering=0) as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        if set(header) != set(arrays):
            raise ValueError(f"{path} holds {sorted(header)}, expected {sorted(arrays)}")
        for name, array in arrays.items():
            entry = header[name]
            if entry["dtype"] != _NAMES[str(array.dtype)] or entry["shape"] != list(array.shape):
                raise ValueError(f"{path}: {name} is {entry}, expected {array.dtype} {list(array.shape)}")
            file.seek(8 + length + entry["data_offsets"][0])
            _read(file, memoryview(array.reshape(-1)).cast("B"), path)


def _write(file: Any, view: memoryview) -> None:
    while view:
        view = view[file.write(view) :]


def _read(file: Any, view: memoryview, path: Path) -> None:
    while view:
        got = file.readinto(view)
        if not got:
            raise ValueError(f"{path} is shorter than its header says")
        view = view[got:]
