"""From what people have (tokens, text, rows) to the record batches a dataset is written from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from regions.errors import InputError

_AT_ONCE = 4096


def from_tokens(
    arrays: Iterable[NDArray[Any]], length: int, *, stride: int | None = None, column: str = "tokens"
) -> Iterator[pa.RecordBatch]:
    """Cut a stream of token arrays into samples of `length`, each beginning `stride` (default: length) after the last.

    What is left at the end and fills no sample is dropped. The arrays must be of one integer type.
    """
    stride = stride or length
    if not 0 < stride <= length:
        raise InputError(f"stride {stride} of samples of {length} tokens: expected 1 to {length}", kind="tokens")
    left: NDArray[Any] | None = None
    for array in arrays:
        stream = array if left is None else np.concatenate((left, array))
        count = max(0, (len(stream) - length) // stride + 1)
        if count:
            samples = np.lib.stride_tricks.sliding_window_view(stream, length)[::stride][:count]
            for begin in range(0, count, _AT_ONCE):
                flat = pa.array(np.ascontiguousarray(samples[begin : begin + _AT_ONCE]).reshape(-1))
                yield pa.record_batch({column: pa.FixedSizeListArray.from_arrays(flat, length)})
        left = stream[count * stride :]


def from_text(texts: Iterable[str], length: int, *, stride: int | None = None) -> Iterator[pa.RecordBatch]:
    """Cut texts into samples of `length` UTF-8 bytes in the column `tokens`."""
    encoded = (np.frombuffer(text.encode(), np.uint8) for text in texts)
    return from_tokens(encoded, length, stride=stride)


def from_rows(rows: Iterable[Mapping[str, Any]], schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """Gather rows to record batches. Without a schema the first rows decide the types; a later misfit is refused."""
    pending: list[Mapping[str, Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) == _AT_ONCE:
            batch = _batch(pending, schema)
            schema = batch.schema
            yield batch
            pending = []
    if pending:
        yield _batch(pending, schema)


def _batch(rows: list[Mapping[str, Any]], schema: pa.Schema | None) -> pa.RecordBatch:
    try:
        return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"the rows are not of one kind: {error}; give a schema", kind="rows") from error
