from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.units import duration_text, parse_bandwidth, parse_duration, parse_power, parse_share, parse_size


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("6 min", timedelta(minutes=6)),
        ("1 s", timedelta(seconds=1)),
        ("2 h", timedelta(hours=2)),
        ("10 d", timedelta(days=10)),
        ("1 month", timedelta(days=30)),
        ("2 years", timedelta(days=730)),
        ("1.5 h", timedelta(minutes=90)),
        ("0 s", timedelta(0)),
    ],
)
def test_durations(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


def test_sizes_tell_binary_from_decimal() -> None:
    assert parse_size("64 GiB") == 64 * 2**30
    assert parse_size("64 GB") == 64 * 10**9
    assert parse_size("3.5 TiB") == 7 * 2**39
    assert parse_size("0 B") == 0


def test_power_bandwidth_and_shares() -> None:
    assert parse_power("3.2 kW") == Decimal(3200)
    assert parse_bandwidth("1 Gbit/s") == 125_000_000
    assert parse_bandwidth("200 MB/s") == 200_000_000
    assert parse_share("1/7") == Fraction(1, 7)
    assert parse_share("0.25") == Fraction(1, 4)


@pytest.mark.parametrize(
    ("parse", "wrong"),
    [
        (parse_duration, "6"),
        (parse_duration, "6 fortnights"),
        (parse_duration, 6),
        (parse_duration, "-6 min"),
        (parse_size, "64"),
        (parse_size, "64 gib"),
        (parse_size, "1.0001 B"),
        (parse_size, True),
        (parse_power, "3.2"),
        (parse_bandwidth, "1 Gbit"),
        (parse_share, "1/0"),
        (parse_share, 0.25),
    ],
)
def test_nothing_is_assumed(parse: object, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"such as|whole number"):
        parse(wrong)  # type: ignore[operator]


@given(st.integers(min_value=0, max_value=10**7))
def test_a_duration_written_is_the_duration_read(seconds: int) -> None:
    assert parse_duration(duration_text(timedelta(seconds=seconds))) == timedelta(seconds=seconds)
