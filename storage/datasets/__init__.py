"""Datasets: sharded, immutable, named by content, read in one global order by any number of workers.

Not here: what the samples mean, where datasets lie by policy (storage.tiers), and moving them (storage.handoff).
Trainers may import this package: it needs neither Prefect nor the flows.
"""

from storage.datasets.loader import Batch, Reader, Reading, open_dataset
from storage.datasets.manifest import Manifest, Shard

__all__ = ["Batch", "Manifest", "Reader", "Reading", "Shard", "open_dataset"]
