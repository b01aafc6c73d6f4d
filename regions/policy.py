"""What policy.yaml says: every default of planning, elasticity, tiers and retention. None of them hides in code."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regions.fields import Amount, Count, Currency, Day, Duration, Names, Ratio, Section, Share, Size

StageKind = Literal["preprocess", "pretrain", "finetune", "tune", "validate", "export"]
ModelClass = Literal["small", "large"]
PriorityClass = Literal["core", "important", "normal"]


class Speed(Section):
    """How fast an accelerator does a kind of stage, as a multiple of the template's reference, and who measured it."""

    rate: Annotated[Amount, Field(gt=0)]
    basis: Literal["list", "quote", "contract", "observed", "derived", "recalled", "estimate", "claim"] = "estimate"
    source: str = "not stated"
    as_of: Day | None = None


class Template(Section):
    """What may do a stage of this kind and size where the run does not say; the cheapest per unit of work is taken."""

    accelerators: Mapping[str, Speed] = Field(min_length=1)
    """Acceptable accelerators with their rate relative to each other (units of work per hour)."""
    min_memory: Size | None = None
    """Of one accelerator (or of its part, with a fraction)."""
    fraction: Share | None = None
    """The share of one accelerator that is enough; null: whole ones."""
    min_width: Annotated[int, Field(strict=True, ge=1)] = 1
    max_width: Annotated[int, Field(strict=True, ge=1)] = 1

    @model_validator(mode="after")
    def _ordered(self) -> Template:
        if self.max_width < self.min_width:
            raise ValueError(f"max_width at least min_width ({self.min_width})")
        return self


class Priority(Section):
    """A priority class: what it may displace, and how waiting lifts it."""

    rank: Count
    """0 is served first."""
    may_preempt: tuple[PriorityClass, ...] = ()
    age_up: Duration | None = None
    """After waiting this long a run counts one class higher; null: never."""


class Preemption(Section):
    """Rules for taking a machine away from a leg."""

    max_per_run: Count
    """A run displaced this often is left alone."""
    protected: Duration
    """A leg younger than this is left alone: it has not earned its start yet."""
    grace: Duration
    """Time between the wish to stop and the end, used to save."""
    charge_victim_loss: bool
    """Whether the work lost counts into the preemptor's price when victims are chosen."""


class Elasticity(Section):
    """When a region's workers are widened or narrowed, on measured use."""

    out_above: Ratio
    in_below: Ratio
    sustain: Duration
    """How long the measure must stay beyond a threshold."""
    cooldown: Duration
    min_workers: Count
    max_workers: Count

    @model_validator(mode="after")
    def _apart(self) -> Elasticity:
        if self.in_below >= self.out_above:
            raise ValueError(f"in_below under out_above ({self.out_above})")
        if self.max_workers < self.min_workers:
            raise ValueError(f"max_workers at least min_workers ({self.min_workers})")
        return self


class Tiers(Section):
    """When objects move between hot, warm and cold; a move that costs more than it saves is never made."""

    hot_idle: Duration
    """Unread this long, an object leaves hot."""
    warm_idle: Duration
    """Unread this long, an object leaves warm."""
    infrequent_after: Duration
    """Unread this long, a cold object goes to the infrequent class (if the prices say it pays)."""
    archive_after: Duration | None
    """Unread this long, it goes to the archive class; null: never by itself."""
    high_water: Ratio
    low_water: Ratio
    promote_horizon: Duration
    """Reads expected within this time count when promotion is weighed."""
    min_object: Size
    """Smaller objects stay in the standard class."""
    bundle_below: Size
    """Smaller objects are bundled before they move."""


class Retention(Section):
    """What is kept. The last good copy of anything live is kept whatever stands here."""

    last: Annotated[int, Field(strict=True, ge=1)]
    every: Duration | None
    best: Count
    orphans: Duration
    """Commits of an ended term, kept this long for a person to look at."""
    uploads: Duration
    """Unfinished uploads older than this are aborted."""
    runs: Duration
    """Reports and records of finished runs."""


class Limits(Section):
    """A most that nobody's plan may exceed."""

    currency: Currency
    per_accelerator_hour: Amount | None = None
    per_run: Amount | None = None


class Policy(Section):
    """All defaults, in one file."""

    stale_after: Duration
    """A price older than this warns."""
    jurisdictions: Names | None = None
    """The names a region's residency may use; null: any."""
    small_below: Annotated[int, Field(strict=True, gt=0)]
    """A model of fewer parameters is small, else large."""
    templates: Mapping[StageKind, Mapping[ModelClass, Template]]
    priorities: Mapping[PriorityClass, Priority]
    preemption: Preemption
    elasticity: Elasticity
    release_delay: Duration
    """Idle machines are given back after this."""
    tiers: Tiers
    retention: Retention
    limits: tuple[Limits, ...] = ()

    def model_class(self, parameters: int | None) -> ModelClass:
        """Return the class of a model; an unknown size counts as large, since too much memory is the safe mistake."""
        return "small" if parameters is not None and parameters < self.small_below else "large"

    def template(self, kind: StageKind, parameters: int | None) -> Template | None:
        """Return the template of a stage kind for a model of so many parameters."""
        return self.templates.get(kind, {}).get(self.model_class(parameters))


def relative_rate(template: Template, accelerator: str, known: str, rate: Decimal) -> Decimal | None:
    """Return an accelerator's rate from another's known one; None where the template lists not both."""
    if accelerator not in template.accelerators or known not in template.accelerators:
        return None
    reference = template.accelerators[known].rate
    return rate * template.accelerators[accelerator].rate / reference if reference else None


__all__ = [
    "Elasticity", "Limits", "ModelClass", "Policy", "Preemption", "Priority", "PriorityClass", "Retention",
    "Speed", "StageKind", "Template", "Tiers", "relative_rate",
]  # fmt: skip
