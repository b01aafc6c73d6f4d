"""A small byte-level GPT in plain NumPy that learns to write like Python's own reference pages.

    python examples/trainers/topics.py /tmp/topics
    NIGHTRELAY_DATASET=/tmp/topics python examples/trainers/gpt_numpy.py

Stopped and started again anywhere, it ends with the very same weights, byte for byte: the data's order and cursor
come from the dataset reader, dropout is keyed by (seed, step), and all sums are done by one thread.
"""

# ruff: noqa: E402 (the number of threads must be set before NumPy is imported)
from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # more threads would add in another order

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensors
from contract import Leg, SaveRhythm
from numpy.typing import NDArray
from schedule import learning_rate

from storage.datasets import open_dataset

Floats = NDArray[np.float32]
VOCABULARY = 256


class Gpt:
    """Weights, gradients and Adam's moments, each one flat array that the named tensors are views of."""

    def __init__(self, *, width: int, layers: int, heads: int, context: int, seed: int) -> None:
        self.width, self.layers, self.heads, self.context = width, layers, heads, context
        shapes = {"embedding": (VOCABULARY, width), "position": (context, width), "norm": (width,)}
        for layer in range(layers):
            shapes |= {
                f"{layer}.norm1": (width,),
                f"{layer}.qkv": (width, 3 * width),
                f"{layer}.out": (width, width),
                f"{layer}.norm2": (width,),
                f"{layer}.up": (width, 4 * width),
                f"{layer}.down": (4 * width, width),
            }
        self.flat = {kind: _flat(shapes) for kind in ("weights", "gradients", "moment1", "moment2")}
        self.weights = _views(self.flat["weights"], shapes)
        self.gradients = _views(self.flat["gradients"], shapes)
        self.moments = {kind: _views(self.flat[kind], shapes) for kind in ("moment1", "moment2")}
        chance = np.random.Generator(np.random.Philox(key=seed))
        for name, weight in self.weights.items():
            scale = 0.02 / math.sqrt(2 * layers) if name.endswith(("out", "down")) else 0.02
            weight[...] = (
                1.0 if "norm" in name else chance.standard_normal(weight.shape, np.float32) * np.float32(scale)
            )
        self._mask = np.triu(np.full((context, context), -1e9, np.float32), 1)

    def loss(self, tokens: NDArray[np.uint8], masks: list[Floats] | None) -> float:
        """Return the mean loss (nats per byte) of [batch, context + 1] bytes; given dropout masks, fill gradients."""
        inputs, targets = tokens[:, :-1].astype(np.int64), tokens[:, 1:].astype(np.int64).reshape(-1)
        state, tape = self._forward(inputs, masks)
        embedding = self.weights["embedding"]
        logits = state.reshape(-1, self.width) @ embedding.T
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        rows = np.arange(len(targets))
        loss = -np.log(logits[rows, targets]).mean()
        if masks is not None:
            logits[rows, targets] -= 1.0
            logits /= np.float32(len(targets))
            self.gradients["embedding"][...] = logits.T @ state.reshape(-1, self.width)
            self._backward((logits @ embedding).reshape(state.shape), inputs, tape, masks)
        return float(loss)

    def dropout_masks(self, batch: int, rate: float, seed: int, step: int) -> list[Floats]:
        """Return two masks for each layer, keyed by seed and step: there is no generator whose state must be saved."""
        chance = np.random.Generator(np.random.Philox(key=[seed, step]))
        shape = (2 * self.layers, batch, self.context, self.width)
        kept = chance.random(shape, np.float32) >= np.float32(rate)
        return list(kept * np.float32(1 / (1 - rate)))

    def step(self, step: int, rate: float) -> None:
        """One step of AdamW, in place. `step` counts from 1."""
        weights, gradients = self.flat["weights"], self.flat["gradients"]
        moment1, moment2 = self.flat["moment1"], self.flat["moment2"]
        norm = float(np.sqrt(np.dot(gradients, gradients)))
        if norm > 1.0:
            gradients *= np.float32(1.0 / norm)
        moment1 += np.float32(0.1) * (gradients - moment1)
        moment2 += np.float32(0.01) * (gradients * gradients - moment2)
        size = np.float32(rate / (1 - 0.9**step))
        scale = np.float32(1 / (1 - 0.99**step))
        weights *= np.float32(1 - 0.01 * rate)
        weights -= size * moment1 / (np.sqrt(moment2 * scale) + np.float32(1e-8))

    def write_on(self, prompt: bytes, length: int, seed: int) -> str:
        """Return the prompt with `length` more bytes drawn from the model."""
        chance = np.random.Generator(np.random.Philox(key=[seed, length]))
        text = list(prompt)
        for _ in range(length):
            window = np.array([text[-self.context :]], np.int64)
            state, _ = self._forward(window, None)
            logits = (self.weights["embedding"] @ state[0, -1]) / np.float32(0.7)
            odds = np.exp(logits - logits.max())
            text.append(int(np.searchsorted(np.cumsum(odds), chance.random() * odds.sum())))
        return bytes(text).decode("utf-8", "replace")

    def _forward(self, inputs: NDArray[np.int64], masks: list[Floats] | None) -> tuple[Floats, list[Any]]:
        batch, length = inputs.shape
        tape: list[Any] = []
        state = self.weights["embedding"][inputs] + self.weights["position"][:length]
        for layer in range(self.layers):
            weights = {name: self.weights[f"{layer}.{name}"] for name in ("norm1", "qkv", "out", "norm2", "up", "down")}
            normed1, kept1 = _norm(state, weights["norm1"])
            qkv = (normed1 @ weights["qkv"]).reshape(batch, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
            query, key, value = (np.ascontiguousarray(each) for each in qkv)
            odds = query @ key.transpose(0, 1, 3, 2)
            odds *= np.float32(1 / math.sqrt(query.shape[-1]))
            odds += self._mask[:length, :length]
            odds -= odds.max(axis=-1, keepdims=True)
            np.exp(odds, out=odds)
            odds /= odds.sum(axis=-1, keepdims=True)
            mixed = (odds @ value).transpose(0, 2, 1, 3).reshape(batch, length, self.width)
            added = mixed @ weights["out"]
            state = state + (added if masks is None else added * masks[2 * layer])
            normed2, kept2 = _norm(state, weights["norm2"])
            raised = np.maximum(normed2 @ weights["up"], 0)
            lowered = raised @ weights["down"]
            state = state + (lowered if masks is None else lowered * masks[2 * layer + 1])
            tape.append((normed1, kept1, query, key, value, odds, mixed, normed2, kept2, raised))
        state, kept = _norm(state, self.weights["norm"])
        return state, [*tape, kept]

    def _backward(self, slope: Floats, inputs: NDArray[np.int64], tape: list[Any], masks: list[Floats]) -> None:
        batch, length = inputs.shape
        slope, self.gradients["norm"][...] = _norm_back(slope, tape.pop(), self.weights["norm"])
        for layer in reversed(range(self.layers)):
            normed1, kept1, query, key, value, odds, mixed, normed2, kept2, raised = tape.pop()
            lowered = slope * masks[2 * layer + 1]
            into = self._linear_back(f"{layer}.down", raised, lowered)
            into *= raised > 0
            into = self._linear_back(f"{layer}.up", normed2, into)
            into, self.gradients[f"{layer}.norm2"][...] = _norm_back(into, kept2, self.weights[f"{layer}.norm2"])
            slope = slope + into
            into = self._linear_back(f"{layer}.out", mixed, slope * masks[2 * layer])
            into = np.ascontiguousarray(into.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3))
            of_value = odds.transpose(0, 1, 3, 2) @ into
            of_odds = into @ value.transpose(0, 1, 3, 2)
            of_odds = odds * (of_odds - (of_odds * odds).sum(axis=-1, keepdims=True))
            of_odds *= np.float32(1 / math.sqrt(query.shape[-1]))
            parts = np.stack([of_odds @ key, of_odds.transpose(0, 1, 3, 2) @ query, of_value])
            into = parts.transpose(1, 3, 0, 2, 4).reshape(batch, length, 3 * self.width)
            into = self._linear_back(f"{layer}.qkv", normed1, into)
            into, self.gradients[f"{layer}.norm1"][...] = _norm_back(into, kept1, self.weights[f"{layer}.norm1"])
            slope = slope + into
        self.gradients["position"][...] = slope.sum(axis=0)
        onehot = np.zeros((inputs.size, VOCABULARY), np.float32)
        onehot[np.arange(inputs.size), inputs.reshape(-1)] = 1.0
        self.gradients["embedding"] += onehot.T @ slope.reshape(-1, self.width)

    def _linear_back(self, name: str, inputs: Floats, slope: Floats) -> Floats:
        """Fill the gradient of a matrix; return the slope of its inputs."""
        flat = slope.reshape(-1, slope.shape[-1])
        np.matmul(inputs.reshape(-1, inputs.shape[-1]).T, flat, out=self.gradients[name])
        return (flat @ self.weights[name].T).reshape(inputs.shape)


def _norm(state: Floats, gain: Floats) -> tuple[Floats, tuple[Floats, Floats]]:
    """Scale each vector to unit mean square, then by the gain."""
    inverse = 1 / np.sqrt(np.square(state).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    unit = state * inverse
    return unit * gain, (unit, inverse)


def _norm_back(slope: Floats, kept: tuple[Floats, Floats], gain: Floats) -> tuple[Floats, Floats]:
    unit, inverse = kept
    of_gain = (slope * unit).sum(axis=(0, 1))
    slope = slope * gain
    return inverse * (slope - unit * (slope * unit).mean(axis=-1, keepdims=True)), of_gain


def _flat(shapes: dict[str, tuple[int, ...]]) -> Floats:
    return np.zeros(sum(math.prod(shape) for shape in shapes.values()), np.float32)


def _views(flat: Floats, shapes: dict[str, tuple[int, ...]]) -> dict[str, Floats]:
    views, at = {}, 0
    for name, shape in shapes.items():
        views[name] = flat[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return views


def fingerprint() -> dict[str, Any]:
    """Return what must be equal for a resume to go on bit for bit."""
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    able = "AVX512" if features.get("AVX512_SKX") else "AVX2" if features.get("AVX2") else platform.machine()
    return {"framework": f"numpy {np.__version__}", "threads": 1, "cpu": able, "world": 1}


def arguments() -> argparse.Namespace:
    """Return the command's flags."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--batch", type=int, default=16)
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


def main() -> int:
    """Train from where the leg begins to where it ends."""
    options, leg = arguments(), Leg()
    leg.progress("load", 0)
    reader = open_dataset(batch=options.batch, columns=("tokens",))
    seed = reader.reading.seed
    model = Gpt(width=options.width, layers=options.layers, heads=options.heads, context=options.context, seed=seed)
    rhythm = SaveRhythm(options.save_steps, options.save_minutes)
    step, smooth = 0, 0.0
    if leg.resume_from is not None:
        step, smooth = restore(leg.resume_from, model, reader)
    samples = reader.consumed
    leg.progress("train", step, samples=samples)
    begun = time.perf_counter()
    for batch in reader:
        if step >= options.steps or leg.should_stop(step):
            break
        masks = model.dropout_masks(len(batch["tokens"]), options.dropout, seed, step)
        loss = model.loss(batch["tokens"], masks)
        model.step(step + 1, learning_rate(step, options.steps, options.rate))
        step, samples = step + 1, batch.samples
        smooth = loss if step == 1 else 0.95 * smooth + 0.05 * loss
        if options.delay:
            time.sleep(options.delay)
        speed = batch["tokens"].size / (time.perf_counter() - begun)
        leg.progress("train", step, loss=round(smooth, 4), samples=samples, tokens_per_second=round(speed))
        if rhythm.due(step):
            save(leg, model, reader, step, samples, smooth)
        begun = time.perf_counter()
    save(leg, model, reader, step, samples, smooth)
    if step < options.steps:
        return leg.end("stopped", step)
    print(f"step {step}, loss {smooth:.3f}. In the model's own words:\n")
    print(model.write_on(b"The ", 300, seed))
    return leg.end("finished", step)


def save(leg: Leg, model: Gpt, reader: Any, step: int, samples: int, smooth: float) -> None:
    """Save everything that going on needs."""
    leg.progress("save", step, samples=samples)

    def write(folder: Path) -> None:
        tensors.save(folder / "model.safetensors", model.weights)
        for kind, views in model.moments.items():
            tensors.save(folder / f"{kind}.safetensors", views)
        state = {"step": step, "smooth": smooth, "reader": reader.state_dict(samples)}
        (folder / "state.json").write_text(json.dumps(state, sort_keys=True))

    epoch = reader.epochs.batch_at(samples)[0]
    about = {"samples": samples, "epoch": epoch, "metrics": {"loss": smooth}, "fingerprint": fingerprint()}
    leg.save(step, write, about)


def restore(folder: Path, model: Gpt, reader: Any) -> tuple[int, float]:
    """Go on from a checkpoint; return its step and smoothed loss."""
    state = json.loads((folder / "state.json").read_text())
    tensors.load(folder / "model.safetensors", model.weights)
    for kind, views in model.moments.items():
        tensors.load(folder / f"{kind}.safetensors", views)
    reader.load_state_dict(state["reader"])
    return state["step"], state["smooth"]


if __name__ == "__main__":
    sys.exit(main())
