"""`nightrelay regions prices`: what an instance costs per hour over a span of time, as rows, a table or a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction as Exact
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.table import Table

from flows.commands.output import JsonFlag, emit, stderr
from flows.render.picture import as_png, as_svg
from flows.render.prices import PriceLane, draw_prices
from flows.settings import Settings
from regions.curves import NoPrice
from regions.errors import Fault, InputError, NotFoundError
from regions.fields import WEAK_BASES
from regions.load import load
from regions.model import Catalog, Fraction, MarketName, Offer, Region
from regions.money import plain, rounded
from regions.offers import UNKNOWN, Curve, break_even, currency_of, merged, price_curve, uncertain_years

EVERY = "all"
"""In place of a region: all of them, under each other."""
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


class Market(StrEnum):
    """A market, as an option."""

    on_demand = "on_demand"
    spot = "spot"
    reserved = "reserved"


def prices(
    region: Annotated[str, typer.Argument(help="A region's id, or `all`: each region's offer, under each other.")],
    offer: Annotated[str | None, typer.Option(help="The offer's id (with `all`: where a region has it).")] = None,
    market: Annotated[Market, typer.Option(help="How it is bought.")] = Market.on_demand,
    start: Annotated[str | None, typer.Option("--from", help="ISO 8601 with zone; now if not given.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="ISO 8601 with zone; 48 h later if not given.")] = None,
    part: Annotated[
        str | None, typer.Option("--fraction", help="A fraction of the offer, by profile or share.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="A folder of region files.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the curve into this file (.svg, or .png).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what an instance costs per hour over a span of time: half-open, contiguous pieces in UTC."""
    settings = Settings.read(os.environ)
    now = settings.clock.now()
    begin, until = _interval(start, end, now)
    known = load(catalog or settings.catalog)
    chosen = _chosen(known, region, offer, market.value)
    rows: list[dict[str, Any]] = []
    lanes = []
    for place, sold in chosen:
        fraction = _fraction(sold, part)
        curve = _curve(place, sold, market.value, begin, until, fraction)
        currency = currency_of(place, sold, market.value, fraction)
        about = {"region": place.id, "offer": sold.id} if region == EVERY else {}
        units = sold.units if fraction is None else 1
        rows += [about | row for row in _rows(curve, units, currency)]
        lanes.append(PriceLane(place.id, _lane_name(sold, fraction), place.timezone, currency, curve))
        _say_doubts(place, curve, begin, until)
    if svg is not None:
        # From east to west, so that the night wanders down the page.
        westward = sorted(lanes, key=lambda lane: begin.astimezone(ZoneInfo(lane.zone)).utcoffset() or timedelta())
        figure = draw_prices(westward[::-1], market.value, now)
        svg.write_bytes(as_png(figure) if svg.suffix == ".png" else as_svg(figure))
    emit(rows, lambda console: _table(console, lanes), as_json)


def _interval(start: str | None, end: str | None, now: datetime) -> tuple[datetime, datetime]:
    begin = instant_of("--from", start) if start else now.replace(minute=0, second=0, microsecond=0)
    until = instant_of("--to", end) if end else begin + timedelta(hours=48)
    if until <= begin:
        raise wrong("--to", until.isoformat(), f"an instant after --from ({begin.isoformat()})")
    if begin < _FIRST or until > _LAST:
        raise wrong("--from, --to", f"{begin.year} to {until.year}", f"instants from {_FIRST.year} to {_LAST.year}")
    return begin, until


def instant_of(option: str, text: str) -> datetime:
    """Return the instant of an option's text, which must bring its zone."""
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise wrong(option, text, "an ISO 8601 instant, such as 2026-11-30T12:00Z") from None
    if instant.tzinfo is None:
        raise wrong(option, text, f"an instant with its zone, such as {text}Z or {text}+08:00")
    return instant.astimezone(UTC)


def _chosen(catalog: Catalog, region: str, offer: str | None, market: MarketName) -> list[tuple[Region, Offer]]:
    """Return the offers to show: one region's, or for `all` one of every region that sells it so."""
    if region != EVERY:
        place = catalog.region(region)
        if offer is None and len(place.offers) != 1:
            known = ", ".join(each.id for each in place.offers)
            raise wrong("--offer", "nothing", f"one of {known}")
        return [(place, _offer(place, offer) if offer is not None else place.offers[0])]
    found = []
    for place in catalog.regions.values():
        priced = [each for each in place.offers if (offer in (None, each.id)) and _has_price(each, market)]
        if priced and place.status != "retired":
            found.append((place, priced[0]))
    if not found:
        raise NotFoundError(f"no region sells {offer or 'anything'} on {market}")
    return found


def _has_price(offer: Offer, market: MarketName) -> bool:
    sold = getattr(offer.markets, market)
    return sold is not None and (sold.held > 0 if market == "reserved" else bool(sold.price or sold.prices))


def _offer(region: Region, name: str) -> Offer:
    found = region.offer(name)
    if found is None:
        known = ", ".join(offer.id for offer in region.offers) or "none"
        raise NotFoundError(f"no offer {name!r} in {region.id}; known: {known}")
    return found


def _fraction(offer: Offer, name: str | None) -> Fraction | None:
    if name is None:
        return None
    for fraction in offer.fractions:
        if name in (fraction.profile, fraction.instance, str(fraction.share)):
            return fraction
    known = ", ".join(fraction.profile or str(fraction.share) for fraction in offer.fractions) or "none"
    raise NotFoundError(f"no fraction {name!r} of {offer.id}; known: {known}")


def _curve(
    region: Region, offer: Offer, market: MarketName, start: datetime, end: datetime, fraction: Fraction | None
) -> Curve:
    try:
        return price_curve(region, offer, market, start, end, fraction)
    except NoPrice as error:
        if market != "reserved":
            raise
        raise NoPrice(error.message + _pays_from(region, offer, start), kind=error.kind) from error


def _pays_from(region: Region, offer: Offer, start: datetime) -> str:
    """Return from how many hours on a term is cheaper than on demand, as an addition to a refusal."""
    try:
        terms = break_even(region, offer, start)
    except NoPrice:
        return ""
    texts = []
    for term in terms:
        hours = f"from {term.hours:.1f} h on" if term.hours is not None else "for no number of hours"
        texts.append(f"{term.term.days} d for {term.cost} is cheaper than on demand {hours}")
    return "; " + "; ".join(texts)


def _rows(curve: Curve, units: int, currency: str) -> list[dict[str, Any]]:
    # Two curves may differ in what part is electricity where price, window and basis are the same: one row for people.
    joined = merged([replace(span, electricity=span.electricity * 0) for span in curve])
    return [
        {
            "start": span.start,
            "end": span.end,
            "price": plain(span.price),
            "unit": "instance-hour",
            "per_accelerator": plain(rounded(Exact(span.price) / units)),
            "currency": currency,
            "window": span.window,
            "basis": span.basis,
        }
        for span in joined
    ]


def _lane_name(offer: Offer, fraction: Fraction | None) -> str:
    part = f", {fraction.profile or fraction.share} by {fraction.method}" if fraction is not None else ""
    return f"{offer.id} ({offer.units} x {offer.accelerator}{part})"


def _say_doubts(region: Region, curve: Curve, start: datetime, end: datetime) -> None:
    """Say on stderr what the curve cannot promise."""
    if any(span.basis == UNKNOWN for span in curve):
        years = ", ".join(str(year) for year in uncertain_years(region, start, end))
        text = f"{region.id}: make-up days of {years} are not published; the dearest price that may hold is shown"
        stderr.print(text, style="yellow", markup=False, soft_wrap=True)
    if weak := sorted({span.basis for span in curve} & WEAK_BASES):
        stderr.print(f"{region.id}: rests on {', '.join(weak)}", style="yellow", markup=False, soft_wrap=True)


def _table(console: Console, lanes: Sequence[PriceLane]) -> None:
    for lane in lanes:
        console.print(f"{lane.region}  {lane.offer}  {lane.zone}", markup=False)
        table = Table(box=None, header_style="dim")
        for column in ("UTC", "local", f"{lane.currency}/h", "window", "basis"):
            table.add_column(column, justify="right" if "/h" in column else "left")
        for span in lane.curve:
            local = span.start.astimezone(ZoneInfo(lane.zone))
            free = " (free)" if span.price == 0 else ""
            table.add_row(
                f"{span.start:%Y-%m-%d %H:%M} to {span.end:%m-%d %H:%M}",
                f"{local:%a %H:%M}",
                plain(span.price) + free,
                span.window or "",
                span.basis,
            )
        console.print(table)


def wrong(field: str, got: str, expected: str) -> InputError:
    """Return the error of one wrong option."""
    return InputError("the command line is wrong:", [Fault("command line", None, field, got, expected)])
