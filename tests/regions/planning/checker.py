"""An independent judge of plans: it knows the request, the catalog and the rules, and nothing of how plans are made."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from regions.model import Catalog
from regions.money import Money
from regions.offers import price_of
from regions.planning.problem import Plan, PlannedLeg, Situation
from regions.planning.request import RunRequest

CENT_OF_A_CENT = Decimal("0.0001")


def violations(plan: Plan, request: RunRequest, catalog: Catalog, situation: Situation, now: datetime) -> list[str]:
    """Return every rule the plan breaks, in words."""
    found = [*_sums(plan), *_order(plan, request, situation, now)]
    for number, leg in enumerate(plan.legs):
        running = number == 0 and situation.leg is not None and leg.start == now and leg.startup == 0
        found += _leg(plan, leg, request, catalog, running)
    if plan.feasible:
        found += _work(plan, request, situation) + _limits(plan, request, situation, now)
    return found + _residency(plan, request, catalog, situation)


def _sums(plan: Plan) -> list[str]:
    found = []
    if plan.cost is not None and plan.cost != sum(leg.cost.total for leg in plan.legs):
        found.append("the cost is not the sum of the legs")
    if plan.saving is not None and plan.legs and sum(plan.saving_by_basis.values()) != plan.saving:
        found.append("the saving by basis does not sum to the saving")
    if plan.lower_bound is not None and plan.cost is not None and plan.lower_bound > plan.cost:
        found.append("the lower bound is above the cost")
    return found


def _order(plan: Plan, request: RunRequest, situation: Situation, now: datetime) -> list[str]:
    found, free, here = [], now, None
    if situation.checkpoint is not None:
        here = situation.checkpoint.region
    if situation.leg is not None:
        here = situation.leg.region
    stages = [stage.id for stage in request.stages]
    for before, leg in zip([None, *plan.legs], plan.legs, strict=False):
        if leg.start < free + timedelta(seconds=leg.handoff.seconds):
            found.append(f"{leg.region} starts at {leg.start}, before the handoff can be done")
        if here is not None and leg.region != here and leg.handoff.source is None:
            found.append(f"nothing is handed over from {here} to {leg.region}")
        if before is not None and stages.index(leg.stage) < stages.index(before.stage):
            found.append(f"{leg.stage} comes after {before.stage}")
        if leg.end <= leg.start or leg.work <= 0:
            found.append(f"the leg in {leg.region} at {leg.start} does nothing")
        free, here = leg.end, leg.region
    return found


def _leg(plan: Plan, leg: PlannedLeg, request: RunRequest, catalog: Catalog, running: bool) -> list[str]:
    found = []
    stage, region = request.stage(leg.stage), catalog.regions[leg.region]
    offer = region.offer(leg.offer)
    assert offer is not None
    if leg.region in request.regions.deny or leg.region not in (request.regions.allow or catalog.regions):
        found.append(f"{leg.region} is not allowed")
    if leg.accelerator not in stage.accelerators or leg.market not in stage.markets:
        found.append(f"{leg.offer} {leg.market} cannot do {leg.stage}")
    if offer.quota is None or -(-leg.width // offer.units) > offer.quota:
        found.append(f"{leg.offer} has no quota for width {leg.width}")
    if not running and leg.startup < offer.startup.total_seconds():
        found.append("startup is left out")
    rate = stage.accelerators[leg.accelerator].rate * leg.width / 3600
    seconds = Fraction((leg.end - leg.start) // timedelta(seconds=1) - leg.startup)
    if leg.market == "on_demand" and leg.work > rate * seconds:
        found.append(f"the leg at {leg.start} does more than it can")
    if leg.market == "on_demand" and leg.width == offer.units:
        exact = price_of(region, offer, "on_demand", leg.start, leg.end)
        there = catalog.fx.convert(Money(exact.amount, region.currency), plan.currency, plan.at.date()).amount
        if abs(there - leg.cost.compute - leg.cost.electricity) > CENT_OF_A_CENT:
            found.append(f"the leg at {leg.start} costs {there}, not {leg.cost.compute}")
    return found


def _work(plan: Plan, request: RunRequest, situation: Situation) -> list[str]:
    found = []
    for stage in request.stages:
        done = situation.progress.get(stage.id, Fraction(0))
        planned = sum((leg.work for leg in plan.legs if leg.stage == stage.id), start=Fraction(0))
        if done < stage.work.amount and done + planned != stage.work.amount:
            found.append(f"{stage.id}: {done} + {planned} is not {stage.work.amount}")
    return found


def _limits(plan: Plan, request: RunRequest, situation: Situation, now: datetime) -> list[str]:
    found = []
    deadline = request.deadline_from(situation.submitted or now)
    if deadline is not None and plan.finish is not None and plan.finish > deadline - request.margin:
        found.append("the deadline is missed")
    if request.budget is not None and plan.cost is not None and plan.cost + situation.spent > request.budget.amount:
        found.append("the budget is exceeded")
    return found


def _residency(plan: Plan, request: RunRequest, catalog: Catalog, situation: Situation) -> list[str]:
    if request.dataset is None:
        return []
    found = []
    for leg in plan.legs:
        source = leg.handoff.source
        if source is None or source == leg.region:
            continue
        here, there = catalog.regions[source].residency, catalog.regions[leg.region].residency
        leaves = here.jurisdiction != there.jurisdiction
        if leaves and not (here.export_allowed and here.jurisdiction in request.dataset.may_leave):
            found.append(f"bytes leave {here.jurisdiction}")
    return found
