"""The small GPT in PyTorch, on any number of ranks: the same data order, and the same bytes where nothing else changes.

    python examples/trainers/topics.py /tmp/topics
    NIGHTRELAY_DATASET=/tmp/topics torchrun --nproc-per-node 2 examples/trainers/gpt_torch.py

Another number of ranks reads the same global batches and adds their gradients in another order: equal in its samples,
not in its last bits. The fingerprint in each checkpoint says which of the two a resume gives.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import tensors
import torch
from contract import Leg, SaveRhythm
from schedule import learning_rate
from torch import distributed, nn
from torch.nn import functional as F

from storage.datasets import open_dataset

VOCABULARY = 256


class Block(nn.Module):
    """Attention and a feed-forward layer, each added to what came in."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Return the state after this block; [batch, length, width]."""
        batch, length, width = state.shape
        parts = self.qkv(self.norm1(state)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(batch, length, width)
        state = state + F.dropout(self.out(mixed), self.dropout, self.training)
        raised = torch.relu(self.up(self.norm2(state)))
        return state + F.dropout(self.down(raised), self.dropout, self.training)


class Gpt(nn.Module):
    """A byte-level GPT; the embedding is also the last layer."""

    def __init__(self, *, width: int, layers: int, heads: int, context: int, dropout: float) -> None:
        super().__init__()
        self.context = context
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the logits of [batch, length] bytes."""
        state = self.embedding(inputs) + self.position.weight[: inputs.shape[1]]
        for block in self.blocks:
            state = block(state)
        return self.norm(state) @ self.embedding.weight.T

    @torch.no_grad()
    def write_on(self, prompt: bytes, length: int, seed: int) -> str:
        """Return the prompt with `length` more bytes drawn from the model."""
        self.eval()
        torch.manual_seed(seed)
        text = list(prompt)
        for _ in range(length):
            logits = self(torch.tensor([text[-self.context :]]))[0, -1]
            text.append(int(torch.multinomial(F.softmax(logits / 0.7, 0), 1)))
        return bytes(text).decode("utf-8", "replace")


class Ranks:
    """The processes that torchrun started; one alone needs none of it."""

    def __init__(self) -> None:
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        if self.world > 1:
            distributed.init_process_group("gloo")

    def add(self, numbers: torch.Tensor) -> torch.Tensor:
        """Replace numbers by their sum over all ranks."""
        if self.world > 1:
            distributed.all_reduce(numbers)
        return numbers

    def agree(self, mine: bool) -> bool:
        """Say whether any rank says yes: all leave the loop at the same step, or the others would wait for ever."""
        return bool(self.add(torch.tensor(float(mine))) > 0)

    def wait(self) -> None:
        """Wait until all are here."""
        if self.world > 1:
            distributed.barrier()


def arguments() -> argparse.Namespace:
    """Return the command's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--batch", type=int, default=16, help="samples in a global batch, over all ranks")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--rate", type=float, default=6e-3, help="peak learning rate")
    parser.add_argument("--save-steps", type=int, default=0, help="save every so many steps")
    parser.add_argument(
        "--save-minutes",
        type=float,
        default=15,
        help="save so often, where no leg asks otherwise",
    )
    parser.add_argument("--delay", type=float, default=0, help="seconds to wait after each step (for tests)")
    return parser.parse_args()


class Training:
    """Model, optimizer and position: all that a checkpoint holds, and how to save and restore it."""

    def __init__(self, options: argparse.Namespace, leg: Leg) -> None:
        self.options, self.leg, self.ranks = options, leg, Ranks()
        self.reader = open_dataset(batch=options.batch, columns=("tokens",))
        self.seed = self.reader.reading.seed
        torch.manual_seed(self.seed)
        sizes = {name: getattr(options, name) for name in ("width", "layers", "heads", "context", "dropout")}
        self.model = Gpt(**sizes)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.99), weight_decay=0.01)
        self.step, self.samples, self.smooth = 0, self.reader.consumed, 0.0
        if leg.resume_from is not None:
            self.restore(leg.resume_from)

    def train_on(self, batch: Any) -> None:
        """Take one step on a global batch, of which this rank has its part."""
        self.model.train()
        torch.manual_seed((self.seed << 32) + (self.step << 8) + self.ranks.rank)  # dropout, keyed by seed and step
        tokens = torch.from_numpy(batch["tokens"]).long()
        logits = self.model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
        loss = loss / (batch.size * (tokens.shape[1] - 1))
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        gradients = [parameter.grad for parameter in self.model.parameters()]
        for gradient in gradients:
            self.ranks.add(gradient)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.options.steps, self.options.rate)
        self.optimizer.step()
        mean = float(self.ranks.add(loss.detach()))
        self.step, self.samples = self.step + 1, batch.samples
        self.smooth = mean if self.step == 1 else 0.95 * self.smooth + 0.05 * mean

    def save(self) -> None:
        """Save everything that going on needs; rank 0 writes, the others wait."""
        if self.ranks.rank == 0:
            self.leg.progress("save", self.step, samples=self.samples)
            epoch = self.reader.epochs.batch_at(self.samples)[0]
            about = {"samples": self.samples, "epoch": epoch, "metrics": {"loss": self.smooth}}
            self.leg.save(self.step, self._write, about | {"fingerprint": fingerprint(self.ranks.world)})
        self.ranks.wait()

    def restore(self, folder: Path) -> None:
        """Go on from a checkpoint."""
        state = json.loads((folder / "state.json").read_text())
        for parameter in self.model.parameters():  # Adam makes its state with the first step; here it is needed now
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        for name, arrays in self._arrays().items():
            tensors.load(folder / f"{name}.safetensors", arrays)
        for entry in self.optimizer.state.values():
            entry["step"].fill_(state["step"])
        self.reader.load_state_dict(state["reader"])
        self.step, self.samples, self.smooth = state["step"], self.reader.consumed, state["smooth"]

    def _write(self, folder: Path) -> None:
        for name, arrays in self._arrays().items():
            tensors.save(folder / f"{name}.safetensors", arrays)
        state = {"step": self.step, "smooth": self.smooth, "reader": self.reader.state_dict(self.samples)}
        (folder / "state.json").write_text(json.dumps(state, sort_keys=True))

    def _arrays(self) -> dict[str, dict[str, Any]]:
        """Weights and both of Adam's moments as NumPy arrays that share their memory."""
        named, adam = dict(self.model.named_parameters()), self.optimizer.state
        arrays = {"model": {name: parameter.detach().numpy() for name, parameter in named.items()}}
        for moment in ("exp_avg", "exp_avg_sq"):
            arrays[moment] = {
                name: adam[parameter][moment].numpy() for name, parameter in named.items() if adam[parameter]
            }
        return arrays


def fingerprint(world: int) -> dict[str, Any]:
    """Return what must be equal for a resume to go on bit for bit."""
    able = torch.backends.cpu.get_cpu_capability()
    return {"framework": f"torch {torch.__version__}", "threads": torch.get_num_threads(), "cpu": able, "world": world}


def main() -> int:
    """Train from where the leg begins to where it ends."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options, leg = arguments(), Leg()
    leg.progress("load", 0)
    training = Training(options, leg)
    ranks, rhythm = training.ranks, SaveRhythm(options.save_steps, options.save_minutes)
    leads = ranks.rank == 0
    begun = time.perf_counter()
    for batch in training.reader:
        if ranks.agree(training.step >= options.steps or leg.should_stop(training.step)):
            break
        training.train_on(batch)
        time.sleep(options.delay)
        if leads:
            speed = batch.size * options.context / (time.perf_counter() - begun)
            numbers = {"samples": training.samples, "tokens_per_second": round(speed)}
            leg.progress("train", training.step, loss=round(training.smooth, 4), **numbers)
        if ranks.agree(leads and rhythm.due(training.step)):
            training.save()
        begun = time.perf_counter()
    training.save()
    finished = training.step >= options.steps
    if leads and finished:
        print(f"step {training.step}, loss {training.smooth:.3f}. In the model's own words:\n")
        print(training.model.write_on(b"The ", 300, training.seed))
    return leg.end("finished" if finished else "stopped", training.step) if leads else 0


if __name__ == "__main__":
    sys.exit(main())
