"""The reader as a torch IterableDataset of whole batches: use it with `batch_size=None`, with any number of workers.

    loader = DataLoader(TorchBatches(open_dataset(batch=32)), batch_size=None, num_workers=2)

Each batch carries `samples`, the cursor after it: saving that alone resumes exactly, also with another number of
workers (`open_dataset(cursor=...)`). torchdata's StatefulDataLoader works as well, but wants its own number back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from storage.datasets.loader import Reader


class TorchBatches(IterableDataset):  # type: ignore[misc]
    """Yields dictionaries of this rank's columns (arrays as tensors) with `ids`, `epoch`, `size` and `samples`."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader
        self._taken = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield batches; worker w of n reads every n-th, so that their turns give the global order."""
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker is not None else (0, 1)
        for batch in self._reader.batches(first=first + self._taken * step, step=step):
            self._taken += 1
            columns = {name: _tensor(column) for name, column in batch.items()}
            yield columns | {
                "ids": torch.from_numpy(batch.ids),
                "epoch": batch.epoch,
                "size": batch.size,
                "samples": batch.samples,
            }

    def state_dict(self) -> dict[str, Any]:
        """Return the state: where the reader began and how many batches this worker has given since."""
        return {"reader": self._reader.state_dict(), "taken": self._taken}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; refused by name under other settings."""
        self._reader.load_state_dict(state["reader"])
        self._taken = int(state["taken"])


def _tensor(column: Any) -> Any:
    if not isinstance(column, np.ndarray):
        return column
    return torch.from_numpy(column if column.flags.writeable and column.flags.c_contiguous else column.copy())
