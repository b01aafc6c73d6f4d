"""The record of a checkpoint: what it consists of and where in the run it stands. It exists once its record does.

Canonical JSON, named by step and term, written once, last and only if nothing stands there. No path outside the
folder, endpoint, bucket or region is in it, so it means the same in every store. Format: docs/decisions/0403.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from blake3 import blake3

from regions.errors import InputError, IntegrityError
from storage.objects import ChunkRef

FORMAT = "nightrelay-checkpoint/1"


@dataclass(frozen=True, slots=True, order=True)
class FileEntry:
    """One file of a checkpoint: '/'-separated path in its folder, size, BLAKE3, and its chunks in their order."""

    path: str
    size: int
    digest: str
    chunks: tuple[ChunkRef, ...]


@dataclass(frozen=True)
class Record:
    """A committed checkpoint. `samples` is the cursor, `epoch` the pass over the data it lies in.

    `metrics` are the trainer's, `parent` is the digest of the record this leg began from, `at` the run clock's
    instant of the commit, `fingerprint` decides whether going on is bit-exact or exact in its samples.
    """

    run: str
    stage: str
    step: int
    term: int
    samples: int
    files: tuple[FileEntry, ...]
    epoch: int = 0
    seed: int = 0
    dataset: str | None = None
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    parent: str | None = None
    at: datetime | None = None

    @property
    def key(self) -> str:
        """The record's key in every store."""
        return f"{folder_of(self.run, self.stage)}{name_of(self.step, self.term)}"

    @cached_property
    def data(self) -> bytes:
        """The record's canonical bytes."""
        document = {name: getattr(self, name) for name in _PLAIN_FIELDS} | {
            "format": FORMAT,
            "at": self.at.isoformat() if self.at else None,
            "files": [[f.path, f.size, f.digest, [[c.digest, c.size] for c in f.chunks]] for f in self.files],
        }
        return canonical(document)

    @cached_property
    def digest(self) -> str:
        """The record's identity: what a baton names."""
        return str(blake3(self.data).hexdigest())

    @cached_property
    def content(self) -> str:
        """The digest of paths and bytes alone: equal for equal checkpoints, whoever committed them when and where."""
        return content_digest(self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)

    @property
    def chunks(self) -> tuple[ChunkRef, ...]:
        """Every chunk once, in the order of the files."""
        return tuple(dict.fromkeys(chunk for entry in self.files for chunk in entry.chunks))

    def items(self) -> tuple[tuple[str, int, str], ...]:
        """Return (key, size, BLAKE3) of each chunk: what a handoff moves."""
        return tuple((chunk.key, chunk.size, chunk.digest) for chunk in self.chunks)

    def document(self) -> tuple[str, bytes]:
        """Return (key, bytes) of the record itself: what a handoff writes last."""
        return self.key, self.data

    @classmethod
    def parse(cls, data: bytes, key: str = "record") -> Record:
        """Return the record of these bytes; IntegrityError where they are none or do not belong under `key`."""
        try:
            document = json.loads(data)
            if document["format"] != FORMAT:
                raise IntegrityError(f"{key} has format {document['format']!r}; this version reads {FORMAT!r}")
            record = cls(
                **{name: document[name] for name in _PLAIN_FIELDS},
                at=datetime.fromisoformat(document["at"]) if document["at"] else None,
                files=tuple(
                    FileEntry(path, size, digest, tuple(ChunkRef(*chunk) for chunk in chunks))
                    for path, size, digest, chunks in document["files"]
                ),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError(f"{key} is no checkpoint record: {error}") from error
        vars(record)["data"] = data  # the identity is of these very bytes
        if key not in ("record", record.key):
            raise IntegrityError(f"{key} holds the record of {record.key}: it was copied under a wrong name")
        return record


_PLAIN_FIELDS = (
    "run", "stage", "step", "term", "samples", "epoch", "seed", "dataset", "fingerprint", "metrics", "parent",
)  # fmt: skip


def folder_of(run: str, stage: str) -> str:
    """Return the folder of a stage's records."""
    return f"{stage_folder(run, stage)}checkpoints/"


def begun_folder_of(run: str, stage: str) -> str:
    """Return the folder where saves that have begun are noted until they are committed."""
    return f"{stage_folder(run, stage)}begun/"


def stage_folder(run: str, stage: str) -> str:
    """Return the folder of a stage of a run. InputError for names that could not be one part of a key."""
    for name in (run, stage):
        if not name or "/" in name or name in (".", ".."):
            raise InputError(f"{name!r} cannot name a run or stage: expected one name without '/'", kind="key")
    return f"runs/{run}/{stage}/"


def name_of(step: int, term: int) -> str:
    """Return a record's name: its numbers are padded, so that the order of names is the order of steps."""
    if step < 0 or term < 0:
        raise InputError(f"step {step}, term {term}: both must be 0 or more", kind="checkpoint")
    return f"{step:012d}-{term:06d}.json"


def content_digest(files: Iterable[FileEntry]) -> str:
    """Return the digest of a checkpoint's paths, sizes and bytes, and of nothing else."""
    return str(blake3(canonical(sorted([entry.path, entry.size, entry.digest] for entry in files))).hexdigest())


def canonical(document: Any) -> bytes:
    """Return a document's one JSON form."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
