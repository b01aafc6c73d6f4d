"""What people already have, as record batches: Parquet, JSONL, text, WebDataset tar, MDS, Hugging Face on disk.

Each reader streams: none holds more than a batch or one of its source's shards in memory. What a format can say and
a column cannot (pickles) is refused by name, never guessed.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from regions.errors import InputError, NotFoundError
from storage.datasets.rows import from_rows

Batches = Iterator[pa.RecordBatch]

_MDS_NUMBERS = {"int": "<i8"} | {
    f"{kind}{bits}": f"<{kind[0]}{bits // 8}"
    for kind, sizes in {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}.items()
    for bits in sizes
}
_MDS_RAW = ("bytes", "jpeg", "png", "jpeg_array", "jpegarray")


def sources_of(path: Path) -> list[Path]:
    """Return what of a path is imported, each by itself, sorted by name: a file, or all that a folder holds."""
    if not path.exists():
        raise NotFoundError(f"{path} does not exist: name a file or folder to import")
    if path.is_file() or (path / "index.json").exists() or (path / "state.json").exists():
        return [path]
    found = [each for each in sorted(path.rglob("*")) if each.is_file() and _kind(each) is not None]
    if not found:
        raise InputError(f"{path} holds nothing that can be imported: expected {_EXPECTED}", kind="import")
    return found


def read(path: Path) -> Batches:
    """Return the rows of one source, by what its name and content say it is."""
    kind = _kind(path)
    if kind is None:
        raise InputError(f"{path} is of no kind that can be imported: expected {_EXPECTED}", kind="import")
    return _READERS[kind](path)


def text_of(path: Path) -> str:
    """Return a text file's text."""
    with _opened(path) as file:
        return io.TextIOWrapper(file, encoding="utf-8").read()


def _kind(path: Path) -> str | None:
    if path.is_dir():
        return "mds" if (path / "index.json").exists() else "huggingface" if (path / "state.json").exists() else None
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    return _SUFFIXES.get(suffixes[-1].lower()) if suffixes else None


def _parquet(path: Path) -> Batches:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(path).iter_batches():
        yield batch.replace_schema_metadata(None)


def _arrow(path: Path) -> Batches:
    """An Arrow IPC file or stream."""
    with pa.memory_map(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        batches = (reader.get_batch(number) for number in range(reader.num_record_batches)) if is_file else iter(reader)
        for batch in batches:
            yield batch.replace_schema_metadata(None)


def _jsonl(path: Path) -> Batches:
    def rows() -> Iterator[Mapping[str, Any]]:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise InputError(f"{path}:{number} is no JSON: {error}", kind="import") from None
                if not isinstance(row, dict):
                    raise InputError(f"{path}:{number} is {type(row).__name__}, expected an object", kind="import")
                yield row

    return from_rows(rows())


def _text(path: Path) -> Batches:
    """One row for each line, without its end."""

    def rows() -> Iterator[Mapping[str, Any]]:
        with _opened(path) as file:
            for line in io.TextIOWrapper(file, encoding="utf-8"):
                yield {"text": line.rstrip("\r\n")}

    return from_rows(rows(), pa.schema([("text", pa.large_string())]))


def _webdataset(path: Path) -> Batches:
    """Members that share a name up to its first dot are one row; what follows the dot is the column."""

    def rows() -> Iterator[Mapping[str, Any]]:
        row: dict[str, Any] = {}
        with tarfile.open(path) as archive:
            for member in archive:
                if not member.isfile():
                    continue
                folder, _, name = member.name.rpartition("/")
                stem, _, column = name.partition(".")
                key = f"{folder}/{stem}" if folder else stem
                if row and row["__key__"] != key:
                    yield row
                    row = {}
                content = archive.extractfile(member)
                row |= {"__key__": key, column: content.read() if content is not None else b""}
        if row:
            yield row

    return from_rows(rows())


def _huggingface(path: Path) -> Batches:
    """A dataset saved to disk by Hugging Face datasets: its state names the Arrow files."""
    state = json.loads((path / "state.json").read_text())
    for entry in state["_data_files"]:
        yield from _arrow(path / entry["filename"])


def _mds(path: Path) -> Batches:
    """MosaicML's shards: an index, then for each shard the samples' offsets and their bytes."""
    index = json.loads((path / "index.json").read_text())
    for shard in index["shards"]:
        yield from from_rows(_mds_rows(path, shard))


def _mds_rows(path: Path, shard: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    names, encodings, sizes = shard["column_names"], shard["column_encodings"], shard["column_sizes"]
    data = _mds_data(path, shard)
    count = struct.unpack_from("<I", data)[0]
    offsets = np.frombuffer(data, "<u4", count + 1, 4)
    varying = [name for name, size in zip(names, sizes, strict=True) if not size]
    for start in offsets[:-1].tolist():
        lengths = dict(zip(varying, struct.unpack_from(f"<{len(varying)}I", data, start), strict=True))
        at = start + 4 * len(varying)
        row = {}
        for name, encoding, size in zip(names, encodings, sizes, strict=True):
            length = size or lengths[name]
            row[name] = _mds_value(encoding, data[at : at + length], path)
            at += length
        yield row


def _mds_data(path: Path, shard: Mapping[str, Any]) -> bytes:
    raw, zipped = shard["raw_data"], shard.get("zip_data")
    plain = path / raw["basename"]
    if plain.exists() or zipped is None:
        data: bytes = plain.read_bytes()
    else:
        codec = str(shard["compression"]).partition(":")[0]
        packed = (path / zipped["basename"]).read_bytes()
        codec = {"gz": "gzip", "br": "brotli"}.get(codec, codec)
        data = bytes(pa.decompress(packed, decompressed_size=raw["bytes"], codec=codec, asbytes=True))
    if len(data) != raw["bytes"]:
        raise InputError(f"{path / raw['basename']}: expected {raw['bytes']} B, found {len(data)} B", kind="import")
    return data


def _mds_value(encoding: str, data: bytes, path: Path) -> Any:
    kind, *details = encoding.split(":")
    if kind in _MDS_RAW:
        return data
    if kind == "str":
        return data.decode()
    if kind == "json":
        return json.dumps(json.loads(data))
    if kind in _MDS_NUMBERS:
        return np.frombuffer(data, _MDS_NUMBERS[kind])[0].item()
    if kind == "ndarray" and len(details) == 2:
        return np.frombuffer(data, _MDS_NUMBERS[details[0]]).tolist()
    raise InputError(
        f"{path}: column encoding {encoding!r} cannot be imported: expected bytes, str, json, numbers or arrays of a "
        "fixed type and shape",
        kind="import",
    )


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


_READERS: dict[str, Callable[[Path], Batches]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "jsonl": _jsonl,
    "text": _text,
    "webdataset": _webdataset,
    "mds": _mds,
    "huggingface": _huggingface,
}
_SUFFIXES = {
    ".parquet": "parquet", ".arrow": "arrow", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "text", ".md": "text",
    ".rst": "text", ".tar": "webdataset",
}  # fmt: skip
_EXPECTED = (
    "Parquet, Arrow, JSONL, text (also .gz), WebDataset .tar, or a folder of MDS (index.json) or of Hugging Face "
    "datasets (state.json)"
)
