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
    launch_guess: float = 6.0
    """How long a leg takes from being asked for to its first heartbeat, where none was seen yet."""
    spare: float = 1.0
    """What a launch is given on top of the longest one seen lately, to copy ahead in."""
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
    planned_start: datetime
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


@dataclass(frozen=True, slots=True)
class Tempo:
    """How run time passes in real time, and how long a launch takes; all a decision needs to know of clocks."""

    to_real: Callable[[datetime], datetime]
    speed: float
    launch: float
    """Real seconds from asking for a leg to its first heartbeat, as lately seen."""

    def lead(self, startup: float) -> timedelta:
        """Return how long before its planned start a leg is asked for, so that it is ready then.

        `startup` is the offer's, in run seconds: a machine must be had as well, not only a process.
        """
        return timedelta(seconds=max(self.launch, startup / self.speed))

    def ask_at(self, leg: PlannedLeg, *, relieves: bool) -> datetime:
        """Return the real instant at which a planned leg is to be asked for.

        One that relieves another is ready at its start, so that training has no gap. Where nobody trains, rent before
        the planned start would buy nothing: only the launch itself is allowed for.
        """
        return self.to_real(leg.start) - self.lead(leg.startup if relieves else 0.0)


def tempo_of(launches: Sequence[float], to_real: Callable[[datetime], datetime], speed: float, limits: Limits) -> Tempo:
    """Return the tempo, from how long the latest launches took (real seconds)."""
    return Tempo(to_real, speed, max(launches[-3:], default=limits.launch_guess) + limits.spare)


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


def wants_plan(legs: Sequence[LegView], real: datetime, tempo: Tempo, longest_startup: float) -> bool:
    """Say whether the next choice needs a plan: nobody holds the term, or the switch is near and not prepared.

    `longest_startup` (run seconds) is that of the offers the next leg may run on.
    """
    holder = _holder(legs)
    if holder is None:
        return not legs
    prepared = any(not leg.holds_term for leg in legs)
    return not prepared and real >= tempo.to_real(holder.planned_end) - tempo.lead(longest_startup)


def choose(
    legs: Sequence[LegView], planned: Sequence[PlannedLeg], stage: str, real: datetime, tempo: Tempo
) -> list[Action]:
    """Say what to do now, given the live legs and, where `wants_plan`, the legs of a fresh plan (else none).

    At most one leg holds the term and at most one more is prepared. `stage` is the one the run is in.
    """
    holder = _holder(legs)
    waiting = [leg for leg in legs if not leg.holds_term]
    if holder is not None:
        return [] if waiting or not planned else _prepare(holder, planned, real, tempo)
    if waiting:
        first, *rest = waiting
        dismissed: list[Action] = [Ask(leg.number, "dismiss", "another leg was prepared first") for leg in rest]
        if first.stage != stage:
            return [*dismissed, Ask(first.number, "dismiss", f"the run is in stage {stage} now")]
        # It was asked for early, to be ready; before its planned start the price may be another one.
        return [*dismissed, Open(first.number)] if real >= tempo.to_real(first.planned_start) else dismissed
    if planned and real >= tempo.ask_at(planned[0], relieves=False):
        return [Launch(planned[0])]
    return []


def _prepare(holder: LegView, planned: Sequence[PlannedLeg], real: datetime, tempo: Tempo) -> list[Action]:
    """Near the planned end of the standing leg: let it go on, or prepare the next one."""
    here = planned[0]
    stays = here.region == holder.region and here.stage == holder.stage and here.start <= holder.planned_end
    if stays and here.end > holder.planned_end:
        return [Ask(holder.number, "extend", "the plan keeps it here", stop_by=here.end)]
    following = planned[1:] if stays else planned
    if following and real >= tempo.ask_at(following[0], relieves=True):
        return [Launch(following[0])]
    return []


def stop_everything(legs: Sequence[LegView], reason: str) -> list[Action]:
    """Say what cancelling asks of each live leg."""
    return [Ask(leg.number, "stop" if leg.holds_term else "dismiss", reason) for leg in legs]


def pause(
    legs: Sequence[LegView],
    planned: Sequence[PlannedLeg],
    real: datetime,
    tempo: Tempo,
    limits: Limits,
    longest_startup: float,
) -> Wait:
    """Say when to look again if nothing happens before; the sweep wakes the driver when something does.

    A driver that left is a process that must start again, which takes about as long as a leg's: it is woken so much
    before the next leg must be asked for.
    """
    holder = _holder(legs)
    soon = real + timedelta(seconds=limits.hold / 2)
    if holder is not None and len(legs) == 1:
        look = tempo.to_real(holder.planned_end) - tempo.lead(longest_startup) - timedelta(seconds=tempo.launch)
        why = f"leg {holder.number} trains in {holder.region} until {holder.planned_end:%Y-%m-%d %H:%M}Z"
        return Wait(look if look > real else soon, "WaitingForLeg", why)
    if legs:
        return Wait(soon, "HandingOver", "the next leg is being prepared")
    if planned:
        why = f"{planned[0].region} is cheap enough from {planned[0].start:%Y-%m-%d %H:%M}Z"
        return Wait(max(tempo.ask_at(planned[0], relieves=False), real + timedelta(seconds=1)), "WaitingForWindow", why)
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
