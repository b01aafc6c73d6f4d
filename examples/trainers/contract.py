"""A trainer's side of the contract with a leg: where to begin, when to stop, how to tell. Plain Python, copy it freely.

Everything comes from the environment and everything is optional: without it a trainer saves below the current folder
and trains to its end. What each variable means: docs/trainers.md.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Leg:
    """One start of a trainer: from `step` until finished or asked to stop."""

    def __init__(self) -> None:
        self.checkpoints = Path(os.environ.get("NIGHTRELAY_CHECKPOINT_DIR", "checkpoints"))
        resume = os.environ.get("NIGHTRELAY_RESUME_FROM")
        self.resume_from = Path(resume) if resume else None
        self._stop_file = os.environ.get("NIGHTRELAY_STOP_FILE")
        self._stop_at = int(os.environ.get("NIGHTRELAY_STOP_AT_STEP") or -1)
        self._progress = os.environ.get("NIGHTRELAY_PROGRESS")
        self._result = os.environ.get("NIGHTRELAY_RESULT")
        self._told = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def should_stop(self, step: int) -> bool:
        """Say whether to save and leave after this step. Ask often, in every loop."""
        asked = self._stop_file is not None and os.path.exists(self._stop_file)  # noqa: PTH110 (each step: be quick)
        return self._told or asked or step == self._stop_at

    def progress(self, phase: str, step: int, **numbers: Any) -> None:
        """Append one line: phases are load, compile, warmup, train, eval and save."""
        if self._progress:
            with open(self._progress, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(json.dumps({"phase": phase, "step": step, **numbers}) + "\n")

    def save(self, step: int, write: Callable[[Path], None], about: dict[str, Any]) -> Path:
        """Make `step-<n>`: the files of `write`, nightrelay.json, then COMPLETE. A killed save's rest is replaced."""
        folder = self.checkpoints / f"step-{step}"
        if (folder / "COMPLETE").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(folder)
        (folder / "nightrelay.json").write_text(json.dumps(about, sort_keys=True))
        (folder / "COMPLETE").touch()
        return folder

    def end(self, status: str, step: int) -> int:
        """Write the result, `finished` or `stopped`, and return the exit code that says the same."""
        if self._result:
            partial = Path(f"{self._result}.part")
            partial.write_text(json.dumps({"status": status, "step": step}))
            partial.replace(self._result)
        return 0 if status == "finished" else 75

    def _on_signal(self, number: int, frame: Any) -> None:
        self._told = True


class SaveRhythm:
    """Every so many steps; else as often as the leg asks (NIGHTRELAY_CHECKPOINT_EVERY, seconds), else `minutes`."""

    def __init__(self, steps: int, minutes: float) -> None:
        asked = os.environ.get("NIGHTRELAY_CHECKPOINT_EVERY")
        self._steps, self._seconds = steps, float(asked) if asked else 60 * minutes
        self._last = time.monotonic()

    def due(self, step: int) -> bool:
        """Say whether to save after this step."""
        if self._steps:
            return step % self._steps == 0
        if not self._seconds or time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True
