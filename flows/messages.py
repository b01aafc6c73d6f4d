"""What the control side and a leg tell each other, as small JSON objects in the region's store.

    order      what a leg is to do; written once, before the leg exists
    baton      the term is yours, start from this commit; written once, when the journal has opened the term
    control    the term that stands now, and a wish (yield, stop, dismissed); rewritten by the control side only
    heartbeat  what the leg is doing; rewritten by the leg only
    report     what the leg did; written once, by the leg, last

So a leg needs no server: while the control side or Prefect is away, it goes on. Every object has one writer.
Keys lie under `runs/<run>/`; a leg's number is its term (docs/decisions/0601).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["finished", "handed_off", "yielded", "stopped", "failed", "lost", "fenced", "dismissed"]
"""How a leg ended: its stage is done; its planned end came; it was asked to make room; the run was cancelled; the
trainer failed; it fell silent; a newer term stood; it never got the baton."""


class Message(BaseModel):
    """Base of the objects: frozen, no unknown fields, JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Place(Message):
    """A region's store as an order names it, so that a leg can read it: no credentials."""

    region: str
    url: str
    endpoint: str | None = None


class DatasetRef(Message):
    """A dataset: its manifest's digest and the store and folder it can be copied from."""

    digest: str
    source: Place
    folder: str
    bytes: int


class Order(Message):
    """What one leg is to do. All instants are on the run clock, in UTC."""

    run: str
    recipe: str
    team: str
    stage: str
    kind: str
    number: int
    region: str
    offer: str
    market: str
    width: int
    command: tuple[str, ...]
    seed: int
    work: int
    """The stage's amount of work, in its own unit (a step or sample count)."""
    checkpoint_every: float
    """Run-clock seconds between periodic checkpoints."""
    checkpoint_glob: str | None = None
    progress_pattern: str | None = None
    planned_start: datetime
    planned_end: datetime
    dataset: DatasetRef | None = None
    precopy: CommitRef | None = None
    """The newest commit known when the order was written: what a waiting leg copies ahead of the baton."""
    grace: float
    """Real seconds the trainer gets between a stop request and SIGKILL."""
    environment: dict[str, str] = {}


class CommitRef(Message):
    """One committed checkpoint and a store that holds it."""

    key: str
    step: int
    term: int
    digest: str
    bytes: int
    source: Place


class Baton(Message):
    """The term is the leg's from here on; it starts from `start_from`, or from nothing where that is null."""

    run: str
    number: int
    start_from: CommitRef | None
    stop_by: datetime
    """When the leg is to end by itself, on the run clock."""


class Control(Message):
    """The one object a running leg obeys: the term that stands, and what is wished of it."""

    term: int = 0
    dismissed: int = 0
    """Legs up to this number that do not hold the term must go."""
    wish: Literal["go", "yield", "stop"] = "go"
    reason: str = ""
    stop_by: datetime | None = None
    """A new planned end for the standing leg, on the run clock."""


class Heartbeat(Message):
    """What a leg is doing. `real` and `at` are the same moment on the real and on the run clock."""

    number: int
    real: datetime
    at: datetime
    phase: str
    started_real: datetime
    started_at: datetime
    from_step: int = 0
    step: int = 0
    committed: int = 0
    loss: float | None = None
    samples_per_second: float | None = None
    handed_bytes: int = 0
    pid: int
    trainer_pid: int | None = None


class Span(Message):
    """One phase of a leg on both clocks."""

    phase: str
    start_at: datetime
    end_at: datetime
    start_real: datetime
    end_real: datetime


class Report(Message):
    """What a leg did, once and for all."""

    number: int
    outcome: Outcome
    reason: str
    kind: str = ""
    """The error's kind where it failed."""
    exit_code: int | None = None
    from_step: int
    to_step: int
    commits: tuple[CommitRef, ...]
    phases: tuple[Span, ...]
    started_at: datetime
    ended_at: datetime
    started_real: datetime
    ended_real: datetime
    first_step_real: datetime | None = None
    """When the trainer had done its first step here."""
    received: dict[str, int] = {}
    """Bytes brought from other regions' stores, by region."""
    handed_bytes: int
    handed_seconds: float
    exact: Literal["bits", "sequence", "first"] = "first"
    """What going on from the last commit guarantees here: the same bits (equal fingerprints) or the same sequence."""
    fingerprint: dict[str, Any] = {}
    loss: float | None = None
    losses: tuple[tuple[int, float], ...] = ()
    """A thinned loss curve: (step, loss)."""
    sample: str = ""
    """The last lines the trainer printed, where it finished."""
    pid: int
    trainer_pid: int | None = None


Order.model_rebuild()


def order_key(run: str, number: int) -> str:
    """Return the key of a leg's order."""
    return f"runs/{run}/legs/{number:06d}/order.json"


def baton_key(run: str, number: int) -> str:
    """Return the key of a leg's baton."""
    return f"runs/{run}/legs/{number:06d}/baton.json"


def heartbeat_key(run: str, number: int) -> str:
    """Return the key of a leg's heartbeat."""
    return f"runs/{run}/legs/{number:06d}/heartbeat.json"


def report_key(run: str, number: int) -> str:
    """Return the key of a leg's report."""
    return f"runs/{run}/legs/{number:06d}/report.json"


def control_key(run: str) -> str:
    """Return the key of a run's control object in a region's store."""
    return f"runs/{run}/control.json"
