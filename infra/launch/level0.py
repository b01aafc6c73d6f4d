"""Progress of trainers that know nothing of the contract: the logs that their frameworks write anyway."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from infra.launch.progress import JsonProgress, LineTail, PatternProgress, Progress, ProgressSource, from_numbers


class HuggingFaceProgress:
    """Reads `checkpoint-N/trainer_state.json`, whose log_history holds all that the Trainer logged."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints
        self._seen = -1

    def read(self) -> list[Progress]:
        """Return what is new."""
        new = []
        for state in sorted(self._checkpoints.glob("checkpoint-*/trainer_state.json")):
            try:
                history = json.loads(state.read_text(encoding="utf-8")).get("log_history", [])
            except (OSError, ValueError, AttributeError):
                continue
            said = (from_numbers(entry, "train") for entry in history if isinstance(entry, dict))
            new += [progress for progress in said if progress.step is not None and progress.step > self._seen]
        new.sort(key=lambda progress: progress.step or 0)
        unique = list({progress.step: progress for progress in new if progress.loss is not None}.values())
        self._seen = max([self._seen, *(progress.step or 0 for progress in new)])
        return unique


class LightningProgress:
    """Reads the `metrics.csv` of Lightning's CSVLogger, wherever it lies below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tails: dict[Path, tuple[LineTail, list[str]]] = {}

    def read(self) -> list[Progress]:
        """Return what is new."""
        new = []
        for path in sorted(self._folder.rglob("metrics.csv")):
            tail, header = self._tails.setdefault(path, (LineTail(path), []))
            for row in csv.reader(tail.lines()):
                if not header or row[:1] == header[:1]:
                    header[:] = row
                    continue
                numbers = dict(zip(header, row, strict=False))
                for name in ("train_loss", "loss"):
                    if numbers.get(name):
                        numbers["loss"] = numbers[name]
                new.append(from_numbers(numbers, "train"))
        return [progress for progress in new if progress.step is not None]


def progress_sources(progress: Path, log: Path, checkpoints: Path, pattern: str | None) -> tuple[ProgressSource, ...]:
    """Return all the ways this trainer may be heard: the contract's file, a pattern if given, known frameworks."""
    sources: list[ProgressSource] = [JsonProgress(progress)]
    if pattern is not None:
        sources.append(PatternProgress(log, pattern))
    return (*sources, HuggingFaceProgress(checkpoints), LightningProgress(checkpoints))
