"""What torch, safetensors and DCP write is cut at its tensors and comes back so that they can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")

from storage.checkpoints import Record, commit, restore  # noqa: E402
from storage.checkpoints.cutting import cut, tensor_borders  # noqa: E402
from storage.objects import Store, open_store  # noqa: E402

pytestmark = pytest.mark.torch
MIB = 1 << 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "store").as_uri())


def tensors(step: int, frozen: int = 4, trained: int = 4) -> dict[str, torch.Tensor]:
    """Frozen tensors are the same in every step; trained ones are not."""
    made = {}
    for number in range(frozen + trained):
        chance = torch.Generator().manual_seed(number if number < frozen else 1000 * step + number)
        made[f"layer.{number}"] = torch.randn(MIB // 2, generator=chance)  # 2 MiB each
    return made


def commit_step(store: Store, folder: Path, step: int) -> Record:
    return commit(store, folder, run="r", stage="s", step=step, term=1, samples=step)


def save_torch(folder: Path, step: int) -> None:
    torch.save({"model": tensors(step), "step": step}, folder / "pytorch_model.bin")


def save_safetensors(folder: Path, step: int) -> None:
    numbers = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    numbers.save_file(tensors(step), folder / "model.safetensors")


@pytest.mark.parametrize("save", [save_torch, save_safetensors])
def test_a_frozen_half_is_stored_once(store: Store, tmp_path: Path, save) -> None:
    made = []
    for step in (1, 2):
        folder = tmp_path / f"step-{step}"
        folder.mkdir()
        save(folder, step)
        made.append(commit_step(store, folder, step))
    first, second = (set(record.chunks) for record in made)
    shared = sum(chunk.size for chunk in first & second)
    assert shared >= 0.95 * 4 * 2 * MIB
    data = memoryview((tmp_path / "step-1" / made[0].files[0].path).read_bytes())
    assert tensor_borders(data) is not None and len(cut(data)) <= 12


def test_a_torch_file_comes_back(store: Store, tmp_path: Path) -> None:
    """As Hugging Face and Lightning leave it: weights, optimizer and scheduler in a folder of their own names."""
    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    save_torch(folder, 7)
    (folder / "trainer_state.json").write_text('{"global_step": 7}')
    torch.save({"state": {0: {"exp_avg": torch.ones(10)}}}, folder / "optimizer.pt")
    back = restore(store, commit_step(store, folder, 7), tmp_path / "elsewhere" / "checkpoint-7")
    loaded = torch.load(back / "pytorch_model.bin")
    assert all(torch.equal(loaded["model"][name], tensor) for name, tensor in tensors(7).items())
    assert torch.load(back / "optimizer.pt")["state"][0]["exp_avg"].sum() == 10


def test_a_distributed_checkpoint_comes_back(store: Store, tmp_path: Path) -> None:
    from torch.distributed import checkpoint as dcp

    state = {"model": tensors(3)}
    dcp.save(state, checkpoint_id=tmp_path / "step-3", no_dist=True)
    assert (tmp_path / "step-3" / ".metadata").exists()
    back = restore(store, commit_step(store, tmp_path / "step-3", 3), tmp_path / "back")
    empty = {"model": {name: torch.zeros_like(tensor) for name, tensor in state["model"].items()}}
    dcp.load(empty, checkpoint_id=back, no_dist=True)
    assert all(torch.equal(empty["model"][name], tensor) for name, tensor in state["model"].items())
