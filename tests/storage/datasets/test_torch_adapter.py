"""The reader under torch's data loaders: the same global order with any number of workers, resumed from one integer."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

from torch.utils.data import DataLoader  # noqa: E402

from regions.errors import InputError  # noqa: E402
from storage.datasets import open_dataset  # noqa: E402
from storage.datasets.torch_adapter import TorchBatches  # noqa: E402
from tests.storage.datasets.datasets import build  # noqa: E402

pytestmark = pytest.mark.torch
SETTINGS = {"batch": 8, "seed": 2, "epochs": 2, "environ": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    build(folder, 61)
    return folder


def ids(batches) -> list[list[int]]:
    return [batch["ids"].tolist() for batch in batches]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_plain_loader_resumes_from_the_cursor_with_any_workers(folder: Path, workers: int) -> None:
    want = ids(TorchBatches(open_dataset(folder, **SETTINGS)))
    first = DataLoader(TorchBatches(open_dataset(folder, **SETTINGS)), batch_size=None, num_workers=workers)
    taken, cursor = [], 0
    for batch in first:
        assert isinstance(batch["tokens"], torch.Tensor) and isinstance(batch["text"], list)
        taken.append(batch["ids"].tolist())
        cursor = batch["samples"]
        if len(taken) == 5:
            break
    rest = DataLoader(
        TorchBatches(open_dataset(folder, cursor=cursor, **SETTINGS)), batch_size=None, num_workers=3 - workers
    )
    assert taken + ids(rest) == want


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_goes_on_where_the_trainer_was(folder: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

    def loader():
        batches = TorchBatches(open_dataset(folder, **SETTINGS))
        return stateful.StatefulDataLoader(batches, batch_size=None, num_workers=workers)

    want = ids(loader())
    first = loader()
    taken, state = [], {}
    for batch in first:
        taken.append(batch["ids"].tolist())
        if len(taken) == 5:
            state = first.state_dict()
            break
    second = loader()
    second.load_state_dict(state)
    assert taken + ids(second) == want


def test_a_state_of_other_settings_is_refused(folder: Path) -> None:
    state = TorchBatches(open_dataset(folder, **SETTINGS)).state_dict()
    with pytest.raises(InputError, match="seed: saved 2, now 3"):
        TorchBatches(open_dataset(folder, **SETTINGS | {"seed": 3})).load_state_dict(state)
