"""What the files of the catalog say, checked and frozen. This module is where others take these values from.

One class per section of a file, one field per key; a field's docstring goes into the JSON schema for editors.
Money is Decimal in the currency that stands beside it, sizes are bytes, times of day are seconds after midnight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field, model_validator

from regions.documents import nearest
from regions.errors import Fault, NotFoundError
from regions.fields import BASES, DAY, WEAK_BASES, Basis, Currency, Flag, Name, Section, Sourced, Zone, inherited
from regions.money import FxTable
from regions.offering import CPU, MARKETS, Billing, Fraction, Market, MarketName, Markets, Offer, Reserved, Spot, Term
from regions.policy import Policy
from regions.prices import Electricity, Holidays, Price, Tariff, Window
from regions.stores import Cold, Endpoint, Storage, StorageClass, StorageTier
from regions.tables import ANYWHERE, Link

__all__ = [
    "ANYWHERE", "BASES", "CPU", "DAY", "MARKETS", "WEAK_BASES", "Basis", "Billing", "Catalog", "Cold", "Electricity",
    "Endpoint", "Fraction", "Holidays", "Link", "Market", "MarketName", "Markets", "Offer", "Policy", "Price",
    "Region", "Reserved", "Residency", "Spot", "Storage", "StorageClass", "StorageTier", "Tariff", "Term", "Window",
]  # fmt: skip


class Residency(Section):
    """Under whose law the region's bytes lie."""

    jurisdiction: Name
    export_allowed: Flag = False


class Region(Sourced):
    """A place with a time zone, prices, capacity and storage. Its id names its file and its work pool."""

    id: Name
    name: str | None = None
    """For people; null: the id."""
    provider_region: str | None = None
    """What the provider calls it."""
    provider: Literal["aliyun", "ctyun", "aws", "gcp", "azure", "local", "other"]
    timezone: Zone
    currency: Currency
    status: Literal["active", "draft", "retired"] = "active"
    """draft: shown, planned only with a warning; retired: kept for history."""
    residency: Residency
    holidays: Holidays = Holidays()
    tariff: Tariff = Tariff()
    electricity: Electricity = Electricity()
    offers: tuple[Offer, ...]
    storage: Storage
    sources: Mapping[str, str] = Field(default_factory=dict)
    """What each `source` above stands for."""

    @model_validator(mode="before")
    @classmethod
    def _facts_flow_down(cls, data: Any) -> Any:
        return inherited(data, {}) if isinstance(data, dict) else data

    def offer(self, offer: str) -> Offer | None:
        """Return the offer of that id."""
        return next((candidate for candidate in self.offers if candidate.id == offer), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything known about where and at what price; `digest` changes with any byte of any file it was read from."""

    regions: Mapping[str, Region]
    links: tuple[Link, ...]
    fx: FxTable
    policy: Policy
    digest: str
    warnings: tuple[Fault, ...] = ()
    """What is allowed but should be looked at: stale prices, drafts."""
    _index: Mapping[tuple[str, str], Link] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {(row.source_region, row.target_region): row for row in reversed(self.links)}
        object.__setattr__(self, "_index", MappingProxyType(index))

    def region(self, name: str) -> Region:
        """Return a region; NotFoundError names the nearest id."""
        if name in self.regions:
            return self.regions[name]
        near = nearest(name, sorted(self.regions))
        hint = f"did you mean {near}?" if near else f"known: {', '.join(sorted(self.regions)) or 'none'}"
        raise NotFoundError(f"no region {name!r} in the catalog; {hint}")

    def link(self, source: str, target: str) -> Link | None:
        """Return the link of a directed pair: its own row, else a default of its source, of its target, of any."""
        for pair in ((source, target), (source, ANYWHERE), (ANYWHERE, target), (ANYWHERE, ANYWHERE)):
            if pair in self._index:
                return self._index[pair]
        return None
