"""What a run does next: pure decisions over what the journal, the region's store and the plan say.

The driver (flows.train) reads facts, asks here, writes the decision to the journal, acts, and asks again. Nothing here
reads a clock, a database, a store or Prefect, so every fault is a plain test (tests/flows/test_relay.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from flows.messages import Heartbeat, Outcome, Report
from regions.planning.problem import PlannedLeg


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in real seconds (policy.yaml and docs/faults.md say why)."""

    silence: float = 20.0
    """A leg that holds the term and has not renewed its heartbeat for so long is lost."""
    silence_crashed: float = 6.0
    """The same where Prefect already says that its process is gone: only a trigger to look, so a beat may be missed."""
    launch: float = 90.0
    """A leg that was asked for and has not shown a heartbeat for so long will not come."""
    lead: float = 10.0
    """How long before the planned switch the next leg is launched, so that it waits with its data already there."""
    hold: float = 20.0
    """The driver stays awake where its next decision is nearer than this; otherwise it leaves and is woken."""
    same_failures: int = 3
    """A stage that fails in the same way so often in a row stops the run."""


@dataclass(frozen=True, slots=True)
class LegView:
    """A leg that has not ended, as facts have it."""

    number: int
    stage: str
    region: str
    holds_term: bool
    launched_real: datetime
    opened_real: datetime | None
    planned_end: datetime
    beat: Heartbeat | None = None
    report: Report | None = None
    process_gone: bool = False
    """Prefect says the leg's flow run has ended without success."""

    def last_sign(self) -> datetime:
        """Return the last real instant at which the leg is known to have lived (or was asked for)."""
        known = [self.launched_real, self.opened_real, self.beat.real if self.beat else None]
        return max(instant for instant in known if instant is not None)


@dataclass(frozen=True, slots=True)
class End:
    """End a leg: write its outcome, accept its commits, charge it."""

    number: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Ask for a leg, as the plan has it."""

    leg: PlannedLeg


@dataclass(frozen=True, slots=True)
class Open:
    """Give a launched leg the term and its baton."""

    number: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Tell a leg to go on longer, to make room, to stop, or that it is not needed."""

    number: int
    wish: Literal["yield", "stop", "dismiss", "extend"]
    reason: str
    stop_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this real instant, unless something happens. `name` and `why` are shown to people."""

    until: datetime
    name: str
    why: str


Action = Launch | Open | Ask


def endings(legs: Sequence[LegView], real: datetime, limits: Limits) -> list[End]:
    """Say which legs have ended, and how: a report says it itself; silence says it in time."""
    ended = []
    for leg in legs:
        quiet = (real - leg.last_sign()).total_seconds()
        if leg.report is not None:
            ended.append(End(leg.number, leg.report.outcome, leg.report.reason))
        elif leg.process_gone and quiet > limits.silence_crashed:
            ended.append(End(leg.number, "lost", f"its process ended without a last word {quiet:.0f} s ago"))
        elif leg.beat is not None and quiet > limits.silence:
            ended.append(End(leg.number, "lost", f"no heartbeat for {quiet:.0f} s"))
        elif leg.beat is None and quiet > limits.launch:
            ended.append(End(leg.number, "lost", f"asked for and not seen for {quiet:.0f} s"))
    return ended


def wants_plan(
    legs: Sequence[LegView], real: datetime, to_real: Callable[[datetime], datetime], limits: Limits
) -> bool:
    """Say whether the next choice needs a fresh plan: nobody holds the term, or the switch is near and not prepared."""
    holder = _holder(legs)
    if holder is None:
        return not legs
    prepared = any(not leg.holds_term for leg in legs)
    return not prepared and real >= to_real(holder.planned_end) - timedelta(seconds=limits.lead)


def choose(
    legs: Sequence[LegView],
    planned: Sequence[PlannedLeg],
    stage: str,
    real: datetime,
    to_real: Callable[[datetime], datetime],
    limits: Limits,
) -> list[Action]:
    """Say what to do now, given the live legs and, where `wants_plan`, the legs of a fresh plan (else none).

    At most one leg holds the term and at most one more is prepared. `stage` is the one the run is in.
    """
    holder = _holder(legs)
    waiting = [leg for leg in legs if not leg.holds_term]
    if holder is not None:
        return _prepare(holder, waiting, planned, real, to_real, limits)
    if waiting:
        first, *rest = waiting
        dismissed: list[Action] = [Ask(leg.number, "dismiss", "another leg was prepared first") for leg in rest]
        if first.stage != stage:
            return [*dismissed, Ask(first.number, "dismiss", f"the run is in stage {stage} now")]
        return [*dismissed, Open(first.number)]
    if planned and real >= to_real(planned[0].start) - timedelta(seconds=limits.lead):
        return [Launch(planned[0])]
    return []


def _prepare(
    holder: LegView,
    waiting: Sequence[LegView],
    planned: Sequence[PlannedLeg],
    real: datetime,
    to_real: Callable[[datetime], datetime],
    limits: Limits,
) -> list[Action]:
    """Near the planned end of the standing leg: let it go on, or prepare the next one."""
    if waiting or not planned:
        return []
    here = planned[0]
    stays = here.region == holder.region and here.stage == holder.stage
    if stays and to_real(here.end) > real + timedelta(seconds=limits.lead):
        return [Ask(holder.number, "extend", "the plan keeps it here", stop_by=here.end)]
    following = planned[1:] if stays else planned
    if following and real >= to_real(following[0].start) - timedelta(seconds=limits.lead):
        return [Launch(following[0])]
    return []


def stop_everything(legs: Sequence[LegView], reason: str) -> list[Action]:
    """Say what cancelling asks of each live leg."""
    return [Ask(leg.number, "stop" if leg.holds_term else "dismiss", reason) for leg in legs]


def pause(
    legs: Sequence[LegView],
    planned: Sequence[PlannedLeg],
    real: datetime,
    to_real: Callable[[datetime], datetime],
    limits: Limits,
) -> Wait:
    """Say when to look again if nothing happens before; the sweep wakes the driver when something does."""
    holder = _holder(legs)
    if holder is not None and len(legs) == 1:
        look = to_real(holder.planned_end) - timedelta(seconds=limits.lead)
        if look <= real:
            look = real + timedelta(seconds=limits.lead)
        why = f"leg {holder.number} trains in {holder.region} until {holder.planned_end:%Y-%m-%d %H:%M}Z"
        return Wait(look, "WaitingForLeg", why)
    if legs:
        return Wait(real + timedelta(seconds=limits.hold / 2), "HandingOver", "the next leg is being prepared")
    if planned:
        start = planned[0].start
        look = to_real(start) - timedelta(seconds=limits.lead)
        return Wait(
            max(look, real + timedelta(seconds=1)),
            "WaitingForWindow",
            f"{planned[0].region} is cheap enough from {start:%Y-%m-%d %H:%M}Z",
        )
    return Wait(real + timedelta(seconds=limits.hold), "WaitingForCapacity", "no leg fits now; looking again")


def given_up(outcomes: Sequence[tuple[Outcome, str]], limits: Limits) -> str | None:
    """Return why the run must stop: the last legs failed in the same way (outcome, kind) too often in a row."""
    last = outcomes[-limits.same_failures :]
    if len(last) < limits.same_failures or any(outcome != "failed" for outcome, _ in last):
        return None
    kinds = {kind for _, kind in last}
    return None if len(kinds) > 1 else f"failed the same way {limits.same_failures} times in a row: {kinds.pop()}"


def _holder(legs: Sequence[LegView]) -> LegView | None:
    return next((leg for leg in legs if leg.holds_term), None)
