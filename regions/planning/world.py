"""The request, the catalog and the situation joined: what can be rented where and when, and what moving costs.

Exact values (fractions, whole seconds and bytes) before they are put on a grid. The rules of residency live here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from regions.errors import Fault, RequestError
from regions.model import Catalog, Region
from regions.planning.loads import Load, least_time, loads_of
from regions.planning.problem import Rejection, Situation
from regions.planning.request import RunRequest
from regions.planning.sites import Question, Site, sites_of

LOOKAHEAD = timedelta(days=14)
"""How far a run without a deadline looks for cheap hours (longer if it takes longer)."""


@dataclass(frozen=True, slots=True)
class Route:
    """A directed way between two regions: money per byte in the plan's currency, bytes per second."""

    price: Fraction
    bandwidth: int
    basis: str

    def seconds(self, size: int) -> int:
        """Return how long that many bytes take, in whole seconds, at least one."""
        return max(1, -(-size // self.bandwidth))


@dataclass(frozen=True, slots=True)
class World:
    """One run's choices between two instants (epoch seconds)."""

    request: RunRequest
    situation: Situation
    start: int
    end: int
    currency: str
    regions: tuple[str, ...]
    loads: tuple[Load, ...]
    sites: tuple[Site, ...]
    routes: Mapping[tuple[str, str], Route]
    storage: Mapping[str, Fraction]
    """Money per byte and second in a region's object store."""
    first: tuple[str, ...]
    """Where the run stands; several regions where nothing ties it to one."""
    running: Site | None
    rejected: tuple[Rejection, ...]
    warnings: tuple[str, ...]

    def until(self, end: datetime) -> World:
        """Return the same world, seen only until an earlier end."""
        last = math.floor(end.timestamp())
        sites = []
        for site in self.sites:
            rents = tuple(replace(rent, end=min(rent.end, last)) for rent in site.rents if rent.start < last)
            if rents:
                sites.append(replace(site, rents=rents))
        mine = None if self.running is None else (self.running.stage, self.running.name)
        running = next((site for site in sites if (site.stage, site.name) == mine), None)
        return replace(self, end=last, sites=tuple(sites), running=running)

    def only(self, keep: Callable[[Site], bool]) -> World:
        """Return the same world with only some of its sites (the running one, if it is none of them, is left)."""
        sites = tuple(site for site in self.sites if keep(site))
        return replace(self, sites=sites, running=self.running if self.running in sites else None)

    def instant(self, second: int) -> datetime:
        """Return an epoch second as an instant."""
        return datetime.fromtimestamp(second, UTC)


def look(request: RunRequest, catalog: Catalog, situation: Situation, now: datetime, end: datetime | None) -> World:
    """Return the world from `now` until `end` (None: as far as a run without a deadline looks).

    Raises RequestError where the request names what the catalog or the manifests do not know, CurrencyError where
    prices cannot be compared.
    """
    home = _home(request, catalog)
    currency = _currency(request, catalog, home)
    loads = loads_of(request, situation, catalog.regions, home)
    end = end or now + max(LOOKAHEAD, 3 * least_time(loads, situation))
    question = Question(request, catalog, situation, now, end, currency)
    allowed, rejected = _allowed(request, catalog)
    first = _first(situation, loads, home, allowed)
    routes = _routes(question, sorted({*allowed, *first}))
    reachable = _reachable(first, routes) if len(first) == 1 else set(allowed)
    sites: list[Site] = []
    for region in allowed:
        if region not in reachable:
            rejected.append(Rejection(region, "", _unreachable(question, first[0], region)))
            continue
        for number, load in enumerate(loads):
            for found in sites_of(question, number, load.stage, catalog.regions[region]):
                if isinstance(found, Site):
                    sites.append(found)
                else:
                    rejected.append(found)
    useful = tuple(sorted({site.region for site in sites} | set(first)))
    leg = situation.leg
    running = None
    if leg is not None:
        key = (leg.region, leg.offer, leg.market, leg.width)
        opens = math.ceil(now.timestamp())
        running = next((s for s in sites if s.name == key and loads[s.stage].stage.id == leg.stage), None)
        if running is not None and not any(rent.start <= opens < rent.end for rent in running.rents):
            running = None
    return World(
        request,
        situation,
        math.ceil(now.timestamp()),
        math.floor(end.timestamp()),
        currency,
        useful,
        loads,
        tuple(sites),
        {pair: route for pair, route in routes.items() if set(pair) <= set(useful)},
        {region: _storage(question, catalog.regions[region]) for region in useful},
        tuple(region for region in first if region in useful),
        running,
        tuple(rejected),
        tuple(_warnings(question, sites, loads)),
    )


def _home(request: RunRequest, catalog: Catalog) -> str | None:
    home = request.regions.home
    if home is None and request.dataset is not None and request.dataset.url.startswith("tiered://"):
        home = request.dataset.url.removeprefix("tiered://").partition("/")[0]
    named = [name for name in (home, *(request.regions.allow or ()), *request.regions.deny) if name is not None]
    unknown = [name for name in named if name not in catalog.regions]
    if unknown:
        known = ", ".join(sorted(catalog.regions)) or "none"
        raise RequestError(
            f"run {request.id} names regions the catalog does not have:",
            [Fault(request.id, None, "regions", name, f"one of {known}") for name in unknown],
        )
    return home


def _currency(request: RunRequest, catalog: Catalog, home: str | None) -> str:
    """Return the budget's currency, else home's, else that of the first region by name."""
    if request.budget is not None:
        return request.budget.currency
    allowed = [home] if home is not None else sorted(request.regions.allow or catalog.regions)
    return catalog.regions[allowed[0]].currency if allowed else "USD"


def _allowed(request: RunRequest, catalog: Catalog) -> tuple[list[str], list[Rejection]]:
    allowed, rejected = [], []
    for name, region in sorted(catalog.regions.items()):
        if region.status == "retired":
            rejected.append(Rejection(name, "", "retired"))
        elif request.regions.allow is not None and name not in request.regions.allow:
            rejected.append(Rejection(name, "", "not among the regions the run allows"))
        elif name in request.regions.deny:
            rejected.append(Rejection(name, "", "denied by the run"))
        else:
            allowed.append(name)
    return allowed, rejected


def _first(situation: Situation, loads: tuple[Load, ...], home: str | None, allowed: list[str]) -> tuple[str, ...]:
    """Return where the run stands: where it runs, where its checkpoint lies, where its data lies; else anywhere."""
    if situation.leg is not None:
        return (situation.leg.region,)
    if situation.checkpoint is not None:
        return (situation.checkpoint.region,)
    if home is not None and (home not in allowed or any(load.missing or load.luggage for load in loads)):
        return (home,)
    return tuple(allowed)


def _routes(question: Question, regions: list[str]) -> dict[tuple[str, str], Route]:
    routes = {}
    for source in regions:
        for target in regions:
            if source == target or not may_carry(question.request, question.catalog, source, target):
                continue
            link = question.catalog.link(source, target)
            if link is not None and link.price_per_gb is not None and link.bandwidth is not None:
                price = question.exchange(link.price_per_gb.amount, link.price_per_gb.currency) / link.gb_bytes
                routes[source, target] = Route(price, link.bandwidth, link.price_per_gb.basis)
    return routes


def may_carry(request: RunRequest, catalog: Catalog, source: str, target: str) -> bool:
    """Tell whether residency lets the run's bytes go that way: freely within a jurisdiction, else only by leave."""
    if request.dataset is None or source == target:
        return True
    here, there = catalog.regions[source].residency, catalog.regions[target].residency
    if here.jurisdiction == there.jurisdiction:
        return True
    return here.export_allowed and here.jurisdiction in request.dataset.may_leave


def _reachable(first: tuple[str, ...], routes: Mapping[tuple[str, str], Route]) -> set[str]:
    found, todo = set(first), list(first)
    while todo:
        here = todo.pop()
        beyond = {target for source, target in routes if source == here} - found
        found |= beyond
        todo += sorted(beyond)
    return found


def _unreachable(question: Question, source: str, target: str) -> str:
    if not may_carry(question.request, question.catalog, source, target):
        here = question.catalog.regions[source].residency
        may = "its export is not allowed" if not here.export_allowed else "the dataset may not leave it"
        return f"residency: data lies in {here.jurisdiction} and {may}"
    link = question.catalog.link(source, target)
    if link is None:
        return f"no link from {source}: neither price nor bandwidth is known"
    lacking = "no price" if link.price_per_gb is None else "no bandwidth"
    return f"{lacking} on the link from {source}"


def _storage(question: Question, region: Region) -> Fraction:
    cold = region.storage.cold
    for name in ("standard", *cold.classes):
        price = cold.classes[name].price_per_gb_month if name in cold.classes else None
        if price is not None:
            hourly = question.exchange(price.amount, price.currency) / cold.month_hours
            return hourly / cold.gb_bytes / 3600
    return Fraction(0)


def _warnings(question: Question, sites: list[Site], loads: tuple[Load, ...]) -> list[str]:
    request, catalog, warnings = question.request, question.catalog, []
    used = sorted({site.region for site in sites})
    drafts = [region for region in used if catalog.regions[region].status == "draft"]
    if drafts:
        warnings.append(f"draft regions, prices not yet checked: {', '.join(drafts)}")
    for currency in sorted({catalog.regions[region].currency for region in used} - {question.currency}):
        for rate in catalog.fx.path(currency, question.currency, question.start.date()):
            warnings.append(f"prices in {currency} are compared at {rate}")
    for load in loads:
        if request.checkpoint_of(load.stage).size is None and request.model.parameters is None:
            warnings.append(f"{load.stage.id}: checkpoint size unknown, moves are planned as if it were nothing")
    return warnings
