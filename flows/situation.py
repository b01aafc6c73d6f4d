"""From the journal's rows to the Situation planning works on: progress, where data lies, pace, money spent. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from flows.history import committed_step
from flows.messages import Report
from flows.rows import CheckpointRow, LegRow, RunRow
from regions.model import Catalog, Offer
from regions.planning.problem import CurrentLeg, Located, Refusal, Situation
from regions.planning.request import RunRequest

PACE_FROM = timedelta(minutes=30)
"""A leg that trained for less (run clock) says too little of its pace to plan by."""
REFUSED_FOR = timedelta(hours=6)
"""How long (run clock) an offer that did not answer is left alone."""


def situation_of(
    run: RunRow,
    request: RunRequest,
    legs: Sequence[LegRow],
    checkpoints: Sequence[CheckpointRow],
    charges: Sequence[Mapping[str, Any]],
    *,
    standing: int | None,
    accelerators: Mapping[tuple[str, str], str],
    dataset_bytes: int,
) -> Situation:
    """Return how the run stands. `accelerators` names each (region, offer)'s accelerator; `standing` is the leg with
    the term, if one lives.
    """
    last = checkpoints[-1] if checkpoints else None
    home = request.regions.home
    holder = next((leg for leg in legs if leg.number == standing), None)
    progress = {stage.id: Fraction(committed_step(checkpoints, stage.id)) for stage in request.stages}
    if holder is not None and holder.beat is not None:
        # The journal accepts a leg's commits when it ends; until then its heartbeat says what it will hand on.
        progress[holder.stage] = max(progress[holder.stage], Fraction(holder.beat.step))
    held = {leg.region for leg in legs if leg.from_step is not None or (leg.heartbeat or {}).get("handed_bytes")}
    return Situation(
        progress=progress,
        rates=observed_rates(legs, accelerators),
        sizes={"dataset": dataset_bytes} if dataset_bytes else {},
        replicas={"dataset": dict.fromkeys(held | ({home} if home else set()), dataset_bytes)},
        checkpoint=Located(last.regions[-1], last.bytes) if last and last.regions else None,
        leg=None if holder is None else _current(holder),
        refusals=tuple(
            Refusal(leg.region, leg.offer, leg.planned_start + REFUSED_FOR, leg.reason)
            for leg in legs
            if leg.outcome == "lost" and leg.started_real is None
        ),
        submitted=run.submitted_at,
        spent=sum((charge["total"] for charge in charges), Decimal(0)),
        revision=1,
    )


def observed_rates(
    legs: Sequence[LegRow], accelerators: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], Fraction]:
    """Return work per run-clock hour and accelerator, by (stage, accelerator), as the newest long enough leg ran."""
    rates: dict[tuple[str, str], Fraction] = {}
    for leg in legs:
        if leg.report is None:
            continue
        report = Report.model_validate(leg.report)
        hours = sum(
            ((span.end_at - span.start_at) for span in report.phases if span.phase == "train"), timedelta()
        ) / timedelta(hours=1)
        done = report.to_step - report.from_step
        accelerator = accelerators.get((leg.region, leg.offer))
        if accelerator is not None and done > 0 and hours >= PACE_FROM / timedelta(hours=1):
            # A thousandth is finer than any pace can be measured, and keeps plans readable.
            rates[leg.stage, accelerator] = Fraction(round(1000 * done / hours / leg.width), 1000)
    return rates


def observed_startup(legs: Sequence[LegRow]) -> timedelta | None:
    """Return how long (real time) legs took lately from being asked for to their first step, without their waiting.

    A leg that never came to a step took at least as long as it lived. None where no leg has ended with a report.
    """
    took = []
    for leg in legs:
        if leg.report is None or leg.outcome == "dismissed":
            continue
        report = Report.model_validate(leg.report)
        waits = (span.end_real - span.start_real for span in report.phases if span.phase == "waiting")
        took.append((report.first_step_real or report.ended_real) - leg.launched_real - sum(waits, timedelta()))
    return max(took[-3:], default=None)


def with_startup(catalog: Catalog, startup: timedelta) -> Catalog:
    """Return the catalog with every offer's startup at least so long (run time): what was seen wins over a promise."""

    def slower(offer: Offer) -> Offer:
        return offer.model_copy(update={"startup": max(offer.startup, startup)})

    regions = {
        name: region.model_copy(update={"offers": tuple(slower(offer) for offer in region.offers)})
        for name, region in catalog.regions.items()
    }
    return replace(catalog, regions=MappingProxyType(regions))


def _current(leg: LegRow) -> CurrentLeg:
    return CurrentLeg(
        stage=leg.stage,
        region=leg.region,
        offer=leg.offer,
        market=leg.market,
        width=leg.width,
        started=leg.started_at or leg.planned_start,
        until=leg.planned_end,
    )
