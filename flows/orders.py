"""Makes a leg's order: all a leg needs to know, so that it needs neither the journal nor the control side."""

from __future__ import annotations

from hashlib import blake2b

from flows.messages import CommitRef, DatasetRef, Order
from flows.rows import LegRow, RunRow
from regions.planning.request import RunRequest


def order_for(
    leg: LegRow, run: RunRow, request: RunRequest, dataset: DatasetRef | None, precopy: CommitRef | None, speed: float
) -> Order:
    """Return the order of a leg. `speed` (run seconds per real second) turns the stage's grace into real seconds."""
    stage = request.stage(leg.stage)
    reads_dataset = "dataset" in stage.inputs.values() or not stage.inputs
    return Order(
        run=run.id,
        recipe=run.recipe,
        team=run.team,
        stage=stage.id,
        kind=stage.kind,
        number=leg.number,
        region=leg.region,
        offer=leg.offer,
        market=leg.market,
        width=leg.width,
        command=stage.command,
        environment={**request.env, **stage.env},
        seed=seed_of(stage.id, request),
        work=int(stage.work.amount),
        checkpoint_every=request.checkpoint_of(stage).every.total_seconds(),
        checkpoint_glob=request.checkpoint_of(stage).glob,
        progress_pattern=stage.progress_pattern,
        planned_start=leg.planned_start,
        planned_end=leg.planned_end,
        dataset=dataset if reads_dataset else None,
        precopy=precopy,
        grace=max(MINIMUM_GRACE, stage.grace.total_seconds() / speed),
    )


MINIMUM_GRACE = 10.0
"""Real seconds a trainer always gets to save and leave, however fast the run clock runs."""


def seed_of(stage: str, request: RunRequest) -> int:
    """Return the stage's seed: NIGHTRELAY_SEED of its environment, else one that belongs to the recipe and the stage.

    It does not depend on the run's id, so that two submissions of one recipe train the same model.
    """
    given = request.stage(stage).env.get("NIGHTRELAY_SEED") or request.env.get("NIGHTRELAY_SEED")
    if given is not None:
        return int(given)
    return int.from_bytes(blake2b(f"{request.id}/{stage}".encode(), digest_size=4).digest(), "big")
