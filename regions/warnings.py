"""What is allowed in a catalog but should be looked at: old prices, drafts, currencies without a rate, unknown days."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from pydantic import BaseModel

from regions.documents import Document
from regions.errors import Fault
from regions.model import Catalog, Price, Region, Window
from regions.money import CurrencyError
from regions.offers import uncertain_years
from regions.units import duration_text
from regions.yamltext import path_text

_A_YEAR = timedelta(days=365)


def warnings_of(catalog: Catalog, documents: Mapping[str, Document], now: datetime | None) -> tuple[Fault, ...]:
    """Return warnings in the order of files and lines. Without `now`, nothing is old."""
    found: list[Fault] = []
    for name, region in catalog.regions.items():
        document = documents[name]
        if region.status == "draft":
            found.append(document.fault(("status",), "draft", "active", "planned only with a warning until verified"))
        found += _without_rate(catalog, region, document)
        if now is not None:
            found += _stale(catalog, region, document, now)
            years = ", ".join(str(year) for year in uncertain_years(region, now, now + _A_YEAR))
            if years:
                hint = "the dearest price that may hold is used; list extra_workdays once they are published"
                expected = "a published list of make-up days"
                found.append(document.fault(("holidays", "country"), f"{years}, not published", expected, hint))
    if now is not None and "links" in documents:
        for index, link in enumerate(catalog.links):
            found += _stale_prices(catalog, link, ("links", index), documents["links"], now)
    return tuple(sorted(found, key=lambda fault: (fault.file, fault.line or 0, fault.field)))


def priced(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Price | Window]]:
    """Yield every price and window below a value, with its path in the file."""
    if isinstance(value, Price):
        yield path, value
        return
    if isinstance(value, Window):
        yield path, value
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            yield from priced(getattr(value, name), (*path, info.alias or name))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from priced(item, (*path, index))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from priced(item, (*path, key))


def _stale(catalog: Catalog, region: Region, document: Document, now: datetime) -> Iterator[Fault]:
    for section in ("tariff", "electricity", "offers", "storage"):
        yield from _stale_prices(catalog, getattr(region, section), (section,), document, now)


def _stale_prices(
    catalog: Catalog, value: object, path: tuple[str | int, ...], document: Document, now: datetime
) -> Iterator[Fault]:
    limit = catalog.policy.stale_after
    for where, price in priced(value, path):
        if price.as_of is not None and now.date() - price.as_of > limit:
            expected = f"a price not older than {duration_text(limit)} (policy.yaml: stale_after)"
            yield Fault(
                document.file, document.line(where), path_text(where), f"as of {price.as_of}", expected, "stale"
            )


def _without_rate(catalog: Catalog, region: Region, document: Document) -> Iterator[Fault]:
    others = {other.currency for other in catalog.regions.values()} - {region.currency}
    missing = []
    for other in sorted(others):
        try:
            catalog.fx.path(region.currency, other)
        except CurrencyError:
            missing.append(other)
    if missing:
        hint = "without one, these regions are never compared"
        yield document.fault(("currency",), region.currency, f"a dated rate to {', '.join(missing)} in fx.yaml", hint)
