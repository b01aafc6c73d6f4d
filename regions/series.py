"""Prices that were recorded or announced: a file of (instant UTC, price) and what it says at each instant.

A row holds from its instant until the next one's; the last row lasts as long as the one before it (an hour if it is
alone). An empty price ends the span: from there to the next row the tariff holds again. Prices may be negative.
"""

from __future__ import annotations

import csv
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Series:
    """Steps: `prices[i]` holds over [instants[i], instants[i + 1]); None is a gap. The last instant is the end."""

    instants: tuple[datetime, ...]
    prices: tuple[Decimal | None, ...]

    @property
    def start(self) -> datetime:
        """The first instant with a price."""
        return self.instants[0]

    @property
    def end(self) -> datetime:
        """The instant from which nothing is said."""
        return self.instants[-1]

    def pieces(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime, Decimal | None]]:
        """Yield contiguous pieces that cover [start, end); None where the series says nothing."""
        here = start
        index = bisect_right(self.instants, start) - 1
        while here < end:
            following = self.instants[index + 1] if index + 1 < len(self.instants) else end
            until = min(following, end)
            price = self.prices[index] if 0 <= index < len(self.prices) else None
            yield here, until, price
            here, index = until, index + 1


class SeriesError(ValueError):
    """A series file that cannot be used; says at which row and what was expected there."""

    def __init__(self, row: int | None, column: str, got: str, expected: str) -> None:
        super().__init__(f"row {row}, {column}: got {got}, expected {expected}")
        self.row, self.column, self.got, self.expected = row, column, got, expected


def read_series(name: str, content: bytes) -> Series:
    """Return the series of a CSV or Parquet file's bytes; SeriesError names the first row that is wrong."""
    rows = _parquet_rows(content) if name.endswith(".parquet") else _csv_rows(content)
    points = [_point(number, *row) for number, row in rows]
    if not points:
        raise SeriesError(None, "instant", "no rows", "at least one row of (instant, price)")
    for number, (before, after) in enumerate(pairwise(points), start=3):
        if after[0] <= before[0]:
            raise SeriesError(number, "instant", after[0].isoformat(), f"a later instant than {before[0].isoformat()}")
    instants, prices = [instant for instant, _ in points], [price for _, price in points]
    if prices[-1] is None:
        return Series(tuple(instants), tuple(prices[:-1]))
    last = instants[-1] - instants[-2] if len(instants) > 1 else timedelta(hours=1)
    return Series((*instants, instants[-1] + last), tuple(prices))


def _csv_rows(content: bytes) -> Iterator[tuple[int, tuple[object, object]]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SeriesError(None, "file", "bytes that are not UTF-8", "a CSV file in UTF-8") from error
    reader = csv.DictReader(io.StringIO(text))
    _check_columns(reader.fieldnames or ())
    for number, row in enumerate(reader, start=2):
        yield number, (row["instant"], row["price"])


def _parquet_rows(content: bytes) -> Iterator[tuple[int, tuple[object, object]]]:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        table = parquet.read_table(io.BytesIO(content))
    except (arrow.ArrowInvalid, OSError) as error:
        raise SeriesError(None, "file", "bytes that are not Parquet", "a Parquet file") from error
    _check_columns(table.column_names)
    for number, row in enumerate(table.select(["instant", "price"]).to_pylist(), start=2):
        yield number, (row["instant"], row["price"])


def _check_columns(names: Iterable[str]) -> None:
    missing = {"instant", "price"} - set(names)
    if missing:
        raise SeriesError(1, "columns", ", ".join(names) or "none", "the columns instant and price")


def _point(number: int, instant: object, price: object) -> tuple[datetime, Decimal | None]:
    return _instant(number, instant), _price(number, price)


def _instant(number: int, value: object) -> datetime:
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise SeriesError(number, "instant", repr(value), "an ISO 8601 instant in UTC") from None
    # The column is UTC by contract, so an instant without a zone is UTC; one with another offset is converted.
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _price(number: int, value: object) -> Decimal | None:
    text = "" if value is None else str(value).strip()
    if not text:
        return None
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or "_" in text:
        raise SeriesError(number, "price", repr(text), "a decimal, or nothing where there is no price")
    return price
