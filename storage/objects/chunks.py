"""Chunks: bytes named by their own digest: equal bytes are stored and sent once, and any reader can verify them.

A chunk never changes: it is written once, and whoever finds it under its key may use it after checking its digest.
"""

from __future__ import annotations

from dataclasses import dataclass

from blake3 import blake3

CHUNKS = "chunks/"
"""The folder of all chunks in every store."""


@dataclass(frozen=True, slots=True, order=True)
class ChunkRef:
    """A chunk by identity: the BLAKE3 digest (64 hex digits) and the size of its bytes."""

    digest: str
    size: int

    @property
    def key(self) -> str:
        """The chunk's key in any store: `chunks/<first 2 digits>/<digest>`. The digits spread load over a bucket."""
        return chunk_key(self.digest)


def chunk_key(digest: str) -> str:
    """Return the key of the chunk with this digest."""
    return f"{CHUNKS}{digest[:2]}/{digest}"


def digest_in(key: str) -> str | None:
    """Return the digest a key promises, or None for a key that is not a chunk's."""
    if not key.startswith(CHUNKS):
        return None
    digest = key.rpartition("/")[2]
    is_hex = len(digest) == 64 and not digest.strip("0123456789abcdef")
    return digest if is_hex and key == chunk_key(digest) else None


def chunk_of(data: bytes | bytearray | memoryview) -> ChunkRef:
    """Return the reference of these bytes."""
    return ChunkRef(blake3(data).hexdigest(), memoryview(data).nbytes)
