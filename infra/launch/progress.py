"""What a trainer says while it runs: JSON lines, read as they grow, a half line at a time if need be.

Lines that are no progress are counted, not fatal: a trainer's log must never stop its training.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

PHASES = ("load", "compile", "warmup", "train", "eval", "save")
_MOST_BYTES = 1 << 20
"""Read at most so much at once, and keep no half line longer than this."""
_REMEMBERED = 4096
_FACTS = ("step", "loss", "samples", "tokens_per_second", "samples_per_second", "phase")


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing a trainer said. None where it did not say; `metrics` are the other numbers of the line."""

    step: int | None = None
    loss: float | None = None
    samples: int | None = None
    tokens_per_second: float | None = None
    samples_per_second: float | None = None
    phase: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


class ProgressSource(Protocol):
    """Something that tells how a trainer gets on."""

    def read(self) -> list[Progress]:
        """Return what is new since the last call, oldest first; an absent file is nothing new."""
        ...


class LineTail:
    """The complete lines a growing file has gained since the last look. A file that shrank is read from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._half = b""

    def lines(self) -> list[str]:
        """Return the new lines, without a last one that has no end yet."""
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._offset:
                    self._offset, self._half = 0, b""
                file.seek(self._offset)
                text = file.read(_MOST_BYTES)
        except OSError:
            return []
        self._offset += len(text)
        *whole, self._half = (self._half + text).split(b"\n")
        if len(self._half) > _MOST_BYTES:
            self._half = b""
        return [line.decode("utf-8", "replace") for line in whole]


class JsonProgress:
    """Reads NIGHTRELAY_PROGRESS."""

    def __init__(self, path: Path) -> None:
        self._tail = LineTail(path)
        self.unreadable = 0
        """Lines that were no progress."""

    def read(self) -> list[Progress]:
        """Return what is new."""
        found = []
        for line in self._tail.lines():
            progress = parse_line(line)
            if progress is not None:
                found.append(progress)
            elif line.strip():
                self.unreadable += 1
        return found


class PatternProgress:
    """Reads a trainer that only prints: a pattern with groups `step` and, if it has them, `loss` and `samples`."""

    def __init__(self, log: Path, pattern: str) -> None:
        self._tail = LineTail(log)
        self._pattern = re.compile(pattern)

    def read(self) -> list[Progress]:
        """Return what is new."""
        matches = (self._pattern.search(line) for line in self._tail.lines())
        return [from_numbers(match.groupdict()) for match in matches if match is not None]


class ProgressLog:
    """Everything said so far by all sources of one trainer, the newest last, old lines thinned away."""

    def __init__(self, sources: Iterable[ProgressSource], hear: Callable[[Progress], None] | None = None) -> None:
        self._sources = tuple(sources)
        self._hear = hear
        self._said: deque[Progress] = deque(maxlen=_REMEMBERED)
        self.latest = Progress()
        """Each fact as it was last said."""

    def read(self) -> list[Progress]:
        """Take in what is new and return it."""
        new = [progress for source in self._sources for progress in source.read()]
        for progress in new:
            self._said.append(progress)
            self.latest = _over(self.latest, progress)
            if self._hear is not None:
                self._hear(progress)
        return new

    def at(self, step: int) -> Progress | None:
        """Return what was said last at or before a step: what a checkpoint without facts of its own is given."""
        known = (said for said in reversed(self._said) if said.step is not None and said.step <= step)
        return next(known, None)


def parse_line(line: str) -> Progress | None:
    """Return one JSON line's progress, or None where it is none."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    phase = document.get("phase")
    return from_numbers(document, phase if phase in PHASES else None)


def from_numbers(document: Mapping[str, object], phase: str | None = None) -> Progress:
    """Return progress from named numbers (or their texts); what is no number is left out."""
    numbers = {name: number for name, value in document.items() if (number := _number(value)) is not None}
    step, samples = numbers.pop("step", None), numbers.pop("samples", None)
    return Progress(
        step=None if step is None else int(step),
        loss=numbers.pop("loss", None),
        samples=None if samples is None else int(samples),
        tokens_per_second=numbers.pop("tokens_per_second", None),
        samples_per_second=numbers.pop("samples_per_second", None),
        phase=phase,
        metrics=numbers,
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _over(old: Progress, new: Progress) -> Progress:
    said = {name: value for name in _FACTS if (value := getattr(new, name)) is not None}
    return replace(old, **said, metrics={**old.metrics, **new.metrics})
