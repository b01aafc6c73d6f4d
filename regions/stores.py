"""Where a region keeps bytes: hot and warm disks, and the cold object store that is its source of truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from regions.fields import Count, Currency, Duration, Section, Size, Sourced
from regions.prices import Price


class StorageTier(Sourced):
    """A tier that is disk: hot or warm."""

    url: str
    capacity: Size | None = None
    currency: Currency | None = None
    price_per_gb_month: Price | None = None


class StorageClass(Sourced):
    """A class of the cold tier's object storage and its price rules."""

    storage_class: str | None = None
    """The store's own name for it."""
    currency: Currency | None = None
    price_per_gb_month: Price | None = None
    minimum_days: Count = 0
    minimum_object: Size = 0
    retrieval_per_gb: Price | None = None
    put_per_10k: Price | None = None
    get_per_10k: Price | None = None
    restore: Duration | None = None
    """How long an object takes to become readable; null: at once."""


def _short_endpoint(value: object) -> object:
    return {"public": value} if isinstance(value, str) else value


class Endpoint(Section):
    """Where the store answers: from anywhere, and from inside the region (free of traffic charges)."""

    public: str | None = None
    internal: str | None = None
    dual_stack: str | None = None
    options: Mapping[str, str] = Field(default_factory=dict)
    """Client settings the store needs, such as addressing_style."""


class Cold(Sourced):
    """The object store: the region's source of truth."""

    url: str
    endpoint: Annotated[Endpoint | None, BeforeValidator(_short_endpoint)] = None
    currency: Currency | None = None
    classes: Mapping[str, StorageClass] = Field(default_factory=dict)
    month_hours: Annotated[int, Field(strict=True, gt=0)] = 720
    gb: Literal["binary", "decimal"] = "decimal"
    """What one GB is on the bill: 2^30 bytes or 10^9."""

    @property
    def gb_bytes(self) -> int:
        """Bytes of one billed GB."""
        return 2**30 if self.gb == "binary" else 10**9


class Storage(Sourced):
    """Hot (NVMe), warm (SSD) and cold (object storage)."""

    currency: Currency | None = None
    hot: StorageTier | None = None
    warm: StorageTier | None = None
    cold: Cold
