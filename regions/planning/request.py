"""What a user asks for: the run file, whole and checked at the door.

Every fault of a file is reported at once, each with its line. Durations, sizes and money are parsed here and nowhere
later; which regions exist, and what they cost, is not known here (`problem` and `grid` join the two).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from regions.documents import read_document, validate
from regions.errors import RequestError
from regions.units import parse_duration, parse_share, parse_size

Priority = Literal["core", "important", "normal"]
Kind = Literal["preprocess", "pretrain", "finetune", "tune", "validate", "export"]
MarketName = Literal["on_demand", "spot", "reserved"]


def _instant(value: object) -> object:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("an instant needs its zone, such as 2026-12-08T08:00:00+08:00")
        return value.astimezone(UTC)
    return value


def _decimal(value: object) -> object:
    return Decimal(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else value


def _exact(value: object) -> object:
    return Fraction(str(value)) if isinstance(value, int | float | str) and not isinstance(value, bool) else value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(parse_size), Field(ge=0)]
Share = Annotated[Fraction, BeforeValidator(parse_share), Field(gt=0, le=1)]
Amount = Annotated[Decimal, BeforeValidator(_decimal)]
Positive = Annotated[Fraction, BeforeValidator(_exact), Field(gt=0)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Cash(_Part):
    """An amount of money with its currency; the amount is quoted in the file."""

    amount: Annotated[Amount, Field(ge=0)]
    currency: Currency


class ModelSize(_Part):
    """The trained model, as far as stage templates need it."""

    parameters: int | None = Field(default=None, gt=0)


class Places(_Part):
    """Where the run may go. `allow` None means every active region; `home` is where its data lies at first."""

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    home: str | None = None


class Dataset(_Part):
    """What the run reads. `size` None: the manifest's; a plan is refused by name while neither is known."""

    url: str
    may_leave: tuple[str, ...] = ()
    size: Size | None = None


class Best(_Part):
    """Keep the `n` best checkpoints by a metric."""

    metric: str
    mode: Literal["min", "max"] = "min"
    n: int = Field(default=1, ge=1)


class Keep(_Part):
    """Which checkpoints stay: the newest `last`, one per `every`, and the best."""

    last: int = Field(default=3, ge=1)
    every: Duration | None = None
    best: Best | None = None


class CheckpointWish(_Part):
    """How often state is saved, how large it is, what is kept, and what a whole one looks like (glob)."""

    every: Duration = timedelta(minutes=15)
    size: Size | None = None
    keep: Keep = Keep()
    glob: str | None = None


class Output(_Part):
    """Something a stage makes. `size` lets a plan carry it to other regions before it exists."""

    name: Name
    size: Size | None = None


class Work(_Part):
    """How much there is to do, in the unit that a checkpoint's step counts."""

    amount: Positive
    unit: str = "steps"


class Speed(_Part):
    """Work units per hour and accelerator at the minimum width (or for the whole fraction asked for)."""

    rate: Positive


class Width(_Part):
    """How many accelerators; `scaling` is the efficiency per accelerator at a width, 1 at the minimum."""

    min: int = Field(ge=1)
    max: int = Field(ge=1)
    scaling: Mapping[int, Positive] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("scaling"), Mapping):
            # JSON has text keys, YAML has numbers: both name a width.
            numbered = {int(key) if str(key).isdigit() else key: value for key, value in data["scaling"].items()}
            return {**data, "scaling": numbered}
        return data

    @model_validator(mode="after")
    def _ordered(self) -> Width:
        if self.max < self.min:
            raise ValueError(f"max ({self.max}) is below min ({self.min})")
        outside = [width for width in self.scaling if not self.min <= width <= self.max]
        if outside:
            raise ValueError(f"scaling names width {outside[0]}, which is not within {self.min} to {self.max}")
        return self


def _outputs(value: object) -> object:
    if isinstance(value, list | tuple):
        return [{"name": item} if isinstance(item, str) else item for item in value]
    return value


class Stage(_Part):
    """A logical part of the run: what to launch, how much work it is, what may do it and how fast."""

    id: Name
    kind: Kind
    command: tuple[str, ...] = Field(min_length=1)
    env: Mapping[str, str] = Field(default_factory=dict)
    inputs: Mapping[Name, str] = Field(default_factory=dict)
    outputs: Annotated[tuple[Output, ...], BeforeValidator(_outputs)] = ()
    starts_from: str | None = None
    work: Work
    accelerators: Mapping[str, Speed] = Field(min_length=1)
    width: Width | None = None
    fraction: Share | None = None
    markets: tuple[MarketName, ...] = Field(default=("on_demand",), min_length=1)
    preemptible: bool = True
    windows: tuple[str, ...] | None = None
    """Only run while one of these tariff windows matches (its name); None: at any time."""
    max_price: Cash | None = None
    """Never pay more than this per accelerator-hour."""
    checkpoint: CheckpointWish | None = None
    grace: Duration = timedelta(minutes=2)
    """How long the trainer has to save and leave when asked to."""
    progress_pattern: str | None = None
    """For trainers that only print: a regular expression over stdout with groups `step` and, if known, `loss`."""

    @model_validator(mode="after")
    def _one_device_or_many(self) -> Stage:
        if self.fraction is not None and self.width is not None:
            raise ValueError("a stage has a width or a fraction of one accelerator, not both")
        return self


class RunRequest(_Part):
    """One training run as asked for."""

    id: Name
    team: str = "default"
    priority: Priority = "normal"
    model: ModelSize = ModelSize()
    deadline: Instant | None = None
    within: Duration | None = None
    budget: Cash | None = None
    objective: Literal["cost", "time"] = "cost"
    regions: Places = Places()
    dataset: Dataset | None = None
    checkpoint: CheckpointWish = CheckpointWish()
    env: Mapping[str, str] = Field(default_factory=dict)
    margin: Duration = timedelta(minutes=1)
    """Time kept free before the deadline, and before the end of a window that a stage may not leave."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    notes: str | None = None

    def deadline_from(self, submitted: datetime) -> datetime | None:
        """Return the instant by which the run must be done if it was submitted then; None: whenever it is cheap."""
        return submitted + self.within if self.within is not None else self.deadline

    def checkpoint_of(self, stage: Stage) -> CheckpointWish:
        """Return the run's wish with what the stage itself says put over it."""
        if stage.checkpoint is None:
            return self.checkpoint
        own = {name: getattr(stage.checkpoint, name) for name in stage.checkpoint.model_fields_set}
        return self.checkpoint.model_copy(update=own)

    def stage(self, name: str) -> Stage:
        """Return the stage of that id (KeyError if there is none)."""
        return {stage.id: stage for stage in self.stages}[name]


def parse_run(text: str, file: str) -> RunRequest:
    """Return the run a YAML or JSON text asks for; RequestError lists every fault with its line."""
    document = read_document(text, file, error=RequestError)
    run = validate(RunRequest, document, error=RequestError)
    faults = [document.fault(path, got, expected) for path, got, expected in _contradictions(run)]
    if faults:
        raise RequestError(f"{file} has {len(faults)} fault{'s' if len(faults) != 1 else ''}:", faults)
    return run


def _contradictions(run: RunRequest) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield what is wrong between fields that are each right: (path, got, expected)."""
    if run.deadline is not None and run.within is not None:
        yield ("within",), "deadline and within", "one of them"
    made: set[str] = set()
    seen: set[str] = set()
    for number, stage in enumerate(run.stages):
        here = ("stages", number)
        if stage.id in seen:
            yield (*here, "id"), stage.id, "an id that no other stage has"
        for name, source in stage.inputs.items():
            if source == "dataset" and run.dataset is None:
                yield (*here, "inputs", name), source, "a run with a dataset"
            elif source != "dataset" and source not in made:
                yield (*here, "inputs", name), source, f"one of {', '.join(['dataset', *sorted(made)])}"
        if stage.starts_from is not None and stage.starts_from not in seen:
            yield (*here, "starts_from"), stage.starts_from, "a stage before this one"
        seen.add(stage.id)
        made |= {f"{stage.id}.{output.name}" for output in stage.outputs}
