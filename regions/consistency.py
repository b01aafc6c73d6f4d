"""What one field cannot tell: checks between the fields of a file, and between files.

They look at raw data, so a fault in one field does not keep the others from being checked. Each yields faults; none
stops at the first. Reading a series file is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from regions.days import calendar_fault, holiday_names
from regions.documents import Document, nearest
from regions.errors import Fault
from regions.fields import one_or_many
from regions.offering import CPU
from regions.tables import ANYWHERE

_SHOWN_NAMES = 12


def identity(document: Document, stem: str, taken: Mapping[str, Document]) -> Iterator[Fault]:
    """Yield faults of an id that is not the file's name, or another file's as well."""
    name = _at(document, "id")
    if not isinstance(name, str):
        return
    if name in taken:
        yield document.fault(("id",), name, "an id of its own", f"{taken[name].file} has it already")
    if name != stem:
        yield document.fault(("id",), name, f'"{stem}", as the file is called', "rename the file or the id")


def offers(document: Document) -> Iterator[Fault]:
    """Yield faults of offers: ids used twice, processors counted two ways, owned machines without their power."""
    seen: set[str] = set()
    owned = _at(document, "electricity", "billing") == "owned"
    for index, offer in _mappings(_at(document, "offers")):
        where = ("offers", index)
        name = offer.get("id")
        if isinstance(name, str) and name in seen:
            yield document.fault((*where, "id"), name, "an offer id of its own in this file")
        seen.add(str(name))
        count, vcpus = offer.get("count"), offer.get("vcpus")
        if offer.get("accelerator") == CPU and count is not None and vcpus is not None and count != vcpus:
            yield document.fault((*where, "count"), count, f"count = vcpus ({vcpus}) for {CPU}")
        if owned and offer.get("power") is None:
            yield document.fault(
                (*where, "power"), None, 'the power of an instance, such as "3.2 kW"', "electricity is owned"
            )


def electricity(document: Document) -> Iterator[Fault]:
    """Yield faults of owned electricity that cannot be added to the region's prices."""
    section = _at(document, "electricity")
    if not isinstance(section, dict) or section.get("billing") != "owned":
        return
    if section.get("price_per_kwh") in (None, "") and not section.get("series"):
        yield document.fault(("electricity", "price_per_kwh"), None, "a price or a series", "electricity is owned")
    price = section.get("price_per_kwh")
    own = price.get("currency") if isinstance(price, dict) else None
    currency = own or section.get("currency") or _at(document, "currency")
    if currency != _at(document, "currency"):
        yield document.fault(
            ("electricity", "currency"), currency, f"the region's currency ({_at(document, 'currency')})",
            "the electricity of an owned machine is added to its price",
        )  # fmt: skip


def calendar(document: Document) -> Iterator[Fault]:
    """Yield faults of holidays: no such country or part of it, no holiday of that name there."""
    section = _at(document, "holidays")
    section = section if isinstance(section, dict) else {}
    country, part = section.get("country"), section.get("subdivision")
    if country is not None and not isinstance(country, str):
        return
    wrong = calendar_fault(country, part if isinstance(part, str) else None)
    if wrong is not None:
        key, known = wrong
        near = nearest(str(section[key]), known)
        hint = f"did you mean {near}?" if near else "list days under extra_holidays instead"
        listed = "an ISO 3166 code" if key == "country" else f"one of {', '.join(known)}"
        yield document.fault(("holidays", key), section[key], listed, hint)
        return
    names = holiday_names(country, part) if country else frozenset[str]()
    for path, word in _named_holidays(document):
        name = word.removeprefix("holiday:").partition("[")[0]
        if name not in names:
            near = nearest(name, sorted(names))
            shown = ", ".join(sorted(names)[:_SHOWN_NAMES])
            hint = f"did you mean holiday:{near}?" if near else f"known: {shown}" if names else "name a country first"
            yield document.fault(path, word, f"a holiday of {country or 'no country'}", hint)


def series_files(document: Document) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield where a file names a series, and the name."""
    for index, offer in _mappings(_at(document, "offers")):
        markets = offer.get("markets")
        for market, sold in markets.items() if isinstance(markets, dict) else ():
            if isinstance(sold, dict) and isinstance(sold.get("series"), str):
                yield ("offers", index, "markets", market, "series"), sold["series"]
    name = _at(document, "electricity", "series")
    if isinstance(name, str):
        yield ("electricity", "series"), name


def jurisdiction(document: Document, known: Iterable[str] | None) -> Iterator[Fault]:
    """Yield a fault where a residency names a jurisdiction that policy.yaml does not list."""
    name = _at(document, "residency", "jurisdiction")
    if known is None or not isinstance(name, str) or name in known:
        return
    near = nearest(name, list(known))
    hint = f"did you mean {near}?" if near else "add it to jurisdictions in policy.yaml"
    yield document.fault(("residency", "jurisdiction"), name, f"one of {', '.join(known)}", hint)


def link_ends(document: Document, known: Iterable[str]) -> Iterator[Fault]:
    """Yield faults of links: an end that is no region, a region linked to itself, a pair named twice."""
    regions = sorted(known)
    seen: dict[tuple[object, object], str] = {}
    for section in ("links", "default"):
        rows = _at(document, section)
        for index, row in _mappings([rows] if isinstance(rows, dict) else rows):
            where = (section, index) if isinstance(rows, list) else (section,)
            missing = ANYWHERE if section == "default" else None
            pair = (row.get("from", missing), row.get("to", missing))
            for end, name in zip(("from", "to"), pair, strict=True):
                if isinstance(name, str) and name != ANYWHERE and name not in regions:
                    near = nearest(name, regions)
                    hint = f"did you mean {near}?" if near else "add the region's file, or take the row out"
                    yield document.fault((*where, end), name, "a region of this folder", hint)
            if pair[0] == pair[1] != ANYWHERE and pair[0] is not None:
                yield document.fault((*where, "to"), pair[1], "another region than `from`")
            if pair in seen:
                yield document.fault(where, f"{pair[0]} to {pair[1]}", "each pair once", f"it stands in {seen[pair]}")
            seen.setdefault(pair, f"line {document.line(where)}")


def _named_holidays(document: Document) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for section in ("tariff", "electricity"):
        for index, window in _mappings(_at(document, section, "windows")):
            days = one_or_many(window.get("days"))
            for place, word in enumerate(days if isinstance(days, list) else ()):
                if isinstance(word, str) and word.startswith("holiday:"):
                    yield (section, "windows", index, "days", place), word


def _mappings(rows: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        if isinstance(row, dict):
            yield index, row


def _at(document: Document, *path: str) -> Any:
    data = document.data
    for part in path:
        data = data.get(part) if isinstance(data, dict) else None
    return data
