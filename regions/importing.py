"""Price catalogs of others -> offers, as they stand in a region file, each with its source and date.

`skypilot-csv` is the format of the public repository skypilot-org/skypilot-catalog (catalogs/v8): one row per machine
type and zone. A field that is empty, a sentinel price, or a spot price equal to the list price means "not offered":
such a price is left out, never taken for zero or for a price.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from regions.errors import Fault, InputError
from regions.money import plain
from regions.offering import CPU

SENTINELS = (Decimal(700),)
"""Prices that stand for "no price known" in public catalogs."""
_COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
_OPTIONAL = ("GpuInfo", "AvailabilityZone", "Arch")
# The catalog's short names mean the smaller memory; ours say it.
_NAMES = {"A100": "A100-40GB"}


@dataclass(frozen=True, slots=True)
class Imported:
    """Offers as a region file has them, and what was passed over, in words."""

    offers: tuple[dict[str, Any], ...]
    passed_over: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """One machine type in one zone."""

    number: int
    instance: str
    accelerator: str
    count: int
    vcpus: int
    memory: Decimal
    accelerator_memory: int | None
    price: Decimal | None
    spot: Decimal | None
    zone: str
    arch: str


def import_skypilot(
    text: str,
    file: str,
    *,
    region: str | None,
    source: str,
    as_of: date,
    currency: str = "USD",
    zone: str | None = None,
    accelerators: Iterable[str] = (),
    sentinels: Iterable[Decimal] = SENTINELS,
) -> Imported:
    """Return the offers of one region (or one zone) of a catalog; InputError lists every row that cannot be read.

    A spot price is the cheapest zone's, with the range over the zones beside it.
    """
    records = _records(text, file)
    place = _place(records, file, region)
    here = [
        (number, record)
        for number, record in records
        if record["Region"] == place and zone in (None, record["AvailabilityZone"])
    ]
    rows, faults, passed_over = [], [], []
    for number, record in here:
        if not record["InstanceType"]:
            passed_over.append(f"line {number}: {record['AcceleratorName']} is priced without a machine")
            continue
        try:
            rows.append(_row(number, record, frozenset(sentinels)))
        except ValueError as error:
            faults.append(Fault(file, number, "row", record["InstanceType"], str(error)))
    if faults:
        raise InputError(f"{file} has rows that cannot be read:", faults)
    wanted = frozenset(accelerators)
    facts = {"source": source, "as_of": as_of.isoformat(), "currency": currency}
    offers = []
    for group in _groups(row for row in rows if not wanted or row.accelerator in wanted):
        offer = _offer(group, facts)
        if offer is None:
            passed_over.append(f"line {group[0].number}: {group[0].instance} has no price")
        else:
            offers.append(offer)
    return Imported(tuple(_with_ids(offers)), tuple(passed_over))


def _records(text: str, file: str) -> list[tuple[int, dict[str, str]]]:
    """Return the file's rows with their lines; a field that is missing is empty."""
    reader = csv.DictReader(io.StringIO(text), restkey="")
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        got = ", ".join(reader.fieldnames or ()) or "nothing"
        fault = Fault(file, 1, "columns", got, ", ".join((*_COLUMNS, *_OPTIONAL)), f"missing: {', '.join(missing)}")
        raise InputError(f"{file} is no price catalog in the skypilot-csv format:", [fault])
    names = (*_COLUMNS, *_OPTIONAL)
    return [(number, {name: row.get(name) or "" for name in names}) for number, row in enumerate(reader, start=2)]


def _place(records: list[tuple[int, dict[str, str]]], file: str, wanted: str | None) -> str:
    """Return the region to import: the one asked for, or the only one there is."""
    known = sorted({record["Region"] for _, record in records})
    if wanted is None and len(known) == 1:
        return known[0]
    if wanted is None or wanted not in known:
        hint = f"known regions: {', '.join(known[:40])}"
        fault = Fault(file, None, "--region", wanted or "nothing", "a region of the file", hint)
        raise InputError(f"{file} has no row for that region:", [fault])
    return wanted


def _row(number: int, record: Mapping[str, str], sentinels: frozenset[Decimal]) -> _Row:
    name = record["AcceleratorName"].strip()
    vcpus = _number(record["vCPUs"], "vCPUs") or Decimal(0)
    price = _price(record["Price"], "Price", sentinels)
    spot = _price(record["SpotPrice"], "SpotPrice", sentinels)
    count = int(_number(record["AcceleratorCount"], "AcceleratorCount") or 0) if name else int(vcpus)
    if count < 1:
        raise ValueError(f"a count of at least 1 in {'AcceleratorCount' if name else 'vCPUs'}")
    return _Row(
        number=number,
        instance=record["InstanceType"].strip(),
        accelerator=_NAMES.get(name, name) or CPU,
        count=count,
        vcpus=int(vcpus),
        memory=_number(record["MemoryGiB"], "MemoryGiB") or Decimal(0),
        accelerator_memory=_gpu_memory(record["GpuInfo"]),
        price=price,
        # A spot price equal to the list price is what clouds report where they have none to give.
        spot=spot if spot != price else None,
        zone=record["AvailabilityZone"],
        arch=record["Arch"],
    )


def _groups(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Yield the rows of each machine type together, in the file's order."""
    groups: dict[tuple[str, str, int], list[_Row]] = {}
    for row in rows:
        groups.setdefault((row.instance, row.accelerator, row.count), []).append(row)
    yield from groups.values()


def _offer(rows: list[_Row], facts: dict[str, str]) -> dict[str, Any] | None:
    first = rows[0]
    prices = [row.price for row in rows if row.price is not None]
    spots = sorted((row.spot, row.zone) for row in rows if row.spot is not None)
    if not prices and not spots:
        return None
    markets: dict[str, Any] = {}
    if prices:
        # Zones of one region share the list price; where they do not, the dearest is the safe one to plan with.
        markets["on_demand"] = {"price": plain(max(prices)), "basis": "list", **facts}
    if spots:
        cheapest, zone = spots[0]
        markets["spot"] = {"price": plain(cheapest), "basis": "observed", **facts}
        if len(spots) > 1:
            markets["spot"]["range"] = [plain(spots[0][0]), plain(spots[-1][0])]
        if zone:
            markets["spot"]["notes"] = f"cheapest zone: {zone}, of {len(spots)} that offer it"
    offer: dict[str, Any] = {
        "accelerator": first.accelerator,
        "count": first.count,
        "instance": first.instance,
        "vcpus": first.vcpus or None,
        "memory": f"{plain(first.memory)} GiB" if first.memory else None,
        "accelerator_memory": f"{first.accelerator_memory} MiB" if first.accelerator_memory else None,
        "arch": first.arch or None,
        "markets": markets,
    }
    return {key: value for key, value in offer.items() if value is not None}


def _with_ids(offers: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield offers with short ids: accelerator x count, and the machine type where that is not enough."""
    shorts = [_short(offer) for offer in offers]
    for offer, short in zip(offers, shorts, strict=True):
        alone = shorts.count(short) == 1
        machine = re.sub(r"[^A-Za-z0-9._-]+", "-", offer["instance"]).strip("-")
        yield {"id": short if alone else machine, **offer}


def _short(offer: Mapping[str, Any]) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", offer["accelerator"].lower()).strip("-")
    return name if offer["count"] == 1 else f"{name}-x{offer['count']}" if "-" in name else f"{name}x{offer['count']}"


def _price(text: str, column: str, sentinels: frozenset[Decimal]) -> Decimal | None:
    price = _number(text, column)
    return None if price is None or price <= 0 or price in sentinels else price


def _number(text: str, column: str) -> Decimal | None:
    text = text.strip()
    if not text or text.lower() == "nan":
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValueError(f"a number or nothing in {column}, not {text!r}")
    return number


def _gpu_memory(text: str) -> int | None:
    """Return the MiB of one accelerator from the catalog's GpuInfo, a Python or JSON literal."""
    try:
        found = ast.literal_eval(text)["Gpus"][0]["MemoryInfo"]["SizeInMiB"]
        return int(found) or None
    except (ValueError, SyntaxError, KeyError, IndexError, TypeError):
        return None
