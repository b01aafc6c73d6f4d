"""The journal's tables. History, terms, leases and money have one authority: these rows (docs/decisions/0602).

Instants are stored as ISO 8601 text in UTC, so that they sort, survive any driver, and read the same in SQLite and
PostgreSQL; money as decimal text, since SQLite has no exact number.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import JSON, Boolean, Column, Integer, MetaData, String, Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

VERSION = 1
"""Grows with each change of a table; a journal of another version is refused by name."""

metadata = MetaData()


class Instant(TypeDecorator[datetime]):
    """An aware instant, stored as text with microseconds and a Z."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        """Refuse a naive instant; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"an instant without a zone cannot be recorded: {value}")
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        """Return an aware UTC instant."""
        return None if value is None else datetime.fromisoformat(value)


class Amount(TypeDecorator[Decimal]):
    """An exact decimal, stored as text."""

    impl = String(40)
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> str | None:
        """Store without an exponent."""
        return None if value is None else f"{value:f}"

    def process_result_value(self, value: str | None, dialect: Dialect) -> Decimal | None:
        """Return the very decimal that was stored."""
        return None if value is None else Decimal(value)


def _id(name: str, **more: Any) -> Column[str]:
    return Column(name, String(120), **more)


about = Table("about", metadata, Column("version", Integer, primary_key=True))

catalogs = Table(
    "catalogs",
    metadata,
    _id("digest", primary_key=True),
    Column("document", JSON, nullable=False),
    Column("seen", Instant, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    _id("id", primary_key=True),
    _id("flow_run", unique=True, nullable=False),
    _id("recipe", nullable=False),
    _id("team", nullable=False),
    _id("priority", nullable=False),
    Column("request", JSON, nullable=False),
    Column("dataset", JSON),
    _id("catalog", nullable=False),
    Column("submitted_at", Instant, nullable=False),
    Column("submitted_real", Instant, nullable=False),
    Column("ended_at", Instant),
    _id("state", nullable=False),
    Column("reason", Text, nullable=False, default=""),
    Column("term", Integer, nullable=False, default=0),
    _id("stage"),
    Column("cancel", Boolean, nullable=False, default=False),
    _id("driver", nullable=False, default=""),
    Column("driver_seen", Instant),
    _id("final_digest"),
    _id("continues"),
)

artifacts = Table(
    "artifacts",
    metadata,
    _id("run", primary_key=True),
    _id("key", primary_key=True),
    _id("artifact", nullable=False),
)

plans = Table(
    "plans",
    metadata,
    _id("run", primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("at", Instant, nullable=False),
    Column("document", JSON, nullable=False),
)

legs = Table(
    "legs",
    metadata,
    _id("run", primary_key=True),
    Column("number", Integer, primary_key=True),
    _id("stage", nullable=False),
    _id("region", nullable=False),
    _id("offer", nullable=False),
    _id("market", nullable=False),
    Column("width", Integer, nullable=False),
    _id("catalog", nullable=False),
    _id("state", nullable=False),
    _id("outcome"),
    Column("reason", Text, nullable=False, default=""),
    _id("flow_run"),
    Column("planned_start", Instant, nullable=False),
    Column("planned_end", Instant, nullable=False),
    Column("launched_real", Instant, nullable=False),
    Column("opened_real", Instant),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("started_real", Instant),
    Column("ended_real", Instant),
    Column("from_step", Integer),
    Column("to_step", Integer),
    Column("pid", Integer),
    Column("trainer_pid", Integer),
    Column("heartbeat", JSON),
    Column("heartbeat_real", Instant),
    Column("report", JSON),
    Column("estimated", Boolean, nullable=False, default=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _id("run", primary_key=True),
    _id("stage", primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("term", Integer, primary_key=True),
    _id("digest", nullable=False),
    _id("record", nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("accepted_real", Instant, nullable=False),
)

places = Table(
    "places",
    metadata,
    _id("run", primary_key=True),
    _id("stage", primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("term", Integer, primary_key=True),
    _id("region", primary_key=True),
)

charges = Table(
    "charges",
    metadata,
    _id("run", primary_key=True),
    Column("leg", Integer, primary_key=True),
    Column("line", Integer, primary_key=True),
    _id("stage", nullable=False),
    _id("team", nullable=False),
    _id("region", nullable=False),
    _id("offer", nullable=False),
    _id("market", nullable=False),
    _id("what", nullable=False),
    Column("start_at", Instant, nullable=False),
    Column("end_at", Instant, nullable=False),
    Column("quantity", Amount, nullable=False),
    _id("unit", nullable=False),
    Column("price", Amount, nullable=False),
    Column("amount", Amount, nullable=False),
    _id("currency", nullable=False),
    Column("rate", Amount, nullable=False),
    Column("total", Amount, nullable=False),
    _id("total_currency", nullable=False),
    _id("window"),
    _id("basis", nullable=False),
    Column("estimated", Boolean, nullable=False, default=False),
)
