"""The shipped torch trainer goes on bit for bit where fingerprints are equal, and in the same samples where not."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from storage.checkpoints import content_of
from tests.examples.running import TRAINERS, Trainer, build_topics

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed (extra `torch`)"),
]
ONE = [sys.executable, TRAINERS / "gpt_torch.py"]
TWO = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", TRAINERS / "gpt_torch.py"]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_topics(tmp_path_factory.mktemp("topics"))


def test_a_relay_ends_with_the_same_bytes(tmp_path: Path, dataset: Path) -> None:
    whole, relay = Trainer(tmp_path / "whole", dataset, ONE), Trainer(tmp_path / "relay", dataset, ONE)
    assert whole.run() == (0, {"status": "finished", "step": 24})
    assert relay.run(NIGHTRELAY_STOP_AT_STEP="7") == (75, {"status": "stopped", "step": 7})
    assert relay.run(resume=relay.step(7)) == (0, {"status": "finished", "step": 24})
    assert content_of(relay.step(24)) == content_of(whole.step(24))


def test_two_ranks_stop_together_and_go_on_bit_for_bit(tmp_path: Path, dataset: Path) -> None:
    whole, relay = Trainer(tmp_path / "whole", dataset, TWO), Trainer(tmp_path / "relay", dataset, TWO)
    assert whole.run()[1] == {"status": "finished", "step": 24}
    assert relay.run(NIGHTRELAY_STOP_AT_STEP="9")[1] == {"status": "stopped", "step": 9}
    assert relay.run(resume=relay.step(9))[1] == {"status": "finished", "step": 24}
    assert content_of(relay.step(24)) == content_of(whole.step(24))


def test_another_width_uses_the_same_batches(tmp_path: Path, dataset: Path) -> None:
    """Without dropout the loss of each step is the same up to the order of sums."""
    one, two = Trainer(tmp_path / "one", dataset, ONE), Trainer(tmp_path / "two", dataset, TWO)
    one.run("--dropout", "0")
    two.run("--dropout", "0", NIGHTRELAY_STOP_AT_STEP="5")
    rest = Trainer(tmp_path / "two", dataset, ONE)
    rest.run("--dropout", "0", resume=two.step(5))
    assert two.losses() == pytest.approx(one.losses(), abs=2e-3)
    fingerprints = [json.loads((two.step(n) / "nightrelay.json").read_text())["fingerprint"] for n in (5, 24)]
    assert [each["world"] for each in fingerprints] == [2, 1]


@pytest.mark.parametrize("piece", ["model", "exp_avg", "exp_avg_sq", "step", "reader"])
def test_every_piece_of_state_matters(tmp_path: Path, dataset: Path, piece: str) -> None:
    whole, early = Trainer(tmp_path / "whole", dataset, ONE), Trainer(tmp_path / "early", dataset, ONE)
    whole.run(NIGHTRELAY_STOP_AT_STEP="4")
    early.run(NIGHTRELAY_STOP_AT_STEP="1")
    whole.run(resume=whole.step(4))
    right = content_of(whole.step(24))

    (whole.step(24) / "COMPLETE").unlink()
    state, old = (json.loads((folder / "state.json").read_text()) for folder in (whole.step(4), early.step(1)))
    if piece in state:
        (whole.step(4) / "state.json").write_text(json.dumps(state | {piece: old[piece]}))
    else:
        name = f"{piece}.safetensors"
        (whole.step(4) / name).write_bytes((early.step(1) / name).read_bytes())
    whole.run(resume=whole.step(4))
    assert content_of(whole.step(24)) != right
