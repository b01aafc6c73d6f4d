"""Rows of the journal as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from flows.messages import Heartbeat

_T = TypeVar("_T")

LIVE = ("submitted", "running", "waiting", "cancelling")
"""The states of a run that still needs decisions; the others (finished, failed, cancelled) are final."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the journal has it."""

    id: str
    flow_run: str
    recipe: str
    team: str
    priority: str
    request: dict[str, Any]
    dataset: dict[str, Any] | None
    catalog: str
    submitted_at: datetime
    submitted_real: datetime
    ended_at: datetime | None
    state: str
    reason: str
    term: int
    stage: str | None
    cancel: bool
    driver_seen: datetime | None
    final_digest: str | None
    continues: str | None


@dataclass(frozen=True, slots=True)
class LegRow:
    """A leg as the journal has it. States: intended, launched, open, ended."""

    run: str
    number: int
    stage: str
    region: str
    offer: str
    market: str
    width: int
    catalog: str
    state: str
    outcome: str | None
    reason: str
    flow_run: str | None
    planned_start: datetime
    planned_end: datetime
    launched_real: datetime
    opened_real: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    started_real: datetime | None
    ended_real: datetime | None
    from_step: int | None
    to_step: int | None
    pid: int | None
    trainer_pid: int | None
    heartbeat: dict[str, Any] | None
    heartbeat_real: datetime | None
    report: dict[str, Any] | None
    estimated: bool

    @property
    def beat(self) -> Heartbeat | None:
        """Return the last heartbeat seen."""
        return None if self.heartbeat is None else Heartbeat.model_validate(self.heartbeat)


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A committed checkpoint of the history, with the regions whose stores hold it."""

    run: str
    stage: str
    step: int
    term: int
    digest: str
    record: str
    bytes: int
    regions: tuple[str, ...]


def row_of(kind: type[_T], row: Mapping[str, Any]) -> _T:
    """Make the value of a row that has (at least) the kind's columns."""
    return kind(**{field.name: row[field.name] for field in fields(kind)})  # type: ignore[arg-type]
