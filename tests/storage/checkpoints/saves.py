"""Small checkpoint folders for tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from storage.checkpoints import Record, commit
from storage.objects import Store


def save(folder: Path, step: int, *, weights: int = 1000, note: str = "") -> Path:
    """Make a folder whose bytes depend on the step (and the note) alone."""
    where = folder / f"step-{step}"
    (where / "more").mkdir(parents=True, exist_ok=True)
    (where / "weights.bin").write_bytes(random.Random(f"{step}/{note}").randbytes(weights))
    (where / "more" / "state.json").write_text(f'{{"step": {step}}}')
    (where / "empty").write_bytes(b"")
    (where / "COMPLETE").touch()
    return where


def commit_step(store: Store, folder: Path, step: int, *, term: int = 1, **more: Any) -> Record:
    """Save a step and commit it."""
    about: dict[str, Any] = {"run": "r", "stage": "s", "samples": 4 * step} | more
    return commit(store, save(folder, step), step=step, term=term, **about)
