"""What a price is, and by what rules it changes over wall-clock time: windows, tariffs, holidays, electricity."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from regions.documents import nearest
from regions.fields import (
    DAY,
    Amount,
    Basis,
    Currency,
    Day,
    Flag,
    Month,
    Section,
    Sourced,
    StartOfDay,
    TimeOfDay,
    one_or_many,
)
from regions.money import Money
from regions.series import Series

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_CLASSES = ("all", "workday", "weekend", "holiday", *WEEKDAYS)
_NAMED = re.compile(r"holiday:(?P<name>[a-z0-9_]+)(?:\[(?P<first>[1-9]\d?)(?:-(?P<last>[1-9]\d?))?\])?")


class Price(Section):
    """An amount with what is known about it. Absent is not zero; "0" is free and is shown as free."""

    amount: Amount = Field(alias="price")
    currency: Currency
    basis: Basis = "estimate"
    source: str = "not stated"
    as_of: Day | None = None

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, data: Any) -> Any:
        if isinstance(data, int | float):
            raise ValueError(f'a quoted decimal | quote it: "{data}"')
        return data

    @property
    def money(self) -> Money:
        """The amount as money."""
        return Money(self.amount, self.currency)

    @property
    def free(self) -> bool:
        """Whether the price is an explicit nothing."""
        return self.amount == 0


def _day_class(value: str) -> str:
    named = _NAMED.fullmatch(value)
    if value in DAY_CLASSES or (named and int(named["last"] or 99) >= int(named["first"] or 0)):
        return value
    near = nearest(value, DAY_CLASSES)
    hint = f"did you mean {near}?" if near else "a part of a holiday is written holiday:national_day[1-3]"
    raise ValueError(f"one of {', '.join(DAY_CLASSES)} or holiday:<name> | {hint}")


Days = Annotated[
    tuple[Annotated[str, AfterValidator(_day_class)], ...], BeforeValidator(one_or_many), Field(min_length=1)
]


class Window(Sourced):
    """A price rule over wall-clock time [start, end); it belongs to the day on which it starts."""

    name: str = ""
    days: Days = ("all",)
    """all, workday, weekend, holiday, mon..sun, holiday:<name>, holiday:<name>[1-3]; any of them is enough."""
    months: tuple[Month, ...] | None = None
    """1 to 12; null is all year."""
    start: StartOfDay
    end: TimeOfDay
    """ "24:00" is midnight at the day's end; an end at or before the start lies on the next day."""
    multiplier: Amount
    """What the price is multiplied by while the window matches."""

    @model_validator(mode="after")
    def _named(self) -> Window:
        if not self.name:
            self.__dict__["name"] = f"{_clock(self.start)}-{_clock(self.end)}"
        return self

    @property
    def length(self) -> int:
        """Seconds from start to end on the wall; the same time twice is the whole day."""
        return (self.end - self.start - 1) % DAY + 1


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds % 3600 // 60:02}"


class Tariff(Sourced):
    """Windows in order: the first that matches an instant sets the multiplier; where none does it is 1."""

    anchor: Literal["local", "utc"] = "local"
    """utc: the windows' clock and calendar are UTC all year, whatever the region's zone does."""
    windows: tuple[Window, ...] = ()


class Holidays(Section):
    """Which days are off, and which weekend days are worked to make up for them."""

    country: Annotated[str, Field(pattern=r"^[A-Z]{2,3}$")] | None = None
    """ISO 3166 code, quoted (NO is Norway)."""
    subdivision: str | None = None
    makeup_workdays: Flag = True
    """Whether days worked at weekends to make up for holidays count as workdays, in countries that move days so
    (China). Years whose list is not published are then unknown, not guessed."""
    extra_holidays: tuple[Day, ...] = ()
    extra_workdays: tuple[Day, ...] = ()


class Electricity(Sourced):
    """What power costs; counted only where `billing: owned`."""

    billing: Literal["included", "owned"] = "included"
    currency: Currency | None = None
    price_per_kwh: Price | None = None
    pue: Amount = Decimal("1.3")
    """Power drawn at the meter per power used by machines."""
    anchor: Literal["local", "utc"] = "local"
    windows: tuple[Window, ...] = ()
    """As in the tariff; the multiplier is on price_per_kwh."""
    series: str | None = None
    """A file of (instant UTC, price per kWh), such as day-ahead prices; wins over the windows in its span."""
    _series: Series | None = PrivateAttr(default=None)

    @property
    def prices(self) -> Series | None:
        """The series file's contents, once loaded."""
        return self._series

    def attach(self, series: Series) -> None:
        """Put the contents of the series file in place; only `load` does this, before anyone else has the value."""
        self._series = series
