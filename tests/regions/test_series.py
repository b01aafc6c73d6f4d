from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pyarrow as arrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from regions.series import Series, SeriesError, read_series
from tests.regions.files import at


def test_a_csv_file() -> None:
    rows = b"price,instant,note\n1.5,2026-12-01 00:00,no zone is UTC\n-2,2026-12-01T02:00+01:00,converted\n"
    series = read_series("s.csv", b"\xef\xbb\xbf" + rows)
    assert series.instants == (at("2026-12-01T00:00Z"), at("2026-12-01T01:00Z"), at("2026-12-01T02:00Z"))
    assert series.prices == (Decimal("1.5"), Decimal(-2))


def test_the_last_row_lasts_as_long_as_the_one_before_unless_it_is_empty() -> None:
    open_end = read_series("s.csv", b"instant,price\n2026-12-01T00:00Z,1\n")
    assert (open_end.start, open_end.end) == (at("2026-12-01T00:00Z"), at("2026-12-01T01:00Z"))
    closed = read_series("s.csv", b"instant,price\n2026-12-01T00:00Z,1\n2026-12-01T09:00Z,\n")
    assert closed.end == at("2026-12-01T09:00Z")


@pytest.mark.parametrize("kind", [arrow.timestamp("us", tz="UTC"), arrow.timestamp("ms"), arrow.string()])
def test_a_parquet_file(kind: arrow.DataType) -> None:
    instants = [datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 1, 0, 15, tzinfo=UTC)]
    column = [f"{instant:%Y-%m-%dT%H:%MZ}" for instant in instants] if kind == arrow.string() else instants
    sink = io.BytesIO()
    parquet.write_table(arrow.table({"instant": arrow.array(column, kind), "price": [1.5, -0.25]}), sink)
    series = read_series("s.parquet", sink.getvalue())
    assert series.instants[:2] == tuple(instants)
    assert series.prices == (Decimal("1.5"), Decimal("-0.25"))


@pytest.mark.parametrize(
    ("content", "row", "column"),
    [
        (b"time,price\n1,2\n", 1, "columns"),
        (b"instant,price\n", None, "instant"),
        (b"instant,price\nsoon,1\n", 2, "instant"),
        (b"instant,price\n2026-12-01T00:00Z,cheap\n", 2, "price"),
        (b"instant,price\n2026-12-01T00:00Z,1_0\n", 2, "price"),
        (b"instant,price\n2026-12-01T00:00Z,NaN\n", 2, "price"),
        (b"instant,price\n2026-12-01T00:00Z,1\n2026-12-01T00:00Z,2\n", 3, "instant"),
        (b"\xff\xfe", None, "file"),
    ],
)
def test_what_is_wrong_is_named_with_its_row(content: bytes, row: int | None, column: str) -> None:
    with pytest.raises(SeriesError) as caught:
        read_series("s.csv", content)
    assert (caught.value.row, caught.value.column) == (row, column)


def test_a_file_that_is_no_parquet() -> None:
    with pytest.raises(SeriesError, match="not Parquet"):
        read_series("s.parquet", b"instant,price\n")


@given(st.lists(st.integers(1, 500), min_size=1, max_size=6), st.integers(-300, 900), st.integers(1, 1500))
def test_pieces_cover_any_interval(steps: list[int], offset: int, length: int) -> None:
    instants = [at("2026-12-01T00:00Z")]
    for step in steps:
        instants.append(instants[-1] + timedelta(minutes=step))
    series = Series(tuple(instants), tuple(Decimal(number) for number in range(len(steps))))
    start = instants[0] + timedelta(minutes=offset)
    end = start + timedelta(minutes=length)
    pieces = list(series.pieces(start, end))
    assert (pieces[0][0], pieces[-1][1]) == (start, end)
    for (_, one, _), (other, _, _) in pairwise(pieces):
        assert one == other
    for begin, until, price in pieces:
        assert begin < until
        inside = [p for i, p in enumerate(series.prices) if instants[i] <= begin < instants[i + 1]]
        assert inside == ([price] if price is not None else [])
