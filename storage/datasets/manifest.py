"""The manifest: what a dataset consists of. Its digest is the dataset's id, and it is written last.

A shard is an Arrow IPC or Parquet file that any reader of those formats opens; a block is one record batch or row
group of it, and its place in the file stands here, so that one range request gives one verified block. The manifest
is canonical JSON, `manifest-<digest>.json`, beside its shards; nothing in it says where it lies.
On-disk format: docs/decisions/0402.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from regions.errors import IntegrityError

FORMAT = "nightrelay-dataset/1"
PREFIX = "manifest-"

ShardFormat = Literal["arrow", "parquet"]

_BLOCK_COLUMNS = {"offset": "<i8", "length": "<i8", "rows": "<i8", "check": "<u8"}


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a dataset: its name in the dataset's folder, and what is in it. `digest` is BLAKE3, in hex."""

    name: str
    rows: int
    size: int
    digest: str
    blocks: int


@dataclass(frozen=True, eq=False)
class Blocks:
    """Where each block lies in its shard (bytes), its rows and the CRC-64/XZ of its bytes; one entry for each block."""

    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    rows: NDArray[np.int64]
    check: NDArray[np.uint64]

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int, int, int]]) -> Blocks:
        """Return the table of (offset, length, rows, check) entries."""
        offset, length, rows, check = zip(*entries, strict=True) if (entries := list(entries)) else ((), (), (), ())
        return cls(
            np.array(offset, "<i8"), np.array(length, "<i8"), np.array(rows, "<i8"), np.array(check, dtype="<u8")
        )

    @classmethod
    def joined(cls, tables: Sequence[Blocks]) -> Blocks:
        """Return the tables one after the other."""
        columns = (np.concatenate([getattr(table, name) for table in tables]) for name in _BLOCK_COLUMNS)
        return cls(*columns) if tables else cls.of([])

    def document(self) -> dict[str, str]:
        """Return the table as JSON holds it: each column as base64 of little-endian 64-bit integers."""
        return {
            name: base64.b64encode(getattr(self, name).astype(kind).tobytes()).decode()
            for name, kind in _BLOCK_COLUMNS.items()
        }

    @classmethod
    def parse(cls, document: Mapping[str, str]) -> Blocks:
        """Return the table that `document()` gave."""
        return cls(*(np.frombuffer(base64.b64decode(document[name]), kind) for name, kind in _BLOCK_COLUMNS.items()))


@dataclass(frozen=True, eq=False)
class Manifest:
    """A dataset by content. `statistics` has one entry for each column; `about` is free text for people and keys."""

    shards: tuple[Shard, ...]
    blocks: Blocks
    schema: bytes
    format: ShardFormat = "arrow"
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def data(self) -> bytes:
        """The manifest's canonical bytes."""
        document = {
            "format": FORMAT,
            "shards": [[s.name, s.rows, s.size, s.digest, s.blocks] for s in self.shards],
            "blocks": self.blocks.document(),
            "schema": base64.b64encode(self.schema).decode(),
            "shard_format": self.format,
            "statistics": self.statistics,
            "about": self.about,
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @cached_property
    def digest(self) -> str:
        """The dataset's id: the BLAKE3 of its manifest."""
        return str(blake3(self.data).hexdigest())

    @property
    def key(self) -> str:
        """The manifest's name in the dataset's folder."""
        return f"{PREFIX}{self.digest}.json"

    @property
    def rows(self) -> int:
        """Samples in the dataset."""
        return sum(shard.rows for shard in self.shards)

    @property
    def size(self) -> int:
        """Bytes of all shards."""
        return sum(shard.size for shard in self.shards)

    def items(self) -> tuple[tuple[str, int, str], ...]:
        """Return (key, size, BLAKE3) of each shard, keys relative to the dataset's folder: what a handoff moves."""
        return tuple((shard.name, shard.size, shard.digest) for shard in self.shards)

    def document(self) -> tuple[str, bytes]:
        """Return (key, bytes) of the manifest itself: what a handoff writes last."""
        return self.key, self.data

    @classmethod
    def parse(cls, data: bytes, name: str = "manifest") -> Manifest:
        """Return the manifest of these bytes. IntegrityError where they are none, or not the ones `name` promises."""
        promised = name.rpartition("/")[2].removeprefix(PREFIX).removesuffix(".json")
        found = blake3(data).hexdigest()
        if len(promised) == 64 and promised != found:
            raise IntegrityError(f"{name} is damaged: expected BLAKE3 {promised}, found {found}; fetch it again")
        try:
            document = json.loads(data)
            if document["format"] != FORMAT:
                raise IntegrityError(f"{name} has format {document['format']!r}; this version reads {FORMAT!r}")
            manifest = cls(
                shards=tuple(Shard(*entry) for entry in document["shards"]),
                blocks=Blocks.parse(document["blocks"]),
                schema=base64.b64decode(document["schema"]),
                format=document["shard_format"],
                statistics=document["statistics"],
                about=document["about"],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IntegrityError(f"{name} is no dataset manifest: {error}; name the folder or its manifest") from error
        vars(manifest)["data"] = data  # the id is of these very bytes, not of how this version would write them
        return manifest


def is_manifest(name: str) -> bool:
    """Say whether a file of this name in a dataset's folder is a manifest."""
    return name.startswith(PREFIX) and name.endswith(".json")
