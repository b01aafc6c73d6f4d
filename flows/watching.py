"""Takes one look at a run, through the journal, for whoever watches it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from flows.journal import Journal
from flows.ledger import charges_of
from flows.render.live import PriceNow, Watched
from flows.requests import Asked
from flows.rows import LegRow, RunRow
from regions.clock import Clock
from regions.model import Catalog
from regions.offers import NoPrice, price_curve

_MINUTE = timedelta(minutes=1)


def look(journal: Journal, run: RunRow, catalog: Catalog, regions: Sequence[str], clock: Clock, ui: str) -> Watched:
    """Return what is to be seen of a run now."""
    legs = journal.legs(run.id)
    currency = str((journal.plan(run.id) or {}).get("currency", ""))
    return Watched(
        run=run,
        legs=legs,
        now=clock.now(),
        zones={region: catalog.regions[region].timezone for region in regions},
        prices={region: price_now(catalog, region, clock) for region in regions},
        cost=sum((charge["total"] for charge in journal.charges(run.id)), Decimal(0)),
        accrued=accrued(legs, run, catalog, currency, clock),
        currency=currency,
        work=sum(int(stage.work.amount) for stage in Asked.again(run.request).request.stages),
        ui=ui,
    )


def accrued(legs: Sequence[LegRow], run: RunRow, catalog: Catalog, currency: str, clock: Clock) -> Decimal:
    """Return what the legs that still run have cost until now: an estimate, the ledger gets its lines when they end."""
    return sum(
        (
            line["total"]
            for leg in legs
            if leg.state != "ended" and leg.started_at is not None
            for line in charges_of(
                leg,
                run,
                catalog,
                currency=currency,
                start=leg.started_at,
                end=clock.now(),
                report=None,
                estimated=True,
            )
        ),
        Decimal(0),
    )


def price_now(catalog: Catalog, region: str, clock: Clock) -> PriceNow | None:
    """Return what a region's first offer costs per hour now, on demand; None where it has no price."""
    place = catalog.regions[region]
    now = clock.now()
    try:
        span = price_curve(place, place.offers[0], "on_demand", now, now + _MINUTE)[0]
    except NoPrice:
        return None
    return PriceNow(span.price, place.currency, span.window)
