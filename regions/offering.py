"""What a region sells: offers, the markets they are sold on, and the parts they are cut into."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from regions.fields import Amount, Count, Currency, Duration, Flag, Name, Power, Section, Share, Size, Sourced
from regions.prices import Price
from regions.series import Series

MarketName = Literal["on_demand", "spot", "reserved"]
MARKETS: tuple[MarketName, ...] = ("on_demand", "spot", "reserved")
CPU = "CPU"
"""The accelerator of an offer that has none: its processors are counted instead."""


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

    def attach(self, series: Series) -> None:
        """Put the contents of the series file in place; only `load` does this, before anyone else has the value."""
        self._series = series


class Spot(Market):
    """Cheaper, and may be taken away."""

    interruption_per_hour: Amount | None = None
    """Expected interruptions per instance and hour; null: unknown."""
    notice: Duration | None = None
    """How long before it is taken away one is told."""
    protection: Duration | None = None
    """How long after the start it is not taken away."""


class Term(Sourced):
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


class Markets(Section):
    """The markets an offer is sold on."""

    on_demand: Market | None = None
    spot: Spot | None = None
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

    @property
    def units(self) -> int:
        """Accelerators per instance (processors for CPU)."""
        return self.count or 1

    def market(self, name: MarketName) -> Market | Reserved | None:
        """Return a market of the offer, or None where it is not sold so."""
        found: Market | Reserved | None = getattr(self.markets, name)
        return found
