"""Pictures of a plan: its legs over every region's price curve, and what each finish time would cost."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from matplotlib import dates as mdates
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from flows.render.picture import INK, PALE, Bar, Lane, Step, draw_relay
from flows.render.tables import money
from regions.model import Catalog, MarketName, Offer, Region
from regions.money import Money
from regions.offers import NoPrice, currency_of, price_curve
from regions.planning.problem import Plan
from regions.planning.request import RunRequest


def draw_plan(plan: Plan, request: RunRequest, catalog: Catalog) -> Figure:
    """Return the legs over the curves of all regions that could do the longest stage, with now and the deadline."""
    length = {stage.id: timedelta(0) for stage in request.stages}
    for leg in plan.legs:
        length[leg.stage] += leg.end - leg.start
    stage = max(request.stages, key=lambda stage: length[stage.id])
    end = max([instant for instant in (plan.finish, plan.deadline) if instant is not None], default=plan.at)
    end = max(end, plan.at + timedelta(hours=1)) + timedelta(minutes=30)
    used = {leg.region: leg.offer for leg in plan.legs if leg.stage == stage.id}
    lanes = []
    for name, region in catalog.regions.items():
        offers = [offer for offer in region.offers if offer.accelerator in stage.accelerators]
        chosen = next((offer for offer in offers if offer.id == used.get(name)), offers[0] if offers else None)
        closed = request.regions.allow is not None and name not in request.regions.allow
        lane = None if chosen is None or closed else _lane(plan, catalog, region, chosen, stage.markets, end)
        if lane is not None:
            lanes.append(lane)
    bars = [Bar(f"{leg.stage} {number}", leg.region, leg.start, leg.end) for number, leg in enumerate(plan.legs, 1)]
    marks = {"now": plan.at} | ({"deadline": plan.deadline} if plan.deadline is not None else {})
    title = f"{plan.run}: {len(bars)} legs, {money(plan.cost, plan.currency)}"
    return draw_relay(title, lanes, bars, plan.currency, marks)


def _lane(
    plan: Plan, catalog: Catalog, region: Region, offer: Offer, markets: tuple[MarketName, ...], end: datetime
) -> Lane | None:
    taken = {leg.market for leg in plan.legs if (leg.region, leg.offer) == (region.id, offer.id)}
    for market in sorted(markets, key=lambda market: market not in taken):
        try:
            curve = price_curve(region, offer, market, plan.at, end)
            own = Money(Decimal(1), currency_of(region, offer, market))
        except NoPrice:
            continue
        rate = catalog.fx.convert(own, plan.currency, plan.at.date()).amount
        steps = [Step(span.start, span.end, float(span.price * rate), span.window) for span in curve]
        return Lane(region.id, region.timezone, steps)
    return None


def draw_frontier(plan: Plan) -> Figure:
    """Return the least cost by finish time: a step line, with the plan's own point and the baselines on it."""
    figure = Figure(figsize=(9, 4.5), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    finishes = [cast(float, mdates.date2num(point.finish)) for point in plan.frontier]
    axis.step(finishes, [float(point.cost) for point in plan.frontier], where="post", color=INK, linewidth=1.6)
    points = {name: (base.finish, base.cost) for name, base in plan.baselines.items() if base is not None}
    if plan.finish is not None and plan.cost is not None:
        points["plan"] = (plan.finish, plan.cost)
    for name, (finish, cost) in points.items():
        x = cast(float, mdates.date2num(finish))
        axis.plot([x], [float(cost)], "o", color=INK if name == "plan" else PALE)
        axis.annotate(name, (x, float(cost)), xytext=(6, 4), textcoords="offset points", fontsize=9, color=INK)
    axis.xaxis.set_major_locator(mdates.AutoDateLocator(minticks=5, maxticks=10))
    axis.xaxis.set_major_formatter(mdates.ConciseDateFormatter(axis.xaxis.get_major_locator()))
    axis.set_xlabel("finish, UTC", fontsize=9, color=INK)
    axis.set_ylabel(f"least cost, {plan.currency}", fontsize=9, color=INK)
    axis.set_title(f"{plan.run}: what finishing by then costs", fontsize=12, color=INK, loc="left")
    return figure
