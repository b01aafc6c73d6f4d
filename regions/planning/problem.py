"""The values a plan is made from and the plan itself. No rule lives here, only what the words mean.

A Situation is everything about a run that changes while it runs; a Plan is never edited, a new revision replaces it.
All instants are aware and in UTC; all money in a Plan is in the plan's one currency.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Located:
    """Bytes that lie in a region's store."""

    region: str
    bytes: int


@dataclass(frozen=True, slots=True)
class CurrentLeg:
    """The leg that is running now; `until` is the end it was planned to have."""

    stage: str
    region: str
    offer: str
    market: str
    width: int
    started: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Busy:
    """Instances of an offer that somebody else has from `start` to `end` (`end` None: until further notice)."""

    region: str
    offer: str
    instances: Fraction
    start: datetime
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """Instances already paid for until an instant: their hours are sunk and cost a plan nothing."""

    region: str
    offer: str
    instances: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """A region said no to a launch; planning does not ask that offer again before `until`."""

    region: str
    offer: str
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Situation:
    """How a run stands: what is done, what lies where, what is taken. The default is a run nobody has started."""

    progress: Mapping[str, Fraction] = field(default_factory=dict)
    """Committed work by stage, in its unit; at or over its amount means the stage is done."""
    rates: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    """Observed work per hour and accelerator, by (stage, accelerator); wins over the request's."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of `dataset` or `<stage>.<output>` where a manifest tells them."""
    replicas: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Bytes that lie ready, by source (`dataset`, `<stage>.<output>`) and region; nothing said: all at home."""
    checkpoint: Located | None = None
    """The newest commit of the stage under way (or of the one the next stage starts from)."""
    leg: CurrentLeg | None = None
    busy: tuple[Busy, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    submitted: datetime | None = None
    """When the run was submitted; `within` counts from here (None: from now)."""
    spent: Decimal = Decimal(0)
    """Money already charged to the run, in the plan's currency; the budget has this much less left."""
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """Money by what it is for."""

    compute: Decimal = Decimal(0)
    electricity: Decimal = Decimal(0)
    transfer: Decimal = Decimal(0)
    storage: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """The sum of the parts."""
        return self.compute + self.electricity + self.transfer + self.storage

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.compute + other.compute,
            self.electricity + other.electricity,
            self.transfer + other.transfer,
            self.storage + other.storage,
        )

    def document(self) -> dict[str, Decimal]:
        """Return the parts and their total by name."""
        parts = {name: getattr(self, name) for name in ("compute", "electricity", "transfer", "storage")}
        return {**parts, "total": self.total}


@dataclass(frozen=True, slots=True)
class PlannedHandoff:
    """What is carried to the leg's region before it starts; `source` None: everything is there."""

    source: str | None = None
    bytes: int = 0
    seconds: int = 0
    cost: Decimal = Decimal(0)
    basis: str | None = None

    def document(self) -> dict[str, object]:
        """Return the handoff as a plan prints it."""
        return {"source": self.source, "bytes": self.bytes, "seconds": self.seconds, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class PlannedLeg:
    """One leg. Rent runs from `start`, when the machine is asked for, to `end`; work begins `startup` seconds in."""

    stage: str
    region: str
    offer: str
    market: str
    accelerator: str
    width: int
    start: datetime
    end: datetime
    work: Fraction
    startup: int
    handoff: PlannedHandoff
    cost: Cost
    by_basis: Mapping[str, tuple[Decimal, int]]
    """Rent and seconds of work by the basis of the price they rest on."""

    @property
    def site(self) -> tuple[str, str, str, int]:
        """What is rented: (region, offer, market, width)."""
        return (self.region, self.offer, self.market, self.width)

    def document(self) -> dict[str, object]:
        """Return the leg as a plan prints it."""
        return {
            "stage": self.stage,
            "region": self.region,
            "offer": self.offer,
            "market": self.market,
            "accelerator": self.accelerator,
            "width": self.width,
            "start": self.start,
            "end": self.end,
            "work": quantity(self.work),
            "startup": self.startup,
            "handoff": self.handoff.document(),
            "cost": self.cost.document(),
        }


@dataclass(frozen=True, slots=True)
class Rejection:
    """A place the plan does not use, why, and what the run would have cost there (None: it cannot run there at all)."""

    region: str
    offer: str
    reason: str
    would_cost: Decimal | None = None

    def document(self) -> dict[str, object]:
        """Return the rejection as a plan prints it."""
        return {"region": self.region, "offer": self.offer, "reason": self.reason, "would_cost": self.would_cost}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a simpler habit would have cost on the same request."""

    cost: Decimal
    finish: datetime
    feasible: bool

    def document(self) -> dict[str, object]:
        """Return the baseline as a plan prints it."""
        return {"cost": self.cost, "finish": self.finish, "feasible": self.feasible}


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the frontier: the least cost at which the run can be done by `finish`."""

    finish: datetime
    cost: Decimal

    def document(self) -> dict[str, object]:
        """Return the point as a plan prints it."""
        return {"finish": self.finish, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class Wish:
    """A change to the request that would make it feasible, and what it would give."""

    change: str
    finish: datetime
    cost: Decimal

    def document(self) -> dict[str, object]:
        """Return the wish as a plan prints it."""
        return {"change": self.change, "finish": self.finish, "cost": self.cost}


@dataclass(frozen=True, slots=True)
class Plan:
    """The legs a run is expected to take, what they cost, and why not otherwise."""

    run: str
    at: datetime
    catalog: str
    revision: int
    currency: str
    legs: tuple[PlannedLeg, ...]
    finish: datetime | None
    deadline: datetime | None
    feasible: bool
    cost: Decimal | None
    lower_bound: Decimal | None
    baselines: Mapping[str, Baseline | None]
    saving_by_basis: Mapping[str, Decimal]
    rejected: tuple[Rejection, ...]
    binding: str | None = None
    """What stands in the way where the plan is infeasible."""
    nearest: tuple[Wish, ...] = ()
    frontier: tuple[Point, ...] = ()
    warnings: tuple[str, ...] = ()
    bytes_per_hour: Fraction | None = None
    """Bytes to carry at a move per accelerator-hour of work: the first number that says whether moving can pay."""

    @property
    def gap(self) -> Decimal | None:
        """How much of the cost, as a fraction, is not proven necessary by the lower bound."""
        if self.cost is None or self.lower_bound is None:
            return None
        return (self.cost - self.lower_bound) / self.lower_bound if self.lower_bound > 0 else self.cost * 0

    @property
    def saving(self) -> Decimal | None:
        """What is saved against running at home now (None where that cannot be done at all)."""
        home = self.baselines.get("home_now")
        return None if home is None or self.cost is None else home.cost - self.cost

    def document(self) -> dict[str, object]:
        """Return the plan as `nightrelay plan --json` prints it and the journal keeps it."""
        return {
            "run": self.run,
            "at": self.at,
            "catalog": self.catalog,
            "revision": self.revision,
            "legs": [leg.document() for leg in self.legs],
            "finish": self.finish,
            "deadline": self.deadline,
            "feasible": self.feasible,
            "cost": self.cost,
            "currency": self.currency,
            "lower_bound": self.lower_bound,
            "gap": None if self.gap is None else float(round(self.gap, 6)),
            "saving": self.saving,
            "saving_by_basis": dict(self.saving_by_basis),
            "baselines": {name: None if base is None else base.document() for name, base in self.baselines.items()},
            "rejected": [rejection.document() for rejection in self.rejected],
            "binding": self.binding,
            "nearest": [wish.document() for wish in self.nearest],
            "frontier": [point.document() for point in self.frontier],
            "warnings": list(self.warnings),
            "bytes_per_accelerator_hour": None if self.bytes_per_hour is None else quantity(self.bytes_per_hour),
        }


def quantity(value: Fraction) -> int | float:
    """Return an amount of work or bytes as a JSON number: whole where it is whole."""
    return int(value) if value.denominator == 1 else float(value)
