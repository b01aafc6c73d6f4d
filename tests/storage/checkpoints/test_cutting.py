"""Files are cut where their content says so: what did not change keeps its chunks."""

from __future__ import annotations

import io
import json
import random
import zipfile
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.checkpoints.cutting import LARGEST, WHOLE, cut, tensor_borders
from storage.objects import chunk_of

MIB = 1 << 20


def safetensors(tensors: dict[str, bytes]) -> bytes:
    header, at = {}, 0
    for name, data in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(tensors.values())


def torch_like(tensors: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, data in tensors.items():
            archive.writestr(zipfile.ZipInfo(f"archive/data/{name}"), data)
    return file.getvalue()


def digests(data: bytes) -> list[str]:
    view = memoryview(data)
    return [chunk_of(view[offset : offset + size]).digest for offset, size in cut(view)]


def check_cover(data: bytes) -> None:
    places = cut(memoryview(data))
    assert sum(size for _, size in places) == len(data)
    assert all(offset + size == following for (offset, size), (following, _) in pairwise(places))
    assert all(0 < size <= LARGEST for _, size in places)
    assert cut(memoryview(data)) == places


@settings(deadline=None, max_examples=30)
@given(size=st.sampled_from([0, 1, WHOLE - 1, WHOLE, WHOLE + 1, 3 * MIB, 9 * MIB + 5]), flat=st.booleans())
def test_chunks_cover_any_file(size: int, flat: bool) -> None:
    check_cover(bytes(size) if flat else random.Random(size).randbytes(size))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([0, 1, 1000, 300_000, MIB, 2 * MIB, 9 * MIB]), min_size=1, max_size=8), st.booleans())
def test_chunks_cover_tensor_files(sizes: list[int], zipped: bool) -> None:
    make = torch_like if zipped else safetensors
    check_cover(make({str(number): random.Random(number).randbytes(size) for number, size in enumerate(sizes)}))


@pytest.mark.parametrize("make", [safetensors, torch_like])
def test_a_frozen_half_keeps_its_chunks(make) -> None:
    chance = random.Random(1)
    frozen = {f"frozen.{number}": chance.randbytes(3 * MIB) for number in range(4)}
    step = [frozen | {f"trained.{n}": chance.randbytes(3 * MIB + extra) for n in range(4)} for extra in (0, 8)]
    first, second = (digests(make(each)) for each in step)
    shared = set(first) & set(second)
    assert len(shared) >= 4 and tensor_borders(memoryview(make(step[0]))) is not None


def test_small_tensors_share_chunks() -> None:
    tensors = {str(number): random.Random(number).randbytes(10_000) for number in range(500)}
    sizes = [size for _, size in cut(memoryview(safetensors(tensors)))]
    assert len(sizes) <= 7


def test_an_insertion_moves_few_chunks() -> None:
    data = np.random.default_rng(0).bytes(24 * MIB)
    first, second = digests(data), digests(data[:1000] + b"inserted" + data[1000:])
    assert len(set(first) - set(second)) <= 2
    assert max(size for _, size in cut(memoryview(data))) <= LARGEST


@pytest.mark.parametrize("broken", [b"PK\x03\x04" + bytes(2 * MIB), (9).to_bytes(8, "little") + b"{" + bytes(2 * MIB)])
def test_what_only_looks_like_a_tensor_file_is_cut_by_content(broken: bytes) -> None:
    assert tensor_borders(memoryview(broken)) is None
    check_cover(broken)
