"""Where to cut a file into chunks, so that what did not change keeps its chunks.

Tensor files (safetensors, torch's zip) are cut at their tensors: a frozen tensor is the same chunk in every
checkpoint, whatever grows before it. Other large files are cut where their content says so (a gear hash over the
last 32 bytes), which survives insertions. Only bytes decide: equal files are cut alike everywhere.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

WHOLE = 1 << 20
"""Files up to this size are one chunk, and so are runs of small tensors."""
LARGEST = 8 << 20
"""No chunk is larger: what one request sends again, and what a thread holds in memory."""

_SCAN = 1 << 17
_MASK = np.uint32(((1 << 20) - 1) << 12)  # the upper bits, which all of the last bytes reach; a cut each MiB or so
_GEAR = np.frombuffer(blake3(b"nightrelay: cut where the content says so").digest(length=1024), "<u4")


def cut(data: memoryview) -> list[tuple[int, int]]:
    """Return (offset, size) of each chunk of a file, in order; they cover it exactly. An empty file has none."""
    size = len(data)
    if size <= WHOLE:
        return [(0, size)] if size else []
    borders = tensor_borders(data)
    places = _by_content(data) if borders is None else _by_borders(borders, size)
    return [(start, end - start) for start, end in pairwise([*places, size])]


def tensor_borders(data: memoryview) -> list[int] | None:
    """Return the offsets where tensors begin or end, or None where the file is no tensor file we know."""
    found = _zip_borders(data) if bytes(data[:4]) == b"PK\x03\x04" else _safetensors_borders(data)
    if found is None:
        return None
    inside = sorted({border for border in found if 0 < border < len(data)})
    return inside or None


def _safetensors_borders(data: memoryview) -> list[int] | None:
    header = int.from_bytes(data[:8], "little")
    if not 2 <= header <= min(100 << 20, len(data) - 8) or data[8] != ord("{"):
        return None
    try:
        entries = json.loads(bytes(data[8 : 8 + header]))
        spans = [entry["data_offsets"] for name, entry in entries.items() if name != "__metadata__"]
        return [8 + header, *(8 + header + int(end) for span in spans for end in span)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _zip_borders(data: memoryview) -> list[int] | None:
    """The entries of a zip file, which is what torch.save writes: each tensor is one, with the header that names it."""
    try:
        with zipfile.ZipFile(_Reading(data)) as archive:
            return [*(entry.header_offset for entry in archive.infolist()), archive.start_dir]
    except (zipfile.BadZipFile, ValueError, OSError):
        return None


def _by_borders(borders: Iterable[int], size: int) -> Iterator[int]:
    """Cut so that a tensor of WHOLE bytes or more begins a chunk of its own, and smaller ones share one up to WHOLE."""
    yield 0
    last = 0
    for start, end in pairwise([0, *borders, size]):
        if start > last and end - last > WHOLE:
            yield start
            last = start
        if end - start >= WHOLE:
            yield from range(start + LARGEST, end, LARGEST)
            if end < size:
                yield end
            last = end


def _by_content(data: memoryview) -> Iterator[int]:
    start, size = 0, len(data)
    while True:
        yield start
        if size - start <= WHOLE:
            return
        start = _next_cut(data, start + WHOLE, min(start + LARGEST, size))
        if start >= size:
            return


def _next_cut(data: memoryview, first: int, last: int) -> int:
    """Return the first place in [first, last) that the content marks, else `last`. 32 bytes before count as well."""
    for begin in range(first, last, _SCAN):
        end = min(begin + _SCAN, last)
        marks = np.flatnonzero(_gear(data[begin - 32 : end])[32:] & _MASK == 0)
        if len(marks):
            return begin + int(marks[0])
    return last


def _gear(data: memoryview) -> NDArray[np.uint32]:
    """Return the gear hash after each byte: the sum of the last 32 bytes' numbers, each shifted by its age."""
    rolled = _GEAR[np.frombuffer(data, np.uint8)]
    for age in (1, 2, 4, 8, 16):
        older = rolled[:-age] << np.uint32(age)
        rolled = rolled.copy()
        rolled[age:] += older
    return rolled


class _Reading(io.RawIOBase):
    """A memoryview as a file that zipfile can seek in, without a copy of the whole."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._data)}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._data) if size < 0 else min(self._at + size, len(self._data))
        piece = bytes(self._data[self._at : end])
        self._at = max(self._at, end)
        return piece
