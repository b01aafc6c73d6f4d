"""Opens the journal's database: SQLite on this machine, or PostgreSQL by URL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from flows import schema
from regions.errors import OutsideError, SettingsError


def open_database(url: str) -> Engine:
    """Open it, making the tables where there are none; SettingsError or OutsideError says what is wrong."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise SettingsError(f"NIGHTRELAY_DATABASE_URL is no database URL: {error}") from error
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    where = parsed.render_as_string()
    engine = create_engine(parsed, pool_pre_ping=True)
    if engine.dialect.name == "sqlite":
        _one_writer_at_a_time(engine)
    try:
        version = _prepare(engine)
    except DBAPIError as error:
        raise OutsideError(f"the journal at {where} does not open: {error.orig}") from error
    if version != schema.VERSION:
        raise SettingsError(f"the journal at {where} has version {version}, this program needs {schema.VERSION}")
    return engine


def _prepare(engine: Engine) -> int:
    """Make the tables where there are none and return the version found. Two processes may do it at once."""
    with engine.begin() as tx:
        schema.metadata.create_all(tx)
        version = tx.execute(select(schema.about.c.version)).scalar()
    if version is None:
        try:
            with engine.begin() as tx:
                tx.execute(insert(schema.about).values(version=schema.VERSION))
        except IntegrityError:
            pass
        version = schema.VERSION
    return version


def _one_writer_at_a_time(engine: Engine) -> None:
    """Make SQLite take its write lock when a transaction begins, so that two writers wait instead of failing."""

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in ("busy_timeout=20000", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get("nightrelay_reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
