"""What a trainer has saved: which of the things in its checkpoint folder are whole, and at which step.

Level 1, the contract's own: `step-<n>/` with a `COMPLETE` file, or renamed into place. Level 0, trainers that know of
no contract: Hugging Face `checkpoint-N/`, Lightning `*step=N*.ckpt`, torch distributed (`.metadata`), Orbax, or a glob.
The newest folder is not the newest checkpoint: whatever is not whole is named with the reason it was passed over.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.launch.progress import Progress, from_numbers
from regions.clock import Clock

SETTLE_SECONDS = 2.0
"""Level 0 gives no commit mark for all its files: what changed within so many real seconds may still be growing."""
_STEP = re.compile(r"^step-(\d+)$")
_NUMBER = re.compile(r"(\d+)(?!.*\d)")


@dataclass(frozen=True, slots=True)
class Save:
    """A whole checkpoint: a folder, or a single file. `kind` says by which sign it was known."""

    step: int
    path: Path
    kind: str

    def files(self) -> tuple[Path, ...]:
        """Return its files in a fixed order, without the mark that it is complete."""
        if self.path.is_file():
            return (self.path,)
        found = (path for path in self.path.rglob("*") if path.is_file() and path != self.path / "COMPLETE")
        return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Something that is no whole checkpoint, and why."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Saves:
    """What lies in a checkpoint folder; `whole` is in ascending order of steps."""

    whole: tuple[Save, ...]
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, slots=True)
class SaveFacts:
    """What is recorded with a checkpoint, as far as it is known."""

    samples: int | None = None
    epoch: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


def scan(folder: Path, clock: Clock, *, glob: str | None = None, settled: bool = False) -> Saves:
    """Look through a checkpoint folder. `settled`: its trainer has ended, so nothing in it can still be growing."""
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    if glob is not None:
        entries = sorted({*entries, *folder.glob(glob)})
    quiet_since = clock.real().timestamp() - (0.0 if settled else SETTLE_SECONDS)
    seen = [_look(entry, folder, glob, quiet_since) for entry in entries]
    whole = sorted((save for save in seen if isinstance(save, Save)), key=lambda save: (save.step, save.path))
    return Saves(tuple(whole), tuple(entry for entry in seen if isinstance(entry, PassedOver)))


def facts_of(save: Save, said: Progress | None) -> SaveFacts:
    """Return a checkpoint's facts: its own nightrelay.json wins, else the last word at or before its step."""
    try:
        document = json.loads((save.path / "nightrelay.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = None
    if isinstance(document, dict):
        own = from_numbers(document)
        metrics = document.get("metrics")
        return _facts(own.samples, own.metrics, from_numbers(metrics if isinstance(metrics, dict) else {}))
    return SaveFacts() if said is None else _facts(said.samples, said.metrics, said)


def _facts(samples: int | None, top: Mapping[str, float], measured: Progress) -> SaveFacts:
    metrics = {name: value for name, value in measured.metrics.items() if name != "epoch"}
    if measured.loss is not None:
        metrics["loss"] = measured.loss
    return SaveFacts(samples, int(top["epoch"]) if "epoch" in top else None, metrics)


def set_aside(checkpoints: Path, aside: Path, keep: Collection[Path] = ()) -> tuple[Path, ...]:
    """Move everything but `keep` out of a checkpoint folder, so that no framework's "take the highest" finds it.

    Called before a start with what was restored from a commit as `keep`. What was moved aside before is deleted then:
    one generation is enough to look at. Returns the new places.
    """
    kept = {path.resolve() for path in keep}
    leftovers = [entry for entry in sorted(checkpoints.iterdir()) if entry.resolve() not in kept]
    if not leftovers:
        return ()
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    return tuple(entry.rename(aside / entry.name) for entry in leftovers)


def _look(entry: Path, folder: Path, glob: str | None, quiet_since: float) -> Save | PassedOver | None:
    """Judge one entry; None where it has nothing to do with checkpoints."""
    by_glob = glob is not None and entry.relative_to(folder).match(glob)
    if entry.is_file():
        return _look_file(entry, by_glob, quiet_since)
    if match := _STEP.match(entry.name):
        step = int(match[1])
        if (entry / "COMPLETE").is_file():
            return Save(step, entry, "complete")
        if (entry / ".metadata").is_file():
            return _settled(Save(step, entry, "dcp"), quiet_since)
        if _renamed_into_place(entry):
            return Save(step, entry, "renamed")
        return PassedOver(entry, "it has no COMPLETE file")
    if (entry / ".metadata").is_file():
        return _numbered(entry, "dcp", quiet_since)
    for sign, kind, missing in _SIGNS:
        if sign.match(entry.name):
            return _look_level0(entry, kind, missing, quiet_since)
    return _numbered(entry, "glob", quiet_since) if by_glob else None


_SIGNS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(r"^checkpoint-\d+$"), "huggingface", "trainer_state.json"),
    (re.compile(r".*orbax-checkpoint-tmp.*"), "orbax", "a name without orbax-checkpoint-tmp"),
    (re.compile(r"^(.*_)?\d+$"), "orbax", "_CHECKPOINT_METADATA or commit_success.txt"),
)


def _look_level0(entry: Path, kind: str, missing: str, quiet_since: float) -> Save | PassedOver:
    if kind == "huggingface":
        whole = _huggingface_whole(entry)
    else:
        marks = ("_CHECKPOINT_METADATA", "commit_success.txt")
        whole = "orbax-checkpoint-tmp" not in entry.name and any((entry / mark).is_file() for mark in marks)
    return _numbered(entry, kind, quiet_since) if whole else PassedOver(entry, f"it lacks {missing}")


def _huggingface_whole(entry: Path) -> bool:
    if (entry / "checkpoint-is-incomplete.txt").exists():
        return False
    try:
        return "global_step" in json.loads((entry / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _look_file(entry: Path, by_glob: bool, quiet_since: float) -> Save | PassedOver | None:
    if by_glob:
        return _numbered(entry, "glob", quiet_since)
    if entry.suffix != ".ckpt":
        return None
    match = re.search(r"step=(\d+)", entry.name)
    if match is None:
        return PassedOver(entry, "its name has no step=<n>")
    if not zipfile.is_zipfile(entry):
        return PassedOver(entry, "it is cut short")
    return _settled(Save(int(match[1]), entry, "lightning"), quiet_since)


def _numbered(entry: Path, kind: str, quiet_since: float) -> Save | PassedOver:
    match = _NUMBER.search(entry.stem if entry.is_file() else entry.name)
    if match is None:
        return PassedOver(entry, "its name has no number for the step")
    return _settled(Save(int(match[1]), entry, kind), quiet_since)


def _settled(save: Save, quiet_since: float) -> Save | PassedOver:
    newest = max(_changes([save.path, *save.files()]), default=0.0)
    return save if newest <= quiet_since else PassedOver(save.path, "it changed a moment ago and may still be growing")


def _changes(paths: Iterable[Path]) -> list[float]:
    changes = []
    for path in paths:
        try:
            changes.append(path.stat().st_mtime)
        except OSError:
            changes.append(float("inf"))
    return changes


def _renamed_into_place(folder: Path) -> bool:
    """Say whether a folder got its name after its content was whole.

    A rename changes the folder's own ctime and leaves its mtime at the last entry made in it; a folder filled in place
    has both alike. So this is never true for a folder that is being filled, and not seen on a file system that does
    not keep ctimes: a COMPLETE file is then the only sign.
    """
    try:
        own = folder.stat()
        inside = [path.stat().st_mtime_ns for path in folder.rglob("*")]
    except OSError:
        return False
    return bool(inside) and own.st_ctime_ns > own.st_mtime_ns and max(inside) <= own.st_ctime_ns
