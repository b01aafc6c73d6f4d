"""Regions of one offer at price 1, with windows drawn by chance: sensible ones and nasty ones."""

from __future__ import annotations

import random

from regions.model import Holidays, Offer, Region, Tariff, Window

DAYS = ["all", "workday", "weekend", "holiday", "mon", "tue", "wed", "thu", "fri", "sat", "sun"]
EDGES = ["00:00", "01:00", "01:30", "02:00", "02:30", "03:00", "12:00", "22:00", "23:59", "24:00"]


def place(zone: str, tariff: Tariff, holidays: Holidays) -> tuple[Region, Offer]:
    """Return a region whose price is its multiplier."""
    region = Region.model_validate(
        {
            "id": "here",
            "provider": "other",
            "timezone": zone,
            "currency": "USD",
            "residency": {"jurisdiction": "here"},
            "offers": [{"id": "gpu", "accelerator": "GPU", "markets": {"on_demand": {"price": "1"}}}],
            "storage": {"cold": {"url": "file:///tmp/here"}},
        }
    ).model_copy(update={"tariff": tariff, "holidays": holidays})
    return region, region.offers[0]


def random_tariff(chance: random.Random, *, seconds: bool = False) -> Tariff:
    """Return one to four windows; with `seconds`, edges are at any second of the day."""
    windows = tuple(_window(chance, number, seconds) for number in range(chance.randint(1, 4)))
    return Tariff(anchor=chance.choice(["local", "local", "utc"]), windows=windows)


def _window(chance: random.Random, number: int, seconds: bool) -> Window:
    months = None if chance.random() < 0.6 else tuple(sorted(chance.sample(range(1, 13), chance.randint(1, 11))))
    return Window(
        name=f"w{number}",
        days=tuple(chance.sample(DAYS, chance.randint(1, 3))),
        months=months,
        start=_time(chance, seconds, last=False),
        end=_time(chance, seconds, last=True),
        multiplier=f"0.{number + 1}",
    )


def _time(chance: random.Random, seconds: bool, *, last: bool) -> str:
    if chance.random() < 0.5:
        return chance.choice(EDGES if last else EDGES[:-1])
    text = f"{chance.randrange(24):02}:{chance.randrange(60):02}"
    return f"{text}:{chance.randrange(60):02}" if seconds else text
