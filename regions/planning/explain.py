"""Why not otherwise: what each place not taken would have cost, what a saving rests on, what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from regions.model import Catalog
from regions.money import plain
from regions.planning.answer import Answer, solve
from regions.planning.grid import Detail
from regions.planning.legs import legs_of, money, total_of
from regions.planning.problem import Baseline, Plan, PlannedLeg, Rejection, Situation, Wish
from regions.planning.request import Places, RunRequest
from regions.planning.world import World, look

ROUGH = Detail(slots=200, quanta=150, states=1_500_000)
"""How fine a grid an answer to "and what would it have cost there" is worth."""


def saving_by_basis(legs: tuple[PlannedLeg, ...], home_now: Baseline | None) -> dict[str, Decimal]:
    """Split the saving against home_now by the basis of the prices it rests on; the parts sum to it exactly.

    An hour of work saves what an average hour of the baseline costs, less what it costs in the plan; a handoff saves
    the less by its fee, at the basis of the link's price.
    """
    if home_now is None or not legs:
        return {}
    worked = sum(seconds for leg in legs for _, seconds in leg.by_basis.values())
    parts: dict[str, Decimal] = {}
    for leg in legs:
        for basis, (cost, seconds) in leg.by_basis.items():
            earned = money(Fraction(home_now.cost) * seconds / max(1, worked))
            parts[basis] = parts.get(basis, Decimal(0)) + earned - cost
        if leg.handoff.basis is not None:
            parts[leg.handoff.basis] = parts.get(leg.handoff.basis, Decimal(0)) - leg.handoff.cost
    # Storage, and the last digit of roundings, go where most of the saving is, so that the parts sum to the whole.
    most = max(parts, key=lambda basis: (abs(parts[basis]), basis))
    parts[most] += home_now.cost - total_of(legs) - sum(parts.values(), start=Decimal(0))
    return parts


def rejections(world: World, beyond: World, plan: Plan) -> tuple[Rejection, ...]:
    """Return every place the plan does not use, and why. `beyond` is the world past the deadline, for what is late."""
    used = {(leg.region, leg.offer) for leg in plan.legs}
    visited = {region for region, _ in used}
    places = sorted({(site.region, site.offer) for site in beyond.sites} - used)
    found = [item for item in beyond.rejected if (item.region, item.offer) not in used and item.region not in visited]
    found = [item for item in found if (item.region, item.offer) not in places]
    found = [*_merged(found), *(_judged(world, beyond, plan, region, offer) for region, offer in places)]
    return tuple(sorted(found, key=lambda item: (item.region, item.offer)))


def _merged(found: list[Rejection]) -> Iterator[Rejection]:
    """Yield one rejection per place; several stages may have lost it for different reasons."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in found:
        reasons.setdefault((item.region, item.offer), []).append(item.reason)
    for (region, offer), words in reasons.items():
        yield Rejection(region, offer, "; ".join(dict.fromkeys(words)))


def _judged(world: World, beyond: World, plan: Plan, region: str, offer: str) -> Rejection:
    lacking = [load.stage.id for number, load in enumerate(world.loads) if not _serves(beyond, region, number)]
    if lacking:
        return Rejection(region, offer, f"nothing there can do {' and '.join(lacking)}; not worth a move for the rest")
    there = _cheapest(_only(world, region, offer))
    if there is not None:
        if plan.cost is None:
            return Rejection(region, offer, "fits the time, not the budget", there)
        extra = there - plan.cost
        reason = f"dearer by {plain(extra)} {plan.currency}" if extra > 0 else "no cheaper"
        return Rejection(region, offer, reason, there)
    return Rejection(region, offer, _late(world, beyond, region, offer), _cheapest(_only(beyond, region, offer)))


def _serves(world: World, region: str, stage: int) -> bool:
    return any((site.region, site.stage) == (region, stage) for site in world.sites)


def _only(world: World, region: str, offer: str) -> World:
    """Return the world with this region alone, and of its offers this one wherever it will do."""
    there = [site for site in world.sites if site.region == region]
    able = {site.stage for site in there if site.offer == offer}
    return world.only(lambda site: site.region == region and (site.offer == offer or site.stage not in able))


def _cheapest(world: World) -> Decimal | None:
    if world.end <= world.start or not all(_serves(world, world.sites[0].region, k) for k in range(len(world.loads))):
        return None
    answer = solve(world, ROUGH)
    return None if answer.least is None else total_of(legs_of(answer.grid, answer.table.path(answer.cheapest)))


def _late(world: World, beyond: World, region: str, offer: str) -> str:
    """Say in numbers why a region is too slow: the way there, the startups, the work, the time there is."""
    load = beyond.loads[0]
    size = max((load.missing.get(region, 0) for load in beyond.loads), default=0)
    size += load.luggage + (load.checkpoint if load.total > load.remaining else load.inherited)
    ways = [beyond.routes[source, region] for source in beyond.first if (source, region) in beyond.routes]
    transfer = min((way.seconds(size) for way in ways), default=0) if region not in beyond.first else 0
    work = Fraction(0)
    for number, load in enumerate(beyond.loads):
        fitting = [site for site in beyond.sites if (site.region, site.stage) == (region, number)]
        work += min(load.remaining / site.speed + site.startup for site in fitting)
    there_is = max(0, world.end - world.start)
    needed = f"{_hours(transfer)} of transfer + {_hours(work)} of startup and work"
    if transfer + work <= there_is:
        return f"does not fit: {needed}, but it is not open for so long before the deadline"
    return f"does not fit: {needed} > {_hours(there_is)}"


def _hours(seconds: Fraction | int) -> str:
    return f"{float(seconds) / 3600:.1f} h"


def nearest_wishes(
    request: RunRequest, catalog: Catalog, situation: Situation, now: datetime, answer: Answer | None
) -> tuple[str, tuple[Wish, ...]]:
    """Return what stands in the way of a run, and the smallest changes that would each make it feasible."""
    deadline = request.deadline_from(situation.submitted or now)
    wishes: list[Wish] = []
    if answer is not None and answer.least is not None:
        legs = legs_of(answer.grid, answer.table.path(answer.cheapest))
        cost = total_of(legs)
        binding = f"budget: the least it can cost by the deadline is {plain(cost)} {answer.grid.world.currency}"
        wishes.append(Wish(f"budget: {plain(cost + situation.spent)}", legs[-1].end, cost))
    else:
        endless = look(request, catalog, situation, now, None)
        later = solve(endless, ROUGH) if endless.sites else None
        if later is not None and later.least is not None:
            legs = legs_of(later.grid, later.table.path(later.soonest))
            finish = legs[-1].end + request.margin
            binding = f"deadline: the earliest possible finish is {finish.isoformat()}"
            wishes.append(Wish(f"deadline: {finish.isoformat()}", legs[-1].end, total_of(legs)))
        else:
            reasons = dict.fromkeys(f"{item.region}: {item.reason}" for item in endless.rejected)
            binding = "no region can run it: " + "; ".join(reasons)
    for change, eased, market in _eased(request, catalog, situation):
        wish = _wish(change, eased, market, replace(situation, busy=(), refusals=()), now, deadline)
        if wish is not None:
            wishes.append(wish)
    return binding, tuple(wishes)


def _eased(request: RunRequest, catalog: Catalog, situation: Situation) -> Iterator[tuple[str, RunRequest, Catalog]]:
    """Yield the request and catalog with one rule lifted each."""
    if situation.busy or situation.refusals:
        yield "capacity: instances that are taken now become free", request, catalog
    places = request.regions
    if places.deny or places.allow is not None:
        yield "regions: allow", request.model_copy(update={"regions": Places(home=places.home)}), catalog
    if request.dataset is not None:
        everywhere = tuple(sorted({region.residency.jurisdiction for region in catalog.regions.values()}))
        dataset = request.dataset.model_copy(update={"may_leave": everywhere})
        exporting = {
            name: region.model_copy(update={"residency": region.residency.model_copy(update={"export_allowed": True})})
            for name, region in catalog.regions.items()
        }
        open_request = request.model_copy(update={"dataset": dataset})
        yield "residency: let the data go to", open_request, replace(catalog, regions=exporting)
    roomy = {
        name: region.model_copy(
            update={"offers": tuple(offer.model_copy(update={"quota": 10**6}) for offer in region.offers)}
        )
        for name, region in catalog.regions.items()
    }
    yield "quota: raise it in", request, replace(catalog, regions=roomy)


def _wish(
    change: str, request: RunRequest, catalog: Catalog, situation: Situation, now: datetime, deadline: datetime | None
) -> Wish | None:
    end = None if deadline is None else deadline - request.margin
    if end is not None and end <= now:
        return None
    world = look(request, catalog, situation, now, end)
    answer = solve(world, ROUGH) if world.sites else None
    if answer is None or answer.least is None:
        return None
    legs = legs_of(answer.grid, answer.table.path(answer.cheapest))
    cost = total_of(legs)
    if request.budget is not None and cost > request.budget.amount - situation.spent:
        return None
    where = sorted({f"{leg.region}/{leg.offer}" if "quota" in change else leg.region for leg in legs})
    named = change if change.startswith("capacity") else f"{change} {', '.join(where)}"
    return Wish(named, legs[-1].end, cost)
