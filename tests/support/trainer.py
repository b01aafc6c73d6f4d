"""A tiny trainer for tests: plain Python, starts in under 100 ms, obeys the trainer contract, fails on demand.

    python tests/support/trainer.py --steps 40 --save-steps 5 --delay 0.02

Its state is a digest over every sample id it has used, so a lost, doubled or reordered sample changes the final
checkpoint's bytes. With TRAINER_SAMPLES it appends each id it uses to that file, "leg step id" a line.
Faults: TRAINER_FAULT = "<kind>@<step>[:<argument>]", kinds hang, exit (code), oom, half-save (dies in the middle of
the save of that step), slow-save (seconds). With TRAINER_FAULT_ONCE (a file) a fault happens once in a run's life.
"""

# ruff: noqa: PTH103, PTH105, PTH110, PTH118, PTH123 (pathlib would cost a third of the start)
from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import time

_STOP = False


def sample_ids(seed: int, count: int, epoch: int) -> list[int]:
    """Return the order of an epoch: a permutation that depends on seed and epoch alone."""
    return sorted(range(count), key=lambda sample: hashlib.sha256(f"{seed}/{epoch}/{sample}".encode()).digest())


def main() -> int:
    """Train from the resume point until finished or asked to stop."""
    options = arguments()
    signal.signal(signal.SIGTERM, on_signal)
    seed, leg = int(environment("SEED", "0")), environment("LEG", "0")
    progress("load", 0)
    step, samples, digest = resume()
    progress("train", step, samples=samples)
    while step < options.steps and not should_stop(step):
        for kind in ("hang", "exit", "oom"):
            fault(kind, step + 1)
        for _ in range(options.batch):
            epoch, position = divmod(samples, options.samples)
            sample = order(seed, options.samples, epoch)[position]
            digest = hashlib.sha256(f"{digest}/{sample}".encode()).hexdigest()
            samples += 1
            note_sample(leg, step + 1, sample)
        step += 1
        if options.delay:
            time.sleep(options.delay)
        progress("train", step, samples=samples, loss=round(5 / (1 + step / 10), 4))
        if step % options.save_steps == 0 or step == options.steps:
            save(step, samples, digest, options)
    if step not in (0, options.steps):
        save(step, samples, digest, options)
    status = "finished" if step >= options.steps else "stopped"
    if result := environment("RESULT"):
        write(result + ".part", json.dumps({"status": status, "step": step}))
        os.replace(result + ".part", result)
    return 0 if status == "finished" else 75


def arguments() -> argparse.Namespace:
    """Return the command's flags."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--samples", type=int, default=100, help="samples in an epoch")
    parser.add_argument("--save-steps", type=int, default=10)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds for each step")
    parser.add_argument("--ballast", type=int, default=0, help="bytes of weights in each checkpoint")
    return parser.parse_args()


def environment(name: str, otherwise: str = "") -> str:
    """Return a variable of the contract."""
    return os.environ.get(f"NIGHTRELAY_{name}") or otherwise


_ORDERS: dict[tuple[int, int, int], list[int]] = {}


def order(seed: int, count: int, epoch: int) -> list[int]:
    """Return an epoch's order, worked out once."""
    if (seed, count, epoch) not in _ORDERS:
        _ORDERS[seed, count, epoch] = sample_ids(seed, count, epoch)
    return _ORDERS[seed, count, epoch]


def resume() -> tuple[int, int, str]:
    """Return (step, samples, digest) to go on from."""
    folder = environment("RESUME_FROM")
    if not folder:
        return 0, 0, ""
    with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
        state = json.load(file)
    return state["step"], state["samples"], state["digest"]


def save(step: int, samples: int, digest: str, options: argparse.Namespace) -> None:
    """Save a checkpoint, COMPLETE last; what a killed save left under its name is replaced."""
    folder = os.path.join(environment("CHECKPOINT_DIR", "checkpoints"), f"step-{step}")
    if os.path.exists(os.path.join(folder, "COMPLETE")):
        return
    progress("save", step, samples=samples)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if options.ballast:
        block = hashlib.sha256(digest.encode()).digest()
        write(os.path.join(folder, "weights.bin"), block * (options.ballast // len(block)))
    write(os.path.join(folder, "state.json"), json.dumps({"step": step, "samples": samples, "digest": digest}))
    for kind in ("half-save", "slow-save"):
        fault(kind, step)
    about = {"samples": samples, "epoch": samples // options.samples, "metrics": {"loss": 5 / (1 + step / 10)}}
    write(os.path.join(folder, "nightrelay.json"), json.dumps(about))
    write(os.path.join(folder, "COMPLETE"), "")


def should_stop(step: int) -> bool:
    """Say whether somebody asked for the end."""
    stop_file = environment("STOP_FILE")
    return _STOP or bool(stop_file and os.path.exists(stop_file)) or step == int(environment("STOP_AT_STEP", "-1"))


def fault(kind: str, step: int) -> None:
    """Do what TRAINER_FAULT asks for at this step."""
    asked, _, place = os.environ.get("TRAINER_FAULT", "").partition("@")
    at, _, argument = place.partition(":")
    once = os.environ.get("TRAINER_FAULT_ONCE")
    if asked != kind or int(at) != step or (once and os.path.exists(once)):
        return
    if once:
        write(once, "")
    if kind == "hang":
        while True:
            time.sleep(60)
    if kind == "slow-save":
        time.sleep(float(argument))
    if kind == "oom":
        sys.stderr.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
        sys.exit(1)
    if kind == "exit":
        sys.exit(int(argument or 1))
    if kind == "half-save":
        os.kill(os.getpid(), signal.SIGKILL)


def note_sample(leg: str, step: int, sample: int) -> None:
    """Append the id of a sample that was used."""
    if path := os.environ.get("TRAINER_SAMPLES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{leg} {step} {sample}\n")


def progress(phase: str, step: int, **numbers: float) -> None:
    """Append a progress line."""
    if path := environment("PROGRESS"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"phase": phase, "step": step, **numbers}) + "\n")


def write(path: str, content: str | bytes) -> None:
    """Write a file."""
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def on_signal(number: int, frame: object) -> None:
    """Note that the end was asked for."""
    global _STOP
    _STOP = True


if __name__ == "__main__":
    sys.exit(main())
