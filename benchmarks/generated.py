"""A folder of generated region files, as large as people's files are: for measuring, with a fixed seed."""

from __future__ import annotations

import random
from pathlib import Path

from regions.zones import zone_names

_HEAD = """\
# yaml-language-server: $schema=../schemas/region.json
id: {name}
provider: {provider}
timezone: {zone}
currency: {currency}
status: active
residency: {{jurisdiction: {jurisdiction}, export_allowed: true}}
holidays: {{country: {country}, subdivision: null, makeup_workdays: true, extra_holidays: [], extra_workdays: []}}
tariff:
  anchor: local
  basis: claim
  source: generated
  as_of: 2026-11-30
  windows:
    - {{name: holiday, days: [holiday], start: "00:00", end: "24:00", multiplier: "0.5"}}
    - {{name: weekend, days: [weekend], start: "00:00", end: "24:00", multiplier: "0.6"}}
    - {{name: night, days: [all], start: "22:00", end: "08:00", multiplier: "0.4"}}
    - {{name: peak, days: [workday], months: [6, 7, 8], start: "14:00", end: "18:30", multiplier: "1.4"}}
electricity:
  billing: included
  price_per_kwh: {{price: "0.12", basis: estimate, source: generated, as_of: 2026-11-30}}
offers:
"""
_OFFER = """\
  - id: {accelerator}x{count}
    accelerator: {accelerator}
    count: {count}
    instance: type-{count}
    vcpus: {vcpus}
    memory: {memory} GiB
    accelerator_memory: 80 GiB
    power: {power} kW
    quota: {quota}
    billing: {{increment: 1 s, minimum: 60 s}}
    startup: 6 min
    markets:
      on_demand: {{price: "{price}", basis: list, source: generated, as_of: 2026-11-30}}
      spot: {{price: "{spot}", basis: observed, source: generated, as_of: 2026-11-30, interruption_per_hour: "0.02"}}
      reserved: {{price_per_month: "{month}", commitment: 1 month, basis: derived, source: generated}}
"""
_STORAGE = """\
storage:
  basis: list
  source: generated
  as_of: 2026-11-30
  hot: {{url: "file:///mnt/nvme/{name}", capacity: 3.5 TiB, price_per_gb_month: "0"}}
  warm: {{url: "file:///mnt/ssd/{name}", capacity: 20 TiB, price_per_gb_month: "1.0"}}
  cold:
    url: s3://bucket/{name}
    endpoint: {{public: "s3.{name}.example.com", internal: null}}
    classes:
      standard: {{storage_class: Standard, price_per_gb_month: "0.12", put_per_10k: "0.01", get_per_10k: "0.01"}}
      infrequent: {{storage_class: IA, price_per_gb_month: "0.08", minimum_days: 30, minimum_object: 64 KiB}}
    month_hours: 720
    gb: binary
sources: {{generated: made by benchmarks/generated.py}}
"""
_COUNTRIES = ["CN", "US", "DE", "JP", "SG", "IN", "IE", "GB", "FR", "BR"]


def write_regions(folder: Path, count: int = 400, offers: int = 3) -> Path:
    """Write `count` region files of `offers` offers each; the same every time."""
    chance = random.Random(400)
    zones = sorted(name for name in zone_names() if "/" in name)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        name = f"region-{number:04}"
        text = _HEAD.format(
            name=name,
            provider=chance.choice(["aws", "aliyun", "gcp", "other"]),
            zone=chance.choice(zones),
            currency=chance.choice(["USD", "CNY", "EUR"]),
            jurisdiction=chance.choice(["us", "eu", "cn"]),
            country=chance.choice(_COUNTRIES),
        )
        for index in range(offers):
            price = chance.randint(100, 90_000) / 1000
            text += _OFFER.format(
                accelerator=["A100-80GB", "H100", "T4", "L20"][index % 4],
                count=2**index,
                vcpus=16 * 2**index,
                memory=128 * 2**index,
                power=0.8 * 2**index,
                quota=chance.randint(1, 64),
                price=price,
                spot=round(price * 0.3, 4),
                month=round(price * 480, 2),
            )
        (folder / f"{name}.yaml").write_text(text + _STORAGE.format(name=name), encoding="utf-8")
    return folder
