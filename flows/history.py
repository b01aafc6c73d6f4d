"""Reads the committed history of a run: which commits count, which stage is under way, how legs ended."""

from __future__ import annotations

from collections.abc import Sequence

from flows.messages import CommitRef, Outcome, Place
from flows.relay import LegView
from flows.rows import CheckpointRow, LegRow
from regions.planning.request import RunRequest
from storage.checkpoints import records
from storage.objects import Store


def accepted_commits(store: Store, place: Place, leg: LegRow) -> list[CommitRef]:
    """Return the commits a leg made under its own term, oldest first, as its region's store holds them."""
    return [
        CommitRef(
            key=record.key, step=record.step, term=record.term, digest=record.content, bytes=record.size, source=place
        )
        for record in sorted(records(store, leg.run, leg.stage), key=lambda record: record.step)
        if record.term == leg.number
    ]


def committed_step(checkpoints: Sequence[CheckpointRow], stage: str) -> int:
    """Return the step of the stage's newest commit, 0 where there is none."""
    return max((row.step for row in checkpoints if row.stage == stage), default=0)


def stage_under_way(request: RunRequest, checkpoints: Sequence[CheckpointRow], legs: Sequence[LegRow]) -> str | None:
    """Return the first stage that is not done: a commit at its amount of work, or a trainer that said `finished`."""
    finished = {leg.stage for leg in legs if leg.outcome == "finished"}
    for stage in request.stages:
        if stage.id not in finished and committed_step(checkpoints, stage.id) < stage.work.amount:
            return stage.id
    return None


def outcomes_of(legs: Sequence[LegRow]) -> list[tuple[Outcome, str]]:
    """Return how the legs that had the term ended, in order, with the kind of failure."""
    had_term = [leg for leg in legs if leg.state == "ended" and leg.outcome not in (None, "dismissed")]
    return [(leg.outcome, (leg.report or {}).get("kind", "")) for leg in had_term]  # type: ignore[misc]


def progress_of(
    request: RunRequest, checkpoints: Sequence[CheckpointRow], legs: Sequence[LegView]
) -> tuple[float, str]:
    """Return how much of the run's work is done (0 to 1) and a line that says where it stands."""
    shares, where = [], []
    for stage in request.stages:
        trained = [leg.beat.step for leg in legs if leg.stage == stage.id and leg.holds_term and leg.beat is not None]
        step = max([committed_step(checkpoints, stage.id), *trained])
        shares.append(min(1.0, step / float(stage.work.amount)))
        where.append(f"{stage.id}: {step} of {float(stage.work.amount):,.0f} {stage.work.unit}")
    places = [f"leg {leg.number} in {leg.region}" for leg in legs if leg.holds_term]
    return sum(shares) / len(shares), "; ".join([*where, *places])
