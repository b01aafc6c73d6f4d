"""The shipped NumPy trainer: its gradients are right, it learns, and it goes on byte for byte from any checkpoint."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from storage.checkpoints import content_of
from tests.examples.running import TRAINERS, Trainer, build_topics

COMMAND = [sys.executable, TRAINERS / "gpt_numpy.py"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_topics(tmp_path_factory.mktemp("topics"))


def test_the_gradients_are_those_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TRAINERS)
    import gpt_numpy

    model = gpt_numpy.Gpt(width=16, layers=2, heads=2, context=8, seed=1)
    shapes = {name: weight.shape for name, weight in model.weights.items()}
    model.flat = {kind: flat.astype(np.float64) for kind, flat in model.flat.items()}
    model.weights = gpt_numpy._views(model.flat["weights"], shapes)
    model.gradients = gpt_numpy._views(model.flat["gradients"], shapes)
    chance = np.random.default_rng(0)
    weights = model.flat["weights"]
    weights += chance.normal(size=weights.shape) * 0.1
    tokens = chance.integers(0, 256, (3, 9)).astype(np.uint8)
    masks = [mask.astype(np.float64) for mask in model.dropout_masks(3, 0.1, 1, 2)]
    model.loss(tokens, masks)
    gradients = model.flat["gradients"].copy()
    for index in chance.integers(0, len(weights), 40):
        losses = []
        for shift in (1e-5, -1e-5):
            weights[index] += shift
            losses.append(model.loss(tokens, masks))
            weights[index] -= shift
        assert (losses[0] - losses[1]) / 2e-5 == pytest.approx(gradients[index], rel=1e-4, abs=1e-6)


def test_a_relay_of_three_ends_with_the_same_bytes(tmp_path: Path, dataset: Path) -> None:
    whole = Trainer(tmp_path / "whole", dataset, COMMAND)
    assert whole.run() == (0, {"status": "finished", "step": 24})

    relay = Trainer(tmp_path / "relay", dataset, COMMAND)
    assert relay.run(NIGHTRELAY_STOP_AT_STEP="7") == (75, {"status": "stopped", "step": 7})
    assert relay.run(NIGHTRELAY_STOP_AT_STEP="8", resume=relay.step(7)) == (75, {"status": "stopped", "step": 8})
    assert relay.run(resume=relay.step(8)) == (0, {"status": "finished", "step": 24})
    assert content_of(relay.step(24)) == content_of(whole.step(24))


def test_a_killed_trainer_goes_on_from_its_last_save(tmp_path: Path, dataset: Path) -> None:
    whole = Trainer(tmp_path / "whole", dataset, COMMAND)
    whole.run("--save-steps", "5")
    killed = Trainer(tmp_path / "killed", dataset, COMMAND)
    process = killed.start("--save-steps", "5", "--delay", "0.02")
    killed.wait_for((killed.step(10) / "COMPLETE").exists)
    process.kill()
    process.communicate()
    assert killed.run("--save-steps", "5", resume=killed.step(10))[0] == 0
    for step in (10, 15, 20, 24):
        assert content_of(killed.step(step)) == content_of(whole.step(step))


@pytest.mark.parametrize("ask", ["stop file", "signal"])
def test_it_saves_and_leaves_when_asked(tmp_path: Path, dataset: Path, ask: str) -> None:
    trainer = Trainer(tmp_path, dataset, COMMAND)
    process = trainer.start("--delay", "0.05", "--steps", "1000")
    trainer.wait_for(lambda: trainer.progress_file.exists() and '"loss"' in trainer.progress_file.read_text())
    if ask == "signal":
        process.send_signal(signal.SIGTERM)
    else:
        trainer.stop_file.touch()
    process.communicate(timeout=30)
    result = json.loads(trainer.result_file.read_text())
    assert (process.returncode, result["status"]) == (75, "stopped")
    assert (trainer.step(result["step"]) / "COMPLETE").exists()
    phases = [json.loads(line)["phase"] for line in trainer.progress_file.read_text().splitlines()]
    assert phases[0] == "load" and phases[-1] == "save" and "train" in phases


def test_a_leftover_of_a_killed_save_is_replaced(tmp_path: Path, dataset: Path) -> None:
    trainer = Trainer(tmp_path, dataset, COMMAND)
    trainer.step(7).mkdir(parents=True)
    (trainer.step(7) / "model.safetensors").write_bytes(b"half")
    trainer.run(NIGHTRELAY_STOP_AT_STEP="7")
    assert (trainer.step(7) / "COMPLETE").exists()
    assert (trainer.step(7) / "model.safetensors").stat().st_size > 1000


@pytest.mark.parametrize("piece", ["model.safetensors", "moment1.safetensors", "moment2.safetensors", "step", "reader"])
def test_every_piece_of_state_matters(tmp_path: Path, dataset: Path, piece: str) -> None:
    """Each piece, put back to its beginning, makes another end: so each of them has to be in a checkpoint."""
    whole = Trainer(tmp_path / "whole", dataset, COMMAND)
    whole.run(NIGHTRELAY_STOP_AT_STEP="4")
    first = Trainer(tmp_path / "first", dataset, COMMAND)
    first.run(NIGHTRELAY_STOP_AT_STEP="1")
    whole.run(resume=whole.step(4))
    right = content_of(whole.step(24))

    (whole.step(24) / "COMPLETE").unlink()
    state = json.loads((whole.step(4) / "state.json").read_text())
    early = json.loads((first.step(1) / "state.json").read_text())
    if piece.endswith("safetensors"):
        (whole.step(4) / piece).write_bytes((first.step(1) / piece).read_bytes())
    else:
        (whole.step(4) / "state.json").write_text(json.dumps(state | {piece: early[piece]}))
    whole.run(resume=whole.step(4))
    assert content_of(whole.step(24)) != right


def test_it_learns(tmp_path: Path, dataset: Path) -> None:
    trainer = Trainer(tmp_path, dataset, COMMAND)
    process = trainer.start("--steps", "150", "--rate", "0.01")
    printed, _ = process.communicate(timeout=120)
    losses = trainer.losses()
    assert losses[0] > 5.0 and losses[-1] < 3.4
    assert "In the model's own words" in printed
