"""Seeded worlds to measure on: regions round the globe with night tariffs, and runs of many shapes."""

from __future__ import annotations

import json
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from regions.load import load
from regions.model import Catalog
from regions.planning.request import RunRequest, parse_run

START = datetime(2026, 11, 30, tzinfo=UTC)
ZONES = (
    "America/Los_Angeles", "America/Chicago", "America/New_York", "America/Sao_Paulo", "Europe/London", "Europe/Berlin",
    "Africa/Johannesburg", "Asia/Dubai", "Asia/Kolkata", "Asia/Singapore", "Asia/Shanghai", "Asia/Tokyo",
    "Australia/Sydney", "Europe/Madrid", "Europe/Stockholm", "America/Toronto", "Asia/Seoul", "Asia/Jakarta",
    "Europe/Paris", "America/Mexico_City",
)  # fmt: skip


def catalog(regions: int, kinds: int, seed: int, quota: int = 40) -> Catalog:
    """Return a catalog of `regions` regions that each sell `kinds` accelerators at half price by night."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index in range(regions):
            offers = [_offer(f"X{kind}", rng.uniform(2, 8) / (1 + kind), quota) for kind in range(kinds)]
            night = {"name": "night", "start": "23:00", "end": "07:00", "multiplier": "0.5", "basis": "contract"}
            data = {
                "id": f"r{index:02}", "provider": "other", "timezone": ZONES[index], "currency": "USD",
                "residency": {"jurisdiction": "one", "export_allowed": True}, "tariff": {"windows": [night]},
                "offers": offers, "storage": {"cold": {"url": "file:///tmp/x"}},
            }  # fmt: skip
            (folder / f"r{index:02}.yaml").write_text(json.dumps(data))
        link = {"price_per_gb": "0.02", "currency": "USD", "bandwidth": "5 Gbit/s", "basis": "list"}
        (folder / "links.yaml").write_text(json.dumps({"default": [link]}))
        return load(folder)


def _offer(accelerator: str, price: float, quota: int) -> dict[str, object]:
    market = {"price": f"{price:.3f}", "basis": "list", "source": "generated"}
    return {
        "id": accelerator.lower(), "accelerator": accelerator, "count": 1, "quota": quota, "startup": "10 min",
        "billing": {"minimum": "60 s"}, "markets": {"on_demand": market},
    }  # fmt: skip


def run(name: str, hours: float, days: float, kinds: int, dataset: str = "0 B", width: int = 1) -> RunRequest:
    """Return a run of so many hours on the fastest accelerator, from home r00."""
    data = {
        "id": name, "within": f"{days:.3f} d", "regions": {"home": "r00"},
        "dataset": {"url": "file:///x", "size": dataset, "may_leave": ["one"]},
        "checkpoint": {"size": "50 GB", "every": "15 min"},
        "stages": [{
            "id": "train", "kind": "pretrain", "command": ["true"], "inputs": {"data": "dataset"},
            "work": {"amount": round(hours * 100 * width)}, "width": {"min": width, "max": width},
            "accelerators": {f"X{kind}": {"rate": 100 / (1 + kind)} for kind in range(kinds)},
        }],
    }  # fmt: skip
    return parse_run(json.dumps(data), name)


def runs(count: int, seed: int) -> list[RunRequest]:
    """Return runs of 2 to 48 hours, 1 to 8 wide, with 1.5 to 4 times the time they need."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        hours = min(48.0, max(2.0, rng.lognormvariate(2.3, 0.8)))
        made.append(
            run(f"run-{number:03}", hours, hours * rng.uniform(1.5, 4) / 24 + 0.2, 1, width=rng.choice([1, 2, 4, 8]))
        )
    return made
