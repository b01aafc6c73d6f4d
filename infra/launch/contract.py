"""What a trainer is given: variables, the same in one JSON file, and the folders and files behind them.

Any command in any framework may be launched; it needs no import from here. All paths are absolute and local. Instants
are real ones, ISO 8601 with zone: a trainer lives on real time, whatever the run clock shows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from regions.errors import Fault, RequestError

STOPPED_EXIT_CODE = 75
"""A trainer's exit code for "stopped as asked, can be resumed" (EX_TEMPFAIL)."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_WITHHELD = re.compile(r"^(PREFECT_.*|NIGHTRELAY_.*|VIRTUAL_ENV_PROMPT)$")
"""Variables of the leg that are none of a trainer's business; the contract's own are set anew."""
_KEPT = frozenset({"NIGHTRELAY_CLOCK"})


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a leg and its trainer meet, under one folder that no other leg uses."""

    root: Path

    @property
    def checkpoints(self) -> Path:
        """Where the trainer saves."""
        return self.root / "checkpoints"

    @property
    def aside(self) -> Path:
        """Where uncommitted leftovers go before a start."""
        return self.root / "aside"

    @property
    def inputs(self) -> Path:
        """Where named inputs are laid."""
        return self.root / "inputs"

    @property
    def outputs(self) -> Path:
        """Where the trainer leaves named outputs."""
        return self.root / "outputs"

    @property
    def scratch(self) -> Path:
        """The trainer's TMPDIR, emptied before each start."""
        return self.root / "scratch"

    @property
    def progress(self) -> Path:
        """JSON lines from the trainer."""
        return self.root / "progress.jsonl"

    @property
    def stop_file(self) -> Path:
        """Appears when the trainer should save and leave."""
        return self.root / "stop"

    @property
    def result(self) -> Path:
        """The trainer's last word."""
        return self.root / "result.json"

    @property
    def context(self) -> Path:
        """The variables once more, as JSON."""
        return self.root / "context.json"

    @property
    def log(self) -> Path:
        """What the trainer prints on stdout and stderr."""
        return self.root / "trainer.log"

    def prepare(self) -> None:
        """Make the folders and remove what an earlier trainer said here; what it saved is left to `saves.set_aside`."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        for folder in (self.checkpoints, self.inputs, self.outputs, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)
        for said in (self.progress, self.stop_file, self.result, self.log):
            said.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """Everything one trainer is told. `work` of the stage is not among it: a trainer has its own idea of its length."""

    run: str
    stage: str
    leg: int
    term: int
    region: str
    seed: int
    folders: Folders
    grace_seconds: float
    resume_from: Path | None = None
    """A verified local checkpoint to go on from; None on the first leg."""
    dataset: str | None = None
    """Path or URL of the dataset's manifest."""
    cursor: int | None = None
    """Samples consumed so far in the run's global order."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Named inputs: local paths or URLs."""
    stop_by: datetime | None = None
    """The real instant at which it will be asked to stop."""
    stop_at_step: int | None = None
    threads: int | None = None
    """Threads of the numeric libraries, pinned so that a leg computes the same bits elsewhere; None: not pinned."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """The run file's `env`, for the stage."""

    def variables(self) -> dict[str, str]:
        """Return the contract's variables, without those that have nothing to say."""
        paths = self.folders
        said: dict[str, object | None] = {
            "RUN": self.run,
            "STAGE": self.stage,
            "LEG": self.leg,
            "TERM": self.term,
            "REGION": self.region,
            "SEED": self.seed,
            "CONTEXT": paths.context,
            "CHECKPOINT_DIR": paths.checkpoints,
            "RESUME_FROM": self.resume_from,
            "DATASET": self.dataset,
            "CURSOR": self.cursor,
            "OUTPUT_DIR": paths.outputs,
            "PROGRESS": paths.progress,
            "STOP_FILE": paths.stop_file,
            "GRACE_SECONDS": f"{self.grace_seconds:g}",
            "STOP_BY": None if self.stop_by is None else self.stop_by.isoformat(),
            "STOP_AT_STEP": self.stop_at_step,
            "RESULT": paths.result,
            **{f"INPUT_{input_variable(name)}": where for name, where in self.inputs.items()},
        }
        return {f"NIGHTRELAY_{name}": str(value) for name, value in said.items() if value is not None}

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the trainer's whole environment on top of the leg's, which is stripped of what is not its business.

        `python` in a command means the interpreter that runs the leg. torchrun is told the grace; what the run file's
        `env` says wins over everything but the contract's own variables.
        """
        kept = {name: value for name, value in base.items() if not _WITHHELD.match(name) or name in _KEPT}
        own_programs = str(Path(sys.executable).parent)
        path = [entry for entry in kept.get("PATH", os.defpath).split(os.pathsep) if entry != own_programs]
        grace = f"{self.grace_seconds:g}"
        pins = dict.fromkeys(_THREAD_VARIABLES, str(self.threads)) if self.threads is not None else {}
        return {
            **kept,
            "PATH": os.pathsep.join([own_programs, *path]),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(self.folders.scratch),
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": grace,
            **pins,
            **self.extra,
            **self.variables(),
        }

    def write(self) -> None:
        """Write the context file: the variables' names in lower case without the prefix, inputs as one object."""
        document: dict[str, object] = {
            name.removeprefix("NIGHTRELAY_").lower(): value
            for name, value in self.variables().items()
            if not name.startswith("NIGHTRELAY_INPUT_")
        }
        document["inputs"] = dict(self.inputs)
        self.folders.context.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def input_variable(name: str) -> str:
    """Return an input's name as it stands in a variable: upper case, what is no letter or digit as an underscore."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def substitute(command: Sequence[str], resume_from: Path | None) -> tuple[str, ...]:
    """Return the command with `{resume}` replaced.

    On the first leg there is nothing to resume: an argument that is `{resume}` alone is left out together with the flag
    before it; one that merely contains it (`--from={resume}`) is left out itself.
    """
    if resume_from is not None:
        return tuple(argument.replace("{resume}", str(resume_from)) for argument in command)
    kept: list[str] = []
    for argument in command:
        if argument == "{resume}":
            if kept and kept[-1].startswith("-"):
                kept.pop()
        elif "{resume}" not in argument:
            kept.append(argument)
    if not kept:
        fault = Fault("run file", None, "command", repr(list(command)), "a program before {resume}")
        raise RequestError("the command has nothing to run on a first leg:", [fault])
    return tuple(kept)
