from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from regions.errors import InputError
from regions.importing import Imported, import_skypilot
from regions.yamltext import write_yaml
from tests.regions.files import catalog, text

HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,"
    "Price,SpotPrice,Region,AvailabilityZone,Arch\n"
)
GPU = (
    "\"{'Gpus': [{'Name': 'A100', 'Count': 8.0, 'MemoryInfo': {'SizeInMiB': 40960}}], 'TotalGpuMemoryInMiB': 327680}\""
)
ROWS = f"""\
p4d.24xlarge,A100,8.0,96.0,1152.0,{GPU},21.957642,2.4655,us-east-1,use1-az2,x86_64
p4d.24xlarge,A100,8.0,96.0,1152.0,{GPU},21.957642,8.1915,us-east-1,use1-az6,x86_64
p4d.24xlarge,A100,8.0,96.0,1152.0,{GPU},21.957642,21.957642,us-east-1,use1-az1,x86_64
g4dn.xlarge,T4,1.0,4.0,16.0,,0.526,,us-east-1,use1-az1,x86_64
g4dn.2xlarge,T4,1.0,8.0,32.0,,0.752,0.300,us-east-1,use1-az1,x86_64
p5.48xlarge,H100,8.0,192.0,2048.0,,700.0,700.0,us-east-1,use1-az1,x86_64
m7i.large,,,2.0,8.0,,0.1008,0.04,us-east-1,use1-az1,x86_64
,A100-80GB,8,,,,40.55,16.22,us-east-1,us-east-1-b,
g4dn.xlarge,T4,1.0,4.0,16.0,,0.658,0.27,eu-central-1,euc1-az1,x86_64
"""


def take(rows: str = ROWS, region: str = "us-east-1", **more: Any) -> Imported:
    return import_skypilot(HEADER + rows, "vms.csv", region=region, source="sky", as_of=date(2026, 11, 30), **more)


def test_rows_become_offers_that_a_region_file_takes(tmp_path: Path) -> None:
    taken = take()
    file = (
        text("here").split("offers:")[0] + write_yaml({"offers": list(taken.offers)}) + text().split("    markets:")[1]
    )
    file = file.split("\n      on_demand: {price")[0] + '\nstorage:\n  cold: {url: "file:///tmp/here"}\n'
    offers = {offer.id: offer for offer in catalog(tmp_path, here=file).regions["here"].offers}
    assert list(offers) == ["a100-40gb-x8", "g4dn.xlarge", "g4dn.2xlarge", "cpux2"]
    big, cpu = offers["a100-40gb-x8"], offers["cpux2"]
    assert (big.accelerator, big.units, big.vcpus, big.memory, big.accelerator_memory) == (
        "A100-40GB", 8, 96, 1152 * 2**30, 40 * 2**30,
    )  # fmt: skip
    assert (cpu.accelerator, cpu.units, cpu.vcpus) == ("CPU", 2, 2)
    assert big.markets.on_demand is not None
    assert big.markets.spot is not None
    price = big.markets.on_demand.price
    assert price is not None
    assert (str(price), price.source, str(price.as_of), price.basis) == (str(price), "sky", "2026-11-30", "list")
    assert str(price.money) == "21.957642 USD"


def test_a_spot_price_is_the_cheapest_zones_with_the_range_and_list_price_means_none() -> None:
    spot = take().offers[0]["markets"]["spot"]
    assert (spot["price"], spot["range"], spot["basis"]) == ("2.4655", ["2.4655", "8.1915"], "observed")
    assert spot["notes"] == "cheapest zone: use1-az2, of 2 that offer it"
    one_zone = take(zone="use1-az1").offers
    assert "spot" not in one_zone[0]["markets"], "equal to list is not offered"


def test_sentinels_and_empty_fields_are_not_offered() -> None:
    taken = take()
    assert "spot" not in taken.offers[1]["markets"]
    assert taken.passed_over == (
        "line 9: A100-80GB is priced without a machine", "line 7: p5.48xlarge has no price",
    )  # fmt: skip


def test_one_region_and_some_accelerators() -> None:
    assert [offer["markets"]["on_demand"]["price"] for offer in take(region="eu-central-1").offers] == ["0.658"]
    assert {offer["accelerator"] for offer in take(accelerators=["T4"]).offers} == {"T4"}


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="known regions: eu-central-1, us-east-1"):
        take(region="mars")
    with pytest.raises(InputError, match="missing: InstanceType"):
        import_skypilot("a,b\n", "f.csv", region="x", source="s", as_of=date(2026, 1, 1))
    with pytest.raises(InputError) as caught:
        take(ROWS.replace("0.526", "cheap").replace("0.752", "1/2"))
    assert [(fault.line, fault.got) for fault in caught.value.faults] == [(5, "g4dn.xlarge"), (6, "g4dn.2xlarge")]
