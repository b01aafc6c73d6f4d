"""Object stores: one protocol, its drivers and wrappers. Importing this loads no cloud client; opening a store may.

Not here: what the objects mean (datasets, checkpoints, tiers) and who moves them between stores (storage.handoff).
"""

from storage.objects.chunks import ChunkRef, chunk_key, chunk_of
from storage.objects.interface import Body, Capabilities, FileRange, Part, Stat, Store, Upload
from storage.objects.opening import open_store

__all__ = [
    "Body",
    "Capabilities",
    "ChunkRef",
    "FileRange",
    "Part",
    "Stat",
    "Store",
    "Upload",
    "chunk_key",
    "chunk_of",
    "open_store",
]
