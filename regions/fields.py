"""The kinds of field that files of the catalog share: quoted decimals, times of day, durations, sizes, dates, choices.

A validator here raises ValueError("<what was expected> | <what to do>"): the two halves become a fault's columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.functional_validators import AfterValidator

from regions.documents import nearest
from regions.units import parse_bandwidth, parse_duration, parse_power, parse_share, parse_size
from regions.zones import zone_names

_DECIMAL = re.compile(r"[-+]?(\d+(\.\d+)?|\.\d+)")
_TIME = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?")
_MONTHS = range(1, 13)
DAY = 86400
"""Seconds of a day as a clock on the wall counts them."""

BASES = ("list", "quote", "contract", "observed", "derived", "recalled", "estimate", "claim")
Basis = Literal["list", "quote", "contract", "observed", "derived", "recalled", "estimate", "claim"]
"""How well a price is known, best first; savings are reported by it."""

WEAK_BASES = frozenset({"recalled", "estimate", "claim"})
"""Bases on which a saving is not a promise: plans and reports warn where it rests on one."""


def quoted_decimal(value: object) -> object:
    """Return the exact decimal of quoted text; a bare number may already have lost digits to a YAML reader."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int | float):
        raise ValueError(f'a quoted decimal | quote it: "{value}"')
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value.strip()):
        raise ValueError('a quoted decimal, such as "277.933" | digits and one point, no separators')
    return Decimal(value.strip())


def time_of_day(value: object) -> object:
    """Return the seconds after local midnight of "22:00" or "24:00"."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= DAY:
        raise ValueError(f'a quoted time, such as "22:00" | YAML may read an unquoted time as {value}')
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError('a quoted time of day, "00:00" to "24:00"')
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0)
    if seconds > DAY:
        raise ValueError('a quoted time of day, "00:00" to "24:00"')
    return seconds


def _before_midnight(seconds: int) -> int:
    if seconds >= DAY:
        raise ValueError('a start before "24:00" | a window that starts at midnight starts at "00:00"')
    return seconds


def iso_date(value: object) -> object:
    """Return the date of "2026-11-30"."""
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value) if isinstance(value, str) else date.fromisoformat("")
    except ValueError:
        raise ValueError("a date, such as 2026-11-30") from None


def one_or_many(value: object) -> object:
    """Let a single text stand for a list of one."""
    return [value] if isinstance(value, str) else value


def _schema(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


_UNIT = r"^\s*\d+(\.\d+)?\s*[A-Za-z][A-Za-z/]*\s*$"

Count = Annotated[int, Field(strict=True, ge=0)]
Flag = Annotated[bool, Field(strict=True)]
Month = Annotated[int, Field(strict=True, ge=1, le=12)]
Amount = Annotated[
    Decimal, BeforeValidator(quoted_decimal), Field(ge=0), _schema(r"^\+?(\d+(\.\d+)?|\.\d+)$", "277.933")
]
"""A decimal of at least 0, written in quotes."""
Share = Annotated[
    Fraction, BeforeValidator(parse_share), Field(gt=0, le=1), _schema(r"^\d+(\s*/\s*\d+|\.\d+)?$", "1/7")
]
Ratio = Annotated[
    Decimal, BeforeValidator(quoted_decimal), Field(ge=0, le=1), _schema(r"^(0?\.\d+|[01](\.0*)?)$", "0.8")
]
"""A quoted decimal from 0 to 1."""
TimeOfDay = Annotated[
    int, BeforeValidator(time_of_day), _schema(r"^(([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d)?|24:00)$", "22:00")
]
"""Seconds after midnight on the wall; 86,400 is "24:00"."""
StartOfDay = Annotated[TimeOfDay, AfterValidator(_before_midnight)]
"""A time at which a window can start: "24:00" is the next day's "00:00"."""
Duration = Annotated[timedelta, BeforeValidator(parse_duration), _schema(_UNIT, "6 min")]
Size = Annotated[int, BeforeValidator(parse_size), Field(ge=0), _schema(_UNIT, "64 GiB")]
"""Bytes."""
Power = Annotated[Decimal, BeforeValidator(parse_power), _schema(_UNIT, "3.2 kW")]
"""Watts."""
Bandwidth = Annotated[int, BeforeValidator(parse_bandwidth), Field(gt=0), _schema(_UNIT, "10 Gbit/s")]
"""Bytes per second."""
Day = Annotated[date, BeforeValidator(iso_date), WithJsonSchema({"type": "string", "format": "date"})]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Names = Annotated[tuple[str, ...], BeforeValidator(one_or_many)]


class Section(BaseModel):
    """A mapping in a file of the catalog: frozen, unknown keys refused, free text welcome under `notes`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, arbitrary_types_allowed=True, use_attribute_docstrings=True
    )

    notes: str | None = None


class Sourced(Section):
    """A section whose `basis`, `source` and `as_of` hold for every price below it that does not bring its own."""

    basis: Basis | None = None
    source: str | None = None
    as_of: Day | None = None


_FACTS = ("basis", "source", "as_of", "currency")
_STAND_INS = {"basis": BASES[0], "source": "", "as_of": "2000-01-01", "currency": "XXX"}
_SOUND: dict[str, Callable[[str], object]] = {
    "basis": BASES.__contains__,
    "as_of": re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])").fullmatch,
    "currency": re.compile(r"[A-Z]{3}").fullmatch,
}
_MARKETS = frozenset({"on_demand", "spot"})
_PRICES = frozenset(
    {
        "price", "price_per_month", "price_per_kwh", "price_per_gb_month", "price_per_gb",
        "retrieval_per_gb", "put_per_10k", "get_per_10k",
    }
)  # fmt: skip


def inherited(node: Any, facts: dict[str, Any]) -> Any:
    """Return raw file data in which every price is a mapping that carries the facts of the sections around it."""
    if isinstance(node, list):
        return [inherited(item, facts) for item in node]
    if not isinstance(node, dict):
        return node
    own = facts | {name: node[name] for name in _FACTS if node.get(name) is not None}
    own = {name: _sound(name, value) for name, value in own.items()}
    below = {key: _below(key, value, own) for key, value in node.items()}
    if "multiplier" in node:
        below = {name: own[name] for name in _FACTS[:3] if name in own} | below
    return below


def _below(key: str, value: Any, facts: dict[str, Any]) -> Any:
    if key in _PRICES:
        return _priced(value, facts)
    if key in _MARKETS and isinstance(value, str | int | float):
        return {"price": _priced(value, facts)} if value != "" else None
    return inherited(value, facts)


def _sound(name: str, value: Any) -> Any:
    """Return a fact as it flows down: one that is wrong is reported where it stands, not at every price below it."""
    wrong = not isinstance(value, str) or (name in _SOUND and not _SOUND[name](value))
    return _STAND_INS[name] if wrong else value


def _priced(value: Any, facts: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return None if value.get("price", 0) in (None, "") else facts | value
    if value == "":
        return None
    return facts | {"price": value} if value is not None else None


def known_zone(value: str) -> str:
    """Return the zone if the tz database knows it, else refuse it with the nearest name."""
    names = zone_names()
    if value in names:
        return value
    near = nearest(value, sorted(names)) or nearest(value, sorted(name.rpartition("/")[2] for name in names))
    hint = f"did you mean {near}?" if near else "abbreviations and offsets such as CST or +08:00 are not zones"
    raise ValueError(f"an IANA time zone, such as Asia/Shanghai | {hint}")


Zone = Annotated[str, AfterValidator(known_zone)]
