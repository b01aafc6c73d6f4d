"""Tables of a plan, of legs and of costs, as rows of plain text: for the terminal, the UI and reports alike.

The UI shows some 650 pixels of a table and scrolls for the rest, so what matters most stands first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

from flows.rows import LegRow

Row = dict[str, str]


def money(amount: Decimal | str | None, currency: str) -> str:
    """Return an amount for people: two decimals, four below one."""
    if amount is None:
        return "-"
    exact = Decimal(amount)
    step = Decimal("0.01") if abs(exact) >= 1 or exact == 0 else Decimal("0.0001")
    return f"{exact.quantize(step, ROUND_HALF_UP):,} {currency}".rstrip()


def local(instant: datetime | str | None, zone: str) -> str:
    """Return an instant as the clock on a region's wall shows it."""
    if instant is None:
        return "-"
    moment = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
    return f"{moment.astimezone(ZoneInfo(zone)):%d %b %H:%M}"


def utc(instant: datetime | str | None) -> str:
    """Return an instant in UTC, for where no region's clock is meant."""
    return "never" if instant is None else f"{local(instant, 'UTC')} UTC"


def plan_rows(document: Mapping[str, Any], zones: Mapping[str, str]) -> list[Row]:
    """Return a plan's legs, one row each, and the total."""
    currency = document["currency"]
    rows = [
        {
            "stage": leg["stage"],
            "region": leg["region"],
            "start (local)": local(leg["start"], zones[leg["region"]]),
            "end (local)": local(leg["end"], zones[leg["region"]]),
            "cost": money(leg["cost"]["total"], currency),
            "work": f"{float(leg['work']):,.0f}",
            "handoff": _handoff(leg["handoff"]),
            "offer": f"{leg['offer']}, {leg['market'].replace('_', ' ')}",
        }
        for leg in document["legs"]
    ]
    blank = dict.fromkeys(rows[0], "") if rows else {}
    return [*rows, {**blank, "stage": "total", "cost": money(document["cost"], currency)}]


def _handoff(planned: Mapping[str, Any]) -> str:
    return f"{size(planned['bytes'])} from {planned['source']}" if planned["source"] and planned["bytes"] else "-"


def leg_rows(legs: Sequence[LegRow], charges: Sequence[Mapping[str, Any]], zones: Mapping[str, str]) -> list[Row]:
    """Return what each leg did and cost."""
    rows = []
    for leg in legs:
        mine = [charge for charge in charges if charge["leg"] == leg.number]
        currency = mine[0]["total_currency"] if mine else ""
        zone = zones[leg.region]
        rows.append(
            {
                "leg": str(leg.number),
                "region": leg.region,
                "start (local)": local(leg.started_at, zone),
                "end (local)": local(leg.ended_at, zone),
                "steps": "-" if leg.from_step is None else f"{leg.from_step} to {leg.to_step}",
                "outcome": (leg.outcome or leg.state).replace("_", " ") + (" (estimated end)" if leg.estimated else ""),
                "cost": money(sum((charge["total"] for charge in mine), Decimal(0)), currency) if mine else "-",
                "stage": leg.stage,
            }
        )
    return rows


def bill_rows(legs: Sequence[LegRow], charges: Sequence[Mapping[str, Any]], zones: Mapping[str, str]) -> list[Row]:
    """Return what each leg did and cost, and what they cost together."""
    rows = leg_rows(legs, charges, zones)
    if not rows or not charges:
        return rows
    return [*rows, {**dict.fromkeys(rows[0], ""), "leg": "total", "cost": bill(charges)}]


def bill(charges: Sequence[Mapping[str, Any]]) -> str:
    """Return what a run's charges come to; they are all in its currency."""
    return money(sum((charge["total"] for charge in charges), Decimal(0)), charges[0]["total_currency"])


def cost_rows(charges: Sequence[Mapping[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
    """Sum charges by the named columns, dearest first: [{<keys>, "cost": Decimal, "currency"}]."""
    sums: dict[tuple[str, ...], Decimal] = {}
    for charge in charges:
        key = (*(str(charge[name]) for name in by), charge["total_currency"])
        sums[key] = sums.get(key, Decimal(0)) + charge["total"]
    rows = [{**dict(zip(by, key[:-1], strict=True)), "cost": total, "currency": key[-1]} for key, total in sums.items()]
    return sorted(rows, key=lambda row: (-row["cost"], [str(row[name]) for name in by]))


def size(count: int | float) -> str:
    """Return a number of bytes for people, in powers of 1,024."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"
