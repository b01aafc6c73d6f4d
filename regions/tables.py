"""The two tables beside the region files: links.yaml (transfer) and fx.yaml (dated currency rates)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

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


class LinksFile(Section):
    """links.yaml: rows per directed pair, and `default` rows for what no pair names."""

    gb: Literal["binary", "decimal"] = "decimal"
    """What one GB is on the bill, for rows that do not say: 2^30 bytes or 10^9."""

    links: tuple[Link, ...] = ()
    default: tuple[Link, ...] = ()
    """Rows whose `from` or `to` may be left out: then they hold for any region."""

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, data: Any) -> Any:
        """Let default rows leave their ends out, and every row its `gb`."""
        if not isinstance(data, dict):
            return data
        shared = {"gb": data["gb"]} if data.get("gb") is not None else {}
        ends = {"from": ANYWHERE, "to": ANYWHERE}
        return data | {
            section: _each(data[section], facts)
            for section, facts in (("links", shared), ("default", ends | shared))
            if data.get(section) is not None
        }


def _each(rows: Any, facts: dict[str, Any]) -> Any:
    if isinstance(rows, dict):
        rows = [rows]
    return [facts | row if isinstance(row, dict) else row for row in rows] if isinstance(rows, list) else rows
