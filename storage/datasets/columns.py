"""From a block's bytes to rows: views where the layout allows it, Python objects where it does not."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from regions.errors import InternalError
from storage.datasets.manifest import ShardFormat

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """The verified bytes of one block. Parquet needs its place as well, and the shard's footer, verified likewise."""

    data: Any
    offset: int = 0
    number: int = 0
    footer: Any = b""


class Column(Protocol):
    """One column of one block."""

    def room(self, count: int) -> Any:
        """Return what `count` rows can be placed into."""
        ...

    def place(self, room: Any, where: Rows, rows: Rows) -> None:
        """Put this block's `rows` at the places `where`."""
        ...


class FixedColumn:
    """Numbers, fixed-size lists of numbers, fixed-size binary: rows of equal shape, a view of the block's bytes."""

    def __init__(self, view: NDArray[Any]) -> None:
        self.view = view

    def room(self, count: int) -> NDArray[Any]:
        """Return an array of `count` rows."""
        return np.empty((count, *self.view.shape[1:]), self.view.dtype)

    def place(self, room: NDArray[Any], where: Rows, rows: Rows) -> None:
        """Copy rows."""
        room[where] = self.view.take(rows, axis=0)


class BytesColumn:
    """Binary and text of any length: offsets into one stretch of bytes."""

    def __init__(self, offsets: NDArray[Any], data: memoryview, text: bool) -> None:
        self._offsets, self._data, self._text = offsets, data, text

    def room(self, count: int) -> list[Any]:
        """Return a list of `count` places."""
        return [None] * count

    def place(self, room: list[Any], where: Rows, rows: Rows) -> None:
        """Copy each row's bytes out: a view would keep the whole block, and cannot be sent between processes."""
        data, text = self._data, self._text
        starts, ends = self._offsets[rows].tolist(), self._offsets[rows + 1].tolist()
        for place, start, end in zip(where.tolist(), starts, ends, strict=True):
            value = data[start:end].tobytes()
            room[place] = value.decode() if text else value


class ObjectColumn:
    """Everything else (nested, nullable): Python objects, as Arrow gives them."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def room(self, count: int) -> list[Any]:
        """Return a list of `count` places."""
        return [None] * count

    def place(self, room: list[Any], where: Rows, rows: Rows) -> None:
        """Take the rows."""
        for place, value in zip(where.tolist(), self._array.take(pa.array(rows)).to_pylist(), strict=True):
            room[place] = value


class Decoder:
    """Turns the verified bytes of a block into its columns. Holds no file and no state but the schema."""

    def __init__(self, schema: bytes, format: ShardFormat, wanted: Sequence[str] | None) -> None:
        self.schema = pa.ipc.read_schema(pa.py_buffer(schema))
        self._format = format
        self.names = tuple(self.schema.names if wanted is None else wanted)
        self._indices = [self.schema.get_field_index(name) for name in self.names]

    def missing(self) -> list[str]:
        """Return the wanted columns that the dataset does not have."""
        return [name for name, index in zip(self.names, self._indices, strict=True) if index < 0]

    def columns(self, block: Block) -> tuple[Column, ...]:
        """Return the wanted columns of a block."""
        if self._format == "parquet":
            arrays = parquet_arrays(block, self.names)
        else:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(pa.py_buffer(block.data)), self.schema)
            arrays = [batch.column(index) for index in self._indices]
        return tuple(column_of(array) for array in arrays)


def column_of(array: pa.Array) -> Column:
    """Return the column that reads this array with the fewest copies."""
    kind = array.type
    if array.null_count:
        return ObjectColumn(array)
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        raw = np.frombuffer(array.buffers()[1], np.uint8)
        return FixedColumn(raw[array.offset * width :][: len(array) * width].reshape(len(array), width))
    shape = [len(array)]
    flat = array
    while pa.types.is_fixed_size_list(flat.type):
        shape.append(flat.type.list_size)
        flat = flat.flatten()
    if flat.null_count == 0 and (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
        return FixedColumn(flat.to_numpy(zero_copy_only=True).reshape(shape))
    if pa.types.is_boolean(kind):
        return FixedColumn(array.to_numpy(zero_copy_only=False))
    return _bytes_column(array) or ObjectColumn(array)


def parquet_arrays(block: Block, names: Sequence[str]) -> list[pa.Array]:
    """Return the named columns of a row group, decoded from its own bytes and the footer alone."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(pa.BufferReader(block.footer))
    source = pa.PythonFile(_Stretch(block.data, block.offset), mode="r")
    table = parquet.ParquetFile(source, metadata=metadata).read_row_group(block.number, columns=list(names))
    return [table.column(name).combine_chunks() for name in names]


class _Stretch(io.RawIOBase):
    """A file of which only one stretch is here."""

    def __init__(self, data: Any, offset: int) -> None:
        self._data, self._offset, self._at = memoryview(data), offset, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._offset + len(self._data)}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        start = self._at - self._offset
        end = len(self._data) if size < 0 else min(start + size, len(self._data))
        if start < 0:
            raise InternalError(f"read at {self._at} of a row group that begins at {self._offset}")
        self._at = self._offset + max(start, end)
        return bytes(self._data[start:end])


def _bytes_column(array: pa.Array) -> BytesColumn | None:
    kinds: Mapping[Any, tuple[Any, bool]] = {
        pa.binary(): (np.int32, False),
        pa.string(): (np.int32, True),
        pa.large_binary(): (np.int64, False),
        pa.large_string(): (np.int64, True),
    }
    found = kinds.get(array.type)
    if found is None:
        return None
    _, offsets, data = array.buffers()
    view = np.frombuffer(offsets, found[0])[array.offset : array.offset + len(array) + 1]
    return BytesColumn(view, memoryview(data if data is not None else b""), found[1])
