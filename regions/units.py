"""Quantities as people write them ("6 min", "64 GiB", "3.2 kW", "10 Gbit/s", "1/7"), and the exact values they mean.

Each parser takes text, or the value itself and gives it back (models are also built from Python). It raises ValueError
with what it expected; whoever reads a file turns that into a fault with its line. No unit is ever assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

# A month is 30 days of 24 h, as clouds sell it; storage prices go by their own month_hours.
_SECONDS = {
    "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400,
    "w": 604800, "week": 604800, "month": 2592000, "year": 31536000,
}  # fmt: skip
_BYTES = {"B": 1} | {
    prefix + unit: base ** (power + 1)
    for unit, base, prefixes in (("iB", 1024, "KMGTP"), ("B", 1000, "KMGTP"))
    for power, prefix in enumerate(prefixes)
}
_WATTS = {"W": 1, "kW": 1000, "MW": 1000000}
_BYTES_PER_SECOND = {f"{unit}/s": Fraction(size) for unit, size in _BYTES.items()} | {
    f"{prefix}bit/s": Fraction(1000**power, 8) for power, prefix in enumerate(("", "K", "M", "G", "T"))
}
_UNITS: Mapping[str, Mapping[str, int | Fraction]] = {
    "duration": _SECONDS | {name + "s": size for name, size in _SECONDS.items() if len(name) > 2},
    "size": _BYTES,
    "power": _WATTS,
    "bandwidth": _BYTES_PER_SECOND,
}
_QUANTITY = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z][A-Za-z/]*)\s*")
_SHARE = re.compile(r"\s*(\d+)\s*/\s*([1-9]\d*)\s*|\s*(\d+(?:\.\d+)?)\s*")


def parse_duration(value: object) -> timedelta:
    """Return the length of time of "6 min", "2 h", "10 d" or "1 month" (30 days)."""
    if isinstance(value, timedelta):
        return value
    return timedelta(microseconds=int(_quantity(value, "duration", "6 min") * 1_000_000))


def parse_size(value: object) -> int:
    """Return the bytes of "64 GiB" (binary) or "64 GB" (decimal)."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    size = _quantity(value, "size", "64 GiB")
    if size.denominator != 1:
        raise ValueError(f"a whole number of bytes, not {value!r}")
    return int(size)


def parse_power(value: object) -> Decimal:
    """Return the watts of "3.2 kW"."""
    if isinstance(value, Decimal):
        return value
    watts = _quantity(value, "power", "3.2 kW")
    return Decimal(watts.numerator) / Decimal(watts.denominator)


def parse_bandwidth(value: object) -> int:
    """Return the bytes per second of "10 Gbit/s" or "200 MB/s"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(_quantity(value, "bandwidth", "10 Gbit/s"))


def parse_share(value: object) -> Fraction:
    """Return the exact share of "1/7" or "0.25"."""
    if isinstance(value, Fraction):
        return value
    match = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a quoted share, such as "1/7"')
    return Fraction(value.strip().replace(" ", "")) if isinstance(value, str) else Fraction(0)


def duration_text(length: timedelta) -> str:
    """Return a length of time as people write it, in the largest unit that leaves a whole number."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + " s"


def _quantity(value: object, kind: str, example: str) -> Fraction:
    if not isinstance(value, str):
        raise ValueError(f'text with a unit, such as "{example}"')
    return _measured(value, kind, example)


@lru_cache(maxsize=4096)
def _measured(text: str, kind: str, example: str) -> Fraction:
    units = _UNITS[kind]
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f'a number and a unit, such as "{example}"')
    if match["unit"] not in units:
        known = ", ".join(unit for unit in units if unit == "s" or not unit.endswith("s") or "/" in unit)
        raise ValueError(f'a unit out of {known}, such as "{example}"')
    return Fraction(match["number"]) * units[match["unit"]]
