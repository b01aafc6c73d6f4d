"""Folders of region files for tests: written as users write them, read by the real reader."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from regions.load import load
from regions.model import Catalog, Offer, Region

PLAIN = """\
id: {id}
provider: other
timezone: {zone}
currency: {currency}
residency: {{jurisdiction: here}}
{more}
offers:
  - id: gpu
    accelerator: GPU
    count: {count}
    quota: 4
    startup: 0 s
    billing: {{increment: 1 s, minimum: 0 s}}
{offer}
    markets:
      on_demand: {market}
{markets}
storage:
  cold: {{url: "file:///tmp/{id}"}}
"""


def text(
    id: str = "here",
    *,
    zone: str = "UTC",
    currency: str = "USD",
    price: str = '"3.00"',
    market: str | None = None,
    count: int = 1,
    windows: str = "",
    anchor: str = "local",
    holidays: str = "",
    more: str = "",
    offer: str = "",
    markets: str = "",
) -> str:
    """Return a region file with one offer `gpu`. `windows` are lines such as `{start: "22:00", ...}`."""
    lines = [line for line in windows.strip().splitlines() if line.strip()]
    if lines:
        more += f"\ntariff:\n  anchor: {anchor}\n  windows:\n" + "\n".join(f"    - {line.strip()}" for line in lines)
    if holidays:
        more += f"\nholidays: {holidays}"
    market = market or f"{{price: {price}, basis: list, source: test, as_of: 2026-11-30}}"
    return PLAIN.format(
        id=id, zone=zone, currency=currency, market=market, count=count, more=more, offer=offer, markets=markets
    )


def catalog(folder: Path, **files: str) -> Catalog:
    """Write files (`name=text`; an underscore stands for a dash) and load the folder."""
    write(folder, **files)
    return load(folder)


def write(folder: Path, **files: str) -> Path:
    """Write files (`name=text`; an underscore stands for a dash) into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name.replace('_', '-')}.yaml").write_text(content, encoding="utf-8")
    return folder


def region(folder: Path, **settings: str) -> tuple[Region, Offer]:
    """Return one region of these settings and its offer."""
    loaded = catalog(folder, here=text(**settings)).regions["here"]  # type: ignore[arg-type]
    return loaded, loaded.offers[0]


def at(instant: str) -> datetime:
    """Return an instant in UTC of ISO 8601 text with its zone."""
    return datetime.fromisoformat(instant).astimezone(UTC)
