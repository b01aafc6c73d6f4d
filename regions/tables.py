"""The two tables beside the region files: links.yaml (transfer) and fx.yaml (dated currency rates)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from regions.fields import Amount, Bandwidth, Basis, Currency, Day, Section, Sourced, inherited
from regions.money import FxTable, Rate
from regions.prices import Price, Window

ANYWHERE = "default"
"""In a link's `from` or `to`: any region."""


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


class RateRow(Section):
    """One dated rate."""

    source_currency: Currency = Field(alias="from")
    target_currency: Currency = Field(alias="to")
    rate: Annotated[Amount, Field(gt=0)]
    as_of: Day
    basis: Basis
    source: str


class FxFile(Section):
    """fx.yaml."""

    rates: tuple[RateRow, ...] = ()

    def table(self) -> FxTable:
        """Return the rates ready to convert with."""
        return FxTable(
            tuple(
                Rate(row.source_currency, row.target_currency, row.rate, row.as_of, row.basis, row.source)
                for row in self.rates
            )
        )


def _rows(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class LinksFile(Section):
    """links.yaml: rows per directed pair, and `default` rows for what no pair names."""

    links: tuple[Link, ...] = ()
    default: Annotated[tuple[Link, ...], BeforeValidator(_rows)] = ()
    """Rows whose `from` or `to` may be left out: then they hold for any region."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_may_leave_ends_out(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("default") is not None:
            rows = [data["default"]] if isinstance(data["default"], dict) else data["default"]
            if isinstance(rows, list):
                ends = {"from": ANYWHERE, "to": ANYWHERE}
                rows = [ends | row if isinstance(row, dict) else row for row in rows]
            return {**data, "default": rows}
        return data
