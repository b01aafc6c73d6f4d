"""Plans one run: the cheapest relay that keeps its promises, or the soonest its budget allows.

The search is exact on its grid (`search`); what is here reads a point of its frontier, turns it into exact legs, and
says why nothing else was taken. The same request, catalog, situation and instant always give the same plan.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from regions.model import Catalog
from regions.planning.answer import Answer, bound, solve
from regions.planning.baselines import baselines
from regions.planning.explain import nearest_wishes, rejections, saving_by_basis
from regions.planning.grid import FINE, Detail
from regions.planning.legs import legs_of, money, total_of
from regions.planning.paths import Table
from regions.planning.problem import Baseline, Plan, PlannedLeg, Point, Situation
from regions.planning.request import RunRequest
from regions.planning.rows import UNIT
from regions.planning.world import World, look

BEYOND = timedelta(days=7)
"""How far past the deadline baselines and refusals are followed, to say what they would have cost."""


def plan(request: RunRequest, catalog: Catalog, situation: Situation, now: datetime, *, detail: Detail = FINE) -> Plan:
    """Return the plan of a run as it stands at `now`.

    Raises RequestError for a region nobody knows or a dataset of unknown size, CurrencyError where prices of regions
    that could be taken cannot be compared. What cannot be done by the deadline or within the budget is still a plan:
    infeasible, with what stands in the way and the nearest wishes that would do.
    """
    submitted = situation.submitted or now
    deadline = request.deadline_from(submitted)
    end = None if deadline is None else deadline - request.margin
    if all(situation.progress.get(stage.id, 0) >= stage.work.amount for stage in request.stages):
        return _finished(request, catalog, situation, now, deadline)
    beyond = look(request, catalog, situation, now, None if end is None else max(end, now) + BEYOND)
    world = beyond if end is None else beyond.until(end)
    answer = solve(world, detail) if world.sites and world.end > world.start else None
    budget = None if request.budget is None else request.budget.amount - situation.spent
    finish = None if answer is None else _choose(answer.table, request.objective, budget)
    legs = () if answer is None or finish is None else legs_of(answer.grid, answer.table.path(finish))
    bases = baselines(beyond, request.regions.home, deadline, budget)
    draft = Plan(
        run=request.id,
        at=now,
        catalog=catalog.digest,
        revision=situation.revision,
        currency=world.currency,
        legs=legs,
        finish=legs[-1].end if legs else None,
        deadline=deadline,
        feasible=bool(legs),
        cost=total_of(legs) if legs else None,
        lower_bound=_bound(world, detail, legs),
        baselines=bases,
        saving_by_basis=saving_by_basis(legs, bases["home_now"]),
        rejected=(),
        frontier=() if answer is None else _frontier(answer),
        warnings=(*world.warnings, *_warnings(request, legs)),
        bytes_per_hour=_bytes_per_hour(world),
    )
    draft = replace(draft, rejected=rejections(world, beyond, draft))
    if draft.feasible:
        return draft
    binding, nearest = nearest_wishes(request, catalog, situation, now, answer)
    return replace(draft, binding=binding, nearest=nearest)


def _choose(table: Table, objective: str, budget: Decimal | None) -> int | None:
    """Return the instant of the frontier's point that the objective asks for, or None."""
    limit = None if budget is None else int(budget * UNIT)
    points = [(t, cost) for t, cost in table.frontier() if limit is None or cost <= limit]
    if not points:
        return None
    return points[0][0] if objective == "time" else points[-1][0]


def _bound(world: World, detail: Detail, legs: tuple[PlannedLeg, ...]) -> Decimal | None:
    """Return what no plan that is done as early can cost less than (and never more than this one costs)."""
    if not legs:
        return None
    least = bound(world, detail, legs[-1].end)
    return None if least is None else min(total_of(legs), money(Fraction(least, UNIT)))


def _frontier(answer: Answer) -> tuple[Point, ...]:
    instants, world = answer.grid.instance.instants, answer.grid.world
    return tuple(Point(world.instant(int(instants[t])), _rough(cost)) for t, cost in answer.table.frontier())


def _rough(cost: int) -> Decimal:
    """Return a cost of the search to a ten-thousandth: its tie-breaking effort is below that, and is no money."""
    return money(Fraction(cost * 10**4 // UNIT, 10**4))


def _warnings(request: RunRequest, legs: tuple[PlannedLeg, ...]) -> list[str]:
    warnings = []
    if request.deadline is None and request.within is None:
        warnings.append("no deadline: the plan takes the cheapest hours of the time it looked ahead")
    weak = sorted({basis for leg in legs for basis in leg.by_basis} & {"claim", "estimate", "recalled", "unknown"})
    if weak:
        warnings.append(f"prices of the plan rest on {' and '.join(weak)}: not a promise by anybody")
    if any(leg.market == "spot" for leg in legs):
        warnings.append("spot legs are planned with expected interruptions; the true number may differ")
    return warnings


def _bytes_per_hour(world: World) -> Fraction:
    """Return the bytes of a move (checkpoint and inputs of the first stage left) per accelerator-hour of its work."""
    load = world.loads[0]
    hours = [load.remaining / site.speed / 3600 * site.width for site in world.sites if site.stage == 0]
    size = load.checkpoint + max(load.missing.values(), default=0)
    return size / min(hours) if hours else Fraction(size)


def _finished(
    request: RunRequest, catalog: Catalog, situation: Situation, now: datetime, deadline: datetime | None
) -> Plan:
    home = request.regions.home
    none: dict[str, Baseline | None] = {"home_now": None, "home_off_peak": None, "cheapest_now": None}
    currency = request.budget.currency if request.budget else catalog.regions[home].currency if home else "USD"
    zero = Decimal(0)
    return Plan(
        run=request.id, at=now, catalog=catalog.digest, revision=situation.revision, currency=currency, legs=(),
        finish=now, deadline=deadline, feasible=True, cost=zero, lower_bound=zero, baselines=none, saving_by_basis={},
        rejected=(),
    )  # fmt: skip
