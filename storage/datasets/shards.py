"""Writing: from record batches to verified shards in a store, the manifest last.

Shards are named by their digest, so a build that was killed and is run again writes only what is missing, and two
builds of the same rows give the same dataset, name for name.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from blake3 import blake3
from fastcrc.crc64 import xz

from regions.errors import InputError, NotFoundError
from storage.datasets.manifest import Blocks, Manifest, Shard, ShardFormat
from storage.datasets.statistics import Statistics
from storage.objects import Store

_WRITERS = 2
"""Shards being hashed and put while the next one is encoded: each holds a whole shard in memory."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a dataset is cut: target bytes of a block and a shard, the file format and the compression inside it."""

    block_bytes: int = 1 << 20
    shard_bytes: int = 64 << 20
    format: ShardFormat = "arrow"
    compression: str | None = None

    def __post_init__(self) -> None:
        """Refuse sizes and codecs that make no file."""
        if not 0 < self.block_bytes <= self.shard_bytes:
            raise InputError(
                f"blocks of {self.block_bytes} B in shards of {self.shard_bytes} B: expected 0 < block <= shard",
                kind="cut",
            )
        if self.compression not in (None, "zstd", "lz4"):
            raise InputError(f"compression {self.compression!r}: expected zstd, lz4 or none", kind="cut")


@dataclass(frozen=True, slots=True)
class EncodedShard:
    """A shard's bytes with what the manifest says of it."""

    shard: Shard
    blocks: Blocks
    data: memoryview


def write(
    store: Store,
    batches: Iterable[pa.RecordBatch],
    *,
    cut: Cut | None = None,
    folder: str = "",
    about: Mapping[str, str] | None = None,
) -> Manifest:
    """Write a dataset of these rows into `folder` of a store; return its manifest, which was written last."""
    cut = cut or Cut()
    schema, written, statistics = write_shards(store, batches, cut, folder)
    manifest = Manifest(
        shards=tuple(shard for shard, _ in written),
        blocks=Blocks.joined([blocks for _, blocks in written]),
        schema=schema,
        format=cut.format,
        statistics=statistics,
        about=dict(about or {}),
    )
    store.put(join(folder, manifest.key), manifest.data)
    return manifest


def write_shards(
    store: Store, batches: Iterable[pa.RecordBatch], cut: Cut, folder: str = ""
) -> tuple[bytes, list[tuple[Shard, Blocks]], dict[str, dict[str, Any]]]:
    """Write the shards of these rows; return schema, shards and statistics for a manifest."""
    statistics: Statistics | None = None
    schema: pa.Schema | None = None
    encoded: list[Future[tuple[Shard, Blocks]]] = []
    with ThreadPoolExecutor(_WRITERS) as pool:
        for number, group in enumerate(_groups(_blocks(batches, cut.block_bytes), cut.shard_bytes)):
            schema = schema or group[0].schema
            statistics = statistics or Statistics(schema)
            for block in group:
                statistics.add(block)
            if number >= _WRITERS:
                encoded[number - _WRITERS].result()
            encoded.append(pool.submit(_encode_and_put, store, folder, group, cut))
        written = [future.result() for future in encoded]
    if schema is None or statistics is None:
        raise InputError("the source gave no rows: a dataset needs at least one sample", kind="empty-dataset")
    return schema.serialize().to_pybytes(), written, statistics.document()


def join(folder: str, name: str) -> str:
    """Return the key of a name in a folder ('' is the store's root)."""
    return f"{folder.rstrip('/')}/{name}" if folder else name


def encode(blocks: list[pa.RecordBatch], cut: Cut) -> EncodedShard:
    """Return the shard that holds these blocks, one record batch or row group each."""
    sink = io.BytesIO()
    places = _write_parquet(sink, blocks, cut) if cut.format == "parquet" else _write_arrow(sink, blocks, cut)
    data = sink.getbuffer()
    digest = blake3(data).hexdigest()
    suffix = "parquet" if cut.format == "parquet" else "arrow"
    table = Blocks.of((offset, length, rows, xz(data[offset : offset + length])) for offset, length, rows in places)
    rows = sum(block.num_rows for block in blocks)
    shard = Shard(f"shard-{digest[:32]}.{suffix}", rows, len(data), digest, len(places))
    return EncodedShard(shard, table, data)


def arrow_places(data: Any) -> list[tuple[int, int, int]]:
    """Return (offset, length, rows) of each record batch of an Arrow IPC file.

    They are read back from the file: the writer's own position is no help, since it emits the header lazily.
    """
    reader = pa.BufferReader(data)
    reader.seek(8)  # "ARROW1" and two bytes of padding; then messages as in a stream, then the footer
    schema = pa.ipc.read_schema(reader)
    places: list[tuple[int, int, int]] = []
    while True:
        offset = reader.tell()
        try:
            message = pa.ipc.read_message(reader)
        except EOFError:
            return places
        if message.type == "record batch":
            batch = pa.ipc.read_record_batch(message, schema)
            places.append((offset, reader.tell() - offset, batch.num_rows))


def parquet_places(data: Any) -> list[tuple[int, int, int]]:
    """Return (offset, length, rows) of each row group of a Parquet file, then of its footer, which has no rows."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(pa.BufferReader(data))
    places = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        columns = [group.column(number) for number in range(group.num_columns)]
        starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
        ends = [start + column.total_compressed_size for start, column in zip(starts, columns, strict=True)]
        places.append((min(starts), max(ends) - min(starts), group.num_rows))
    footer = 8 + int.from_bytes(data[-8:-4], "little")  # the footer, its length, "PAR1"
    return [*places, (len(data) - footer, footer, 0)]


def _encode_and_put(store: Store, folder: str, blocks: list[pa.RecordBatch], cut: Cut) -> tuple[Shard, Blocks]:
    encoded = encode(blocks, cut)
    key = join(folder, encoded.shard.name)
    if not stands(store, key, encoded.shard.size):
        store.put(key, encoded.data)
    return encoded.shard, encoded.blocks


def stands(store: Store, key: str, size: int) -> bool:
    """Say whether an object of this size is there."""
    try:
        return store.head(key).size == size
    except NotFoundError:
        return False


def _write_arrow(sink: io.BytesIO, blocks: list[pa.RecordBatch], cut: Cut) -> list[tuple[int, int, int]]:
    options = pa.ipc.IpcWriteOptions(compression=cut.compression)
    with pa.ipc.new_file(sink, blocks[0].schema, options=options) as writer:
        for block in blocks:
            writer.write_batch(block)
    return arrow_places(sink.getbuffer())


def _write_parquet(sink: io.BytesIO, blocks: list[pa.RecordBatch], cut: Cut) -> list[tuple[int, int, int]]:
    from pyarrow import parquet

    with parquet.ParquetWriter(sink, blocks[0].schema, compression=cut.compression or "none") as writer:
        for block in blocks:
            writer.write_table(pa.Table.from_batches([block]), row_group_size=block.num_rows)
    return parquet_places(sink.getbuffer())


def _blocks(batches: Iterable[pa.RecordBatch], target: int) -> Iterator[pa.RecordBatch]:
    """Cut and join batches of any size to blocks near `target` bytes."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        for piece in _pieces(batch, target):
            pending.append(piece)
            size += piece.nbytes
            if size >= target:
                yield _joined(pending)
                pending, size = [], 0
    if pending:
        yield _joined(pending)


def _pieces(batch: pa.RecordBatch, target: int) -> Iterator[pa.RecordBatch]:
    step = max(1, target * batch.num_rows // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    return pa.Table.from_batches(pieces).combine_chunks().to_batches()[0]


def _groups(blocks: Iterable[pa.RecordBatch], target: int) -> Iterator[list[pa.RecordBatch]]:
    """Gather blocks to shards near `target` bytes."""
    group: list[pa.RecordBatch] = []
    size = 0
    for block in blocks:
        if group and size + block.nbytes > target:
            yield group
            group, size = [], 0
        group.append(block)
        size += block.nbytes
    if group:
        yield group
