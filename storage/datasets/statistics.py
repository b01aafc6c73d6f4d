"""What a manifest says of each column: its type, nulls, the range of numbers or of lengths, the bytes."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa


class Statistics:
    """Gathers over blocks; ranges are over finite values."""

    def __init__(self, schema: pa.Schema) -> None:
        self._columns: dict[str, dict[str, Any]] = {
            field.name: {"type": str(field.type), "nulls": 0, "bytes": 0} for field in schema
        }

    def add(self, block: pa.RecordBatch) -> None:
        """Take in one block."""
        for name, column in zip(block.schema.names, block.columns, strict=True):
            entry = self._columns[name]
            entry["nulls"] += column.null_count
            entry["bytes"] += column.nbytes
            for what, numbers in _numbers(column):
                _widen(entry, what, numbers)

    def document(self) -> dict[str, dict[str, Any]]:
        """Return the statistics by column."""
        return self._columns


def _numbers(column: pa.Array) -> list[tuple[str, pa.Array]]:
    """What of a column has a range: numbers themselves, and lengths of what varies in size."""
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return [("value", column)]
    if pa.types.is_fixed_size_list(kind) and pa.types.is_integer(kind.value_type):
        return [("value", column.flatten())]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [("length", pc.binary_length(column))]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [("length", pc.utf8_length(column))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [("length", pc.list_value_length(column))]
    return []


def _widen(entry: dict[str, Any], what: str, numbers: pa.Array) -> None:
    import pyarrow.compute as pc

    found = pc.min_max(numbers).as_py()
    for end, choose in (("min", min), ("max", max)):
        value = found[end]
        if value is not None and math.isfinite(value):
            name = f"{end}_{what}"
            entry[name] = choose(entry.get(name, value), value)
