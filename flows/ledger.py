"""From what a leg did to what it costs: pure, exact, split where the price changes, billed once.

Rent runs from a leg's first sign of life to its last: its report, or where it fell silent its last heartbeat, marked as
estimated. Prices are those of the catalog the leg was planned with, whatever the files say later. Each line keeps its
own currency and the rate by which it enters the run's total.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from flows.messages import Report
from flows.rows import LegRow, RunRow
from regions.model import Catalog, Offer, Region
from regions.money import EXACT, Money, rounded
from regions.offers import Span, billed, price_curve

Line = dict[str, Any]
"""A charge as the journal's table has it, without run, leg and line number."""


def charges_of(
    leg: LegRow,
    run: RunRow,
    catalog: Catalog,
    *,
    currency: str,
    start: datetime | None,
    end: datetime | None,
    report: Report | None,
    estimated: bool,
) -> list[Line]:
    """Return the lines of one ended leg; none for a leg that never gave a sign of life."""
    if start is None or end is None:
        return []
    region = catalog.regions[leg.region]
    offer = region.offer(leg.offer)
    assert offer is not None, "a leg's offer is in the catalog it was planned with"
    common = {
        "stage": leg.stage,
        "team": run.team,
        "region": leg.region,
        "offer": leg.offer,
        "market": leg.market,
        "estimated": estimated,
        "total_currency": currency,
    }
    lines = [*_rent(leg, region, offer, start, end, report), *_transfer(leg, catalog, end, report)]
    return [common | line | _converted(line, catalog, currency) for line in lines]


def _rent(
    leg: LegRow, region: Region, offer: Offer, start: datetime, end: datetime, report: Report | None
) -> list[Line]:
    """Return the rent, split at price changes and phases; the seller's minimum and increment count once, at the end."""
    until = start + billed(offer, end - start)
    curve = price_curve(region, offer, leg.market, start, until)  # type: ignore[arg-type]
    instances = -(-leg.width // offer.units)
    lines = []
    for what, begin, stop in _phases(start, until, report):
        for span in curve:
            here, there = max(begin, span.start), min(stop, span.end)
            if here < there:
                lines.append(_rent_line(what, here, there, span, instances, region.currency))
    return lines


def _rent_line(what: str, start: datetime, end: datetime, span: Span, instances: int, currency: str) -> Line:
    hours = Fraction((end - start) // timedelta(microseconds=1), 3_600_000_000) * instances
    return {
        "what": what,
        "start_at": start,
        "end_at": end,
        "quantity": rounded(hours),
        "unit": "instance-hour",
        "price": span.price,
        "amount": rounded(hours * Fraction(span.price)),
        "currency": currency,
        "window": span.window,
        "basis": span.basis,
    }


def _phases(start: datetime, until: datetime, report: Report | None) -> list[tuple[str, datetime, datetime]]:
    """Return [start, until) cut into named phases without a gap; what no phase covers is `startup`, at the end `idle`.

    Without a report nothing is known of phases, and all of it is `unreported`.
    """
    if report is None:
        return [("unreported", start, until)]
    pieces, at = [], start
    for span in report.phases:
        begin, stop = max(at, min(span.start_at, until)), max(at, min(span.end_at, until))
        if begin > at:
            pieces.append(("startup", at, begin))
        if stop > begin:
            pieces.append((span.phase, begin, stop))
        at = max(at, stop)
    if at < until:
        pieces.append(("idle", at, until))
    return pieces


def _transfer(leg: LegRow, catalog: Catalog, end: datetime, report: Report | None) -> list[Line]:
    """Return a line for each region bytes were brought from."""
    lines = []
    for source, size in sorted((report.received if report is not None else {}).items()):
        if source == leg.region or not size:
            continue
        link = catalog.link(source, leg.region)
        if link is None or link.price_per_gb is None:
            continue
        gigabytes = Fraction(size, link.gb_bytes)
        lines.append(
            {
                "what": f"transfer from {source}",
                "start_at": end,
                "end_at": end,
                "quantity": rounded(gigabytes),
                "unit": "GB",
                "price": link.price_per_gb.amount,
                "amount": rounded(gigabytes * Fraction(link.price_per_gb.amount)),
                "currency": link.price_per_gb.currency,
                "window": None,
                "basis": link.price_per_gb.basis,
            }
        )
    return lines


def _converted(line: Mapping[str, Any], catalog: Catalog, currency: str) -> Line:
    """Return the amount in the run's currency, and the rate that gave it."""
    on = line["end_at"].date()
    rate = catalog.fx.convert(Money(Decimal(1), line["currency"]), currency, on).amount
    return {"rate": rate, "total": EXACT.multiply(line["amount"], rate).normalize(EXACT)}
