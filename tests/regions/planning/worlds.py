"""Catalogs and runs for planning tests, written as users write them and read by the real readers."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from regions.load import load
from regions.model import Catalog
from regions.planning.request import RunRequest, parse_run

MONDAY = datetime(2026, 11, 30, 0, 0, tzinfo=UTC)


def offer(price: str | None = "4.00", **changes: Any) -> dict[str, Any]:
    """Return an offer of one GPU; prices are per instance-hour."""
    market = {"price": price, "basis": "list", "source": "test"}
    return {
        "id": "gpu",
        "accelerator": "GPU",
        "count": 1,
        "quota": 64,
        "startup": "0 s",
        "billing": {"increment": "1 s", "minimum": "0 s"},
        "markets": {"on_demand": market},
    } | changes


def region(name: str, *offers: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a region file's data."""
    return {
        "id": name,
        "provider": "other",
        "timezone": "UTC",
        "currency": "USD",
        "residency": {"jurisdiction": "here", "export_allowed": True},
        "offers": list(offers) or [offer()],
        "storage": {"cold": {"url": f"file:///tmp/{name}"}},
    } | changes


def link(source: str, target: str, price: str = "0", bandwidth: str = "1 Gbit/s") -> dict[str, Any]:
    """Return a row of links.yaml."""
    row = {"price_per_gb": price, "currency": "USD", "bandwidth": bandwidth, "basis": "list", "source": "test"}
    return {"from": source, "to": target} | row


def catalog(
    *regions: Mapping[str, Any], links: tuple[Mapping[str, Any], ...] = (), rates: tuple[Mapping[str, Any], ...] = ()
) -> Catalog:
    """Return the catalog these files make."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in regions:
            (folder / f"{data['id']}.yaml").write_text(json.dumps(data))
        (folder / "links.yaml").write_text(json.dumps({"links": list(links)}))
        (folder / "fx.yaml").write_text(json.dumps({"rates": list(rates)}))
        return load(folder)


def run(**changes: Any) -> RunRequest:
    """Return a request of one stage: 5 hours of one GPU's work, from home `a`, within a day."""
    stage = {
        "id": "train",
        "kind": "pretrain",
        "command": ["true"],
        "work": {"amount": 500, "unit": "steps"},
        "accelerators": {"GPU": {"rate": 100}},
    } | changes.pop("stage", {})
    data = {"id": "test", "within": "24 h", "margin": "0 s", "stages": [stage], "regions": {"home": "a"}} | changes
    return parse_run(json.dumps(data), "test.yaml")


def random_world(seed: int) -> tuple[Catalog, RunRequest]:
    """Return a catalog of 2-4 regions with night tariffs and a run of 1-2 stages that may or may not fit."""
    rng = random.Random(seed)
    names = "abcd"[: rng.randint(2, 4)]
    zones = ["Asia/Shanghai", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata"]
    made = [
        region(
            name,
            *(
                offer(f"{rng.uniform(1, 6):.3f}", id=f"g{i}", startup=f"{rng.choice([0, 120, 600])} s", quota=4)
                for i in range(rng.randint(1, 2))
            ),
            timezone=zones[index],
            residency={"jurisdiction": rng.choice(["here", "there"]), "export_allowed": rng.random() < 0.8},
            tariff={
                "windows": [
                    {"start": "22:00", "end": "08:00", "multiplier": f"{rng.uniform(0.2, 1):.2f}", "basis": "claim"}
                ]
            },
        )
        for index, name in enumerate(names)
    ]
    links = tuple(
        link(a, b, f"{rng.choice([0, 0.02, 0.1])}", rng.choice(["1 Gbit/s", "10 Gbit/s"]))
        for a in names
        for b in names
        if a != b and rng.random() < 0.9
    )
    stages = [
        {
            "id": f"s{i}",
            "kind": "pretrain",
            "command": ["true"],
            "inputs": {"data": "dataset"} if rng.random() < 0.7 else {},
            "work": {"amount": rng.randint(50, 1200)},
            "accelerators": {"GPU": {"rate": rng.choice([60, 100])}},
        }
        for i in range(rng.randint(1, 2))
    ]
    request = run(
        stages=stages,
        within=f"{rng.randint(12, 40)} h",
        dataset={"url": "file:///data", "size": f"{rng.randint(1, 400)} GB", "may_leave": rng.choice([[], ["here"]])},
        checkpoint={"size": f"{rng.randint(0, 60)} GB", "every": "15 min"},
    )
    return catalog(*made, links=links), request
