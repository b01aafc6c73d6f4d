"""Starts a shipped trainer as a leg would, and looks at what it left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

TRAINERS = Path(__file__).parents[2] / "examples" / "trainers"
SMALL = ["--batch", "8", "--width", "16", "--layers", "1", "--heads", "2", "--context", "16", "--steps", "24"]


def build_topics(folder: Path) -> Path:
    """Build the demo's dataset with short samples."""
    subprocess.run([sys.executable, TRAINERS / "topics.py", folder, "--context", "16"], check=True, capture_output=True)
    return folder


class Trainer:
    """One trainer with its folders; `command` is what comes before the flags."""

    def __init__(self, folder: Path, dataset: Path, command: list[str | Path]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.checkpoints = folder / "checkpoints"
        self.stop_file, self.result_file = folder / "stop", folder / "result.json"
        self.progress_file = folder / "progress.jsonl"
        self._command = command
        self._environ = os.environ | {
            "NIGHTRELAY_DATASET": str(dataset),
            "NIGHTRELAY_SEED": "11",
            "NIGHTRELAY_CHECKPOINT_DIR": str(self.checkpoints),
            "NIGHTRELAY_STOP_FILE": str(self.stop_file),
            "NIGHTRELAY_RESULT": str(self.result_file),
            "NIGHTRELAY_PROGRESS": str(self.progress_file),
        }

    def start(self, *flags: str, resume: Path | None = None, **environ: str) -> subprocess.Popen[str]:
        """Start it; the result of an earlier start is removed."""
        self.result_file.unlink(missing_ok=True)
        more = {"NIGHTRELAY_RESUME_FROM": str(resume)} if resume else {}
        return subprocess.Popen(
            [*self._command, *SMALL, *flags], env=self._environ | more | environ, stdout=subprocess.PIPE, text=True
        )

    def run(self, *flags: str, resume: Path | None = None, **environ: str) -> tuple[int, dict[str, object]]:
        """Run it to its end; return the exit code and the result."""
        process = self.start(*flags, resume=resume, **environ)
        process.communicate(timeout=120)
        return process.returncode, json.loads(self.result_file.read_text())

    def step(self, number: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.checkpoints / f"step-{number}"

    def losses(self) -> list[float]:
        """Return the losses it told, in order."""
        lines = (json.loads(line) for line in self.progress_file.read_text().splitlines())
        return [line["loss"] for line in lines if "loss" in line]

    @staticmethod
    def wait_for(condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, a minute at most."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)
