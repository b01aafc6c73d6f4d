"""What a region file says, checked and frozen: a place with its clock, prices, capacity and storage.

One class per section of the file, one field per key; a field's docstring goes into the JSON schema for editors. Only
what can be judged from one file is judged here; what needs its neighbours (links, rates, series) is `load`'s.
Money is Decimal in the currency that stands beside it, sizes are bytes, times of day are seconds after midnight.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from regions.documents import nearest
from regions.fields import (
    BASES,
    DAY,
    WEAK_BASES,
    Amount,
    Bandwidth,
    Basis,
    Count,
    Currency,
    Day,
    Duration,
    Flag,
    Month,
    Name,
    Power,
    Section,
    Share,
    Size,
    Sourced,
    TimeOfDay,
    Zone,
    inherited,
)
from regions.money import Money
from regions.series import Series

__all__ = [
    "BASES", "DAY", "WEAK_BASES", "Basis", "Billing", "Cold", "Electricity", "Endpoint", "Fraction", "Holidays", "Link",
    "Market", "MarketName", "Markets", "Offer", "Price", "Region", "Reserved", "Residency", "Spot", "Storage",
    "StorageClass", "StorageTier", "Tariff", "Term", "Window",
]  # fmt: skip

MarketName = Literal["on_demand", "spot", "reserved"]
MARKETS: tuple[MarketName, ...] = ("on_demand", "spot", "reserved")
CPU = "CPU"
"""The accelerator of an offer that has none: its processors are counted instead."""

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_CLASSES = ("all", "workday", "weekend", "holiday", *_WEEKDAYS)
_NAMED = re.compile(r"holiday:(?P<name>[a-z0-9_]+)(?:\[(?P<first>[1-9]\d?)(?:-(?P<last>[1-9]\d?))?\])?")


class Price(Section):
    """An amount with what is known about it. Absent is not zero; "0" is free and is shown as free."""

    amount: Amount = Field(alias="price")
    currency: Currency
    basis: Basis = "estimate"
    source: str = "not stated"
    as_of: Day | None = None

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, data: Any) -> Any:
        if isinstance(data, int | float):
            raise ValueError(f'a quoted decimal | quote it: "{data}"')
        return data

    @property
    def money(self) -> Money:
        """The amount as money."""
        return Money(self.amount, self.currency)

    @property
    def free(self) -> bool:
        """Whether the price is an explicit nothing."""
        return self.amount == 0


def _day_class(value: str) -> str:
    named = _NAMED.fullmatch(value)
    if value in DAY_CLASSES or (named and int(named["last"] or 99) >= int(named["first"] or 0)):
        return value
    near = nearest(value, DAY_CLASSES)
    hint = f"did you mean {near}?" if near else "a part of a holiday is written holiday:national_day[1-3]"
    raise ValueError(f"one of {', '.join(DAY_CLASSES)} or holiday:<name> | {hint}")


def _many(value: object) -> object:
    return [value] if isinstance(value, str) else value


Days = Annotated[tuple[Annotated[str, AfterValidator(_day_class)], ...], BeforeValidator(_many), Field(min_length=1)]


class Window(Sourced):
    """A price rule over wall-clock time [start, end); it belongs to the day on which it starts."""

    name: str = ""
    days: Days = ("all",)
    """all, workday, weekend, holiday, mon..sun, holiday:<name>, holiday:<name>[1-3]; any of them is enough."""
    months: tuple[Month, ...] | None = None
    """1 to 12; null is all year."""
    start: TimeOfDay
    end: TimeOfDay
    """ "24:00" is midnight at the day's end; an end at or before the start lies on the next day."""
    multiplier: Amount
    """What the price is multiplied by while the window matches."""

    @model_validator(mode="after")
    def _starts_within_the_day(self) -> Window:
        if self.start >= DAY:
            raise ValueError('a start before "24:00" | a window that starts at midnight starts at "00:00"')
        if not self.name:
            self.__dict__["name"] = f"{_clock(self.start)}-{_clock(self.end)}"
        return self

    @property
    def length(self) -> int:
        """Seconds from start to end on the wall; the same time twice is the whole day."""
        return (self.end - self.start - 1) % DAY + 1


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds % 3600 // 60:02}"


class Tariff(Sourced):
    """Windows in order: the first that matches an instant sets the multiplier; where none does it is 1."""

    anchor: Literal["local", "utc"] = "local"
    """utc: the windows' clock and calendar are UTC all year, whatever the region's zone does."""
    windows: tuple[Window, ...] = ()


class Holidays(Section):
    """Which days are off, and which weekend days are worked to make up for them."""

    country: Annotated[str, Field(pattern=r"^[A-Z]{2,3}$")] | None = None
    """ISO 3166 code, quoted (NO is Norway)."""
    subdivision: str | None = None
    makeup_workdays: Flag = True
    """Whether days worked at weekends to make up for holidays count as workdays, in countries that move days so
    (China). Years whose list is not published are then unknown, not guessed."""
    extra_holidays: tuple[Day, ...] = ()
    extra_workdays: tuple[Day, ...] = ()


class Electricity(Sourced):
    """What power costs; counted only where `billing: owned`."""

    billing: Literal["included", "owned"] = "included"
    currency: Currency | None = None
    price_per_kwh: Price | None = None
    pue: Amount = Decimal("1.3")
    """Power drawn at the meter per power used by machines."""
    anchor: Literal["local", "utc"] = "local"
    windows: tuple[Window, ...] = ()
    """As in the tariff; the multiplier is on price_per_kwh."""
    series: str | None = None
    """A file of (instant UTC, price per kWh), such as day-ahead prices; wins over the windows in its span."""
    _series: Series | None = PrivateAttr(default=None)

    @property
    def prices(self) -> Series | None:
        """The series file's contents, once loaded."""
        return self._series


class Billing(Section):
    """How the seller counts time: rounded up to increments, never less than the minimum."""

    increment: Duration = timedelta(seconds=1)
    minimum: Duration = timedelta(seconds=60)

    @field_validator("increment")
    @classmethod
    def _positive(cls, value: timedelta) -> timedelta:
        if value <= timedelta(0):
            raise ValueError('more than "0 s"')
        return value


class Market(Sourced):
    """One way to buy an offer: on demand, per whole instance and hour."""

    currency: Currency | None = None
    price: Price | None = None
    """Absent, null or "": not offered for want of a price. "0": free."""
    tariff: Flag | None = None
    """Whether the region's tariff multiplies this price; null: on_demand yes, all else no."""
    series: str | None = None
    """A file of (instant UTC, price) beside the region file; it replaces price and tariff in its span."""
    range: tuple[Amount, ...] | None = None
    """Lowest and highest price seen, where the source gives a range."""
    _series: Series | None = PrivateAttr(default=None)

    @property
    def prices(self) -> Series | None:
        """The series file's contents, once loaded."""
        return self._series


class Spot(Market):
    """Cheaper, and may be taken away."""

    interruption_per_hour: Amount | None = None
    """Expected interruptions per instance and hour; null: unknown."""
    notice: Duration | None = None
    """How long before it is taken away one is told."""
    protection: Duration | None = None
    """How long after the start it is not taken away."""


class Term(Section):
    """A longer commitment and what the monthly price is multiplied by under it."""

    commitment: Duration
    multiplier: Amount


class Reserved(Sourced):
    """Paid by the month for a commitment; its hours are sunk once paid."""

    currency: Currency | None = None
    price_per_month: Price | None = None
    """Per instance."""
    commitment: Duration = timedelta(days=30)
    held: Count = 0
    """Instances already paid for: they can be planned with, at no further cost."""
    terms: tuple[Term, ...] = ()


def _short_market(value: object) -> object:
    return {"price": value} if isinstance(value, str) else value


class Markets(Section):
    """The markets an offer is sold on."""

    on_demand: Annotated[Market | None, BeforeValidator(_short_market)] = None
    spot: Annotated[Spot | None, BeforeValidator(_short_market)] = None
    reserved: Reserved | None = None


class Fraction(Sourced):
    """A part of one accelerator: how it is cut, what share, how much memory. Never a bare number."""

    method: Literal["mig", "hami", "cgpu", "vgpu"]
    profile: str | None = None
    share: Share
    memory: Size | None = None
    instance: str | None = None
    """The seller's own type for it, where it is sold as one."""
    currency: Currency | None = None
    price: Price | None = None
    """The seller's own price per hour; null: share x instance price / count."""


class Offer(Section):
    """Something a region sells: accelerator x count x market x fraction."""

    id: Name
    accelerator: str
    """Model name, such as A100-80GB; CPU where it has none."""
    count: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Accelerators per instance; for CPU it is vcpus."""
    instance: str | None = None
    vcpus: Annotated[int, Field(strict=True, ge=1)] | None = None
    memory: Size | None = None
    accelerator_memory: Size | None = None
    """Of one accelerator."""
    fractions: tuple[Fraction, ...] = ()
    power: Power | None = None
    """Of a whole instance at work; needed where electricity is owned."""
    quota: Count | None = 16
    """Instances one may have; null: not offered now."""
    billing: Billing = Billing()
    startup: Duration = timedelta(minutes=6)
    """From asking to the first step."""
    rdma: Flag | None = None
    arch: str | None = None
    markets: Markets = Markets()

    @model_validator(mode="before")
    @classmethod
    def _processors_counted(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("count") is None:
            count = data.get("vcpus", 1) if data.get("accelerator") == CPU else 1
            return {**data, "count": count}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Offer:
        if self.accelerator == CPU and self.vcpus is not None and self.count != self.vcpus:
            raise ValueError(f"count = vcpus for CPU | count is {self.count}, vcpus is {self.vcpus}")
        return self

    @property
    def units(self) -> int:
        """Accelerators per instance (processors for CPU)."""
        return self.count or 1

    def market(self, name: MarketName) -> Market | Reserved | None:
        """Return a market of the offer, or None where it is not sold so."""
        found: Market | Reserved | None = getattr(self.markets, name)
        return found


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


class Residency(Section):
    """Under whose law the region's bytes lie."""

    jurisdiction: Name
    export_allowed: Flag = False


class Region(Sourced):
    """A place with a time zone, prices, capacity and storage. Its id names its file and its work pool."""

    id: Name
    name: str | None = None
    """For people; null: the id."""
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


class Link(Sourced):
    """What bringing bytes from one region to another costs and how fast it goes; the source region sets the price."""

    source_region: str = Field(alias="from")
    """A region's id, or `default` for any."""
    target_region: str = Field(alias="to")
    """A region's id, or `default` for any."""
    price_per_gb: Price | None = None
    currency: Currency
    bandwidth: Bandwidth | None = None
    windows: tuple[Window, ...] = ()
    """Multipliers on price_per_gb in the source region's wall-clock time."""
    gb: Literal["binary", "decimal"] = "decimal"
    free_gb_per_month: Amount | None = None

    @model_validator(mode="before")
    @classmethod
    def _facts_flow_down(cls, data: Any) -> Any:
        return inherited(data, {}) if isinstance(data, dict) else data

    @property
    def gb_bytes(self) -> int:
        """Bytes of one billed GB."""
        return 2**30 if self.gb == "binary" else 10**9
