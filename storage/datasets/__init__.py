"""Datasets: sharded, immutable, named by content, read in one global order by any number of workers.

Not here: what the samples mean, where datasets lie by policy (storage.tiers), and moving them (storage.handoff).
Trainers may import this package: it needs neither Prefect nor the flows.
"""

from storage.datasets.loader import Reader, open_dataset
from storage.datasets.manifest import Manifest, Shard
from storage.datasets.mixture import Mixture
from storage.datasets.reading import Batch, Reading
from storage.datasets.rows import from_rows, from_text, from_tokens
from storage.datasets.shards import Cut, write

__all__ = [
    "Batch",
    "Cut",
    "Manifest",
    "Mixture",
    "Reader",
    "Reading",
    "Shard",
    "from_rows",
    "from_text",
    "from_tokens",
    "open_dataset",
    "write",
]
