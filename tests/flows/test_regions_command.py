"""`nightrelay regions`: what it prints, draws and answers."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from flows.commands.regions import app
from regions.errors import InputError, NotFoundError
from tests.regions.files import text, write

NIGHT = '{name: night, start: "22:00", end: "08:00", multiplier: "0.5"}'
SPAN = ["--from", "2026-12-01T00:00Z", "--to", "2026-12-02T00:00Z"]


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), env={"NIGHTRELAY_CLOCK": "2026-12-01T12:00Z x 1"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parts = '    fractions: [{method: mig, profile: 1g.10gb, share: "1/4"}]'
    return write(
        tmp_path / "catalog",
        here=text(zone="Asia/Shanghai", windows=NIGHT, count=2, offer=parts),
        there=text("there", zone="America/Los_Angeles", windows=NIGHT),
        plain=text("plain", market="null"),
    )


def test_the_curve_has_the_shape_the_contract_lays_down(folder: Path) -> None:
    result = invoke("prices", "here", "--offer", "gpu", *SPAN, "--catalog", str(folder), "--json")
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert rows[0] == {
        "start": "2026-12-01T00:00:00+00:00",
        "end": "2026-12-01T14:00:00+00:00",
        "price": "3",
        "unit": "instance-hour",
        "per_accelerator": "1.5",
        "currency": "USD",
        "window": None,
        "basis": "list",
    }
    assert [(row["window"], row["price"]) for row in rows] == [(None, "3"), ("night", "1.5")]
    assert [row["end"] for row in rows[:-1]] == [row["start"] for row in rows[1:]]


def test_a_fraction_and_the_table(folder: Path) -> None:
    arguments = ("prices", "here", "--offer", "gpu", *SPAN, "--catalog", str(folder), "--fraction", "1g.10gb")
    rows = json.loads(invoke(*arguments, "--json").stdout)
    assert [row["price"] for row in rows] == ["0.375", "0.1875"]
    assert "1g.10gb by mig" in invoke(*arguments).stdout
    with pytest.raises(NotFoundError, match=r"known: 1g\.10gb"):
        raise invoke(*arguments[:-1], "2g.20gb").exception


def test_all_regions_under_each_other_are_drawn_from_east_to_west(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The picture marks now, so that now must stand still.
    monkeypatch.setattr("regions.clock.SystemClock.now", lambda _: datetime(2026, 12, 1, 9, tzinfo=UTC))
    picture = tmp_path / "all.svg"
    result = invoke("prices", "all", *SPAN, "--catalog", str(folder), "--svg", str(picture), "--json")
    assert {row["region"] for row in json.loads(result.stdout)} == {"here", "there"}, "plain sells nothing"
    drawn = picture.read_text()
    ElementTree.fromstring(drawn)
    assert 0 < drawn.find("<!-- here") < drawn.find("<!-- there")
    for word in ("<!-- night -->", "<!--  now -->", "Asia/Shanghai"):
        assert word in drawn
    first = picture.read_bytes()
    invoke("prices", "all", *SPAN, "--catalog", str(folder), "--svg", str(picture))
    assert picture.read_bytes() == first, "the same values draw the same picture"
    invoke("prices", "all", *SPAN, "--catalog", str(folder), "--svg", str(tmp_path / "all.png"))
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("prices", "her", "--offer", "gpu"), "did you mean here"),
        (("prices", "here", "--offer", "tpu"), "known: gpu"),
        (("prices", "here", "--from", "2026-12-01"), "with its zone"),
        (("prices", "here", "--from", "noon"), "ISO 8601"),
        (("prices", "here", "--from", "2026-12-02T00:00Z", "--to", "2026-12-01T00:00Z"), "after --from"),
        (("prices", "here", "--from", "2026-12-02T00:00Z", "--to", "9999-12-01T00:00Z"), "1970 to 2200"),
        (("prices", "all", "--offer", "tpu"), "no region sells tpu"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    result = invoke(*arguments, "--catalog", str(folder))
    assert isinstance(result.exception, InputError | NotFoundError)
    assert words in str(result.exception)


def test_check_says_yes_with_the_digest_and_no_with_every_fault(folder: Path) -> None:
    result = invoke("check", str(folder), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"], document["faults"]) == (0, True, [])
    assert document["regions"] == ["here", "plain", "there"]
    write(folder, here=text(zone="Mars/Olympus", price="free"))
    result = invoke("check", str(folder), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["ok"]) == (1, False)
    assert {fault["field"] for fault in document["faults"]} == {"timezone", "offers[0].markets.on_demand.price"}
    assert set(document["faults"][0]) == {"file", "line", "field", "got", "expected", "hint"}
    assert "here.yaml:3: timezone" in invoke("check", str(folder)).stdout


def test_import_prints_offers(tmp_path: Path) -> None:
    file = tmp_path / "vms.csv"
    file.write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch\n"
        "g4dn.xlarge,T4,1.0,4.0,16.0,,0.526,0.2,us-east-1,a,x86_64\n"
    )
    arguments = ("import", "--from", "skypilot-csv", str(file), "--as-of", "2026-11-30")
    [offer] = json.loads(invoke(*arguments, "--json").stdout)["offers"]
    assert offer["markets"]["on_demand"] == {
        "price": "0.526", "basis": "list", "source": "skypilot-csv vms.csv", "as_of": "2026-11-30", "currency": "USD",
    }  # fmt: skip
    assert invoke(*arguments).stdout.startswith("offers:\n- id: t4\n")
    assert isinstance(invoke("import", str(tmp_path / "nothing.csv")).exception, NotFoundError)
    assert isinstance(invoke(*arguments[:-1], "soon").exception, InputError)


def test_the_real_command_answers_with_its_exit_codes(folder: Path) -> None:
    def code(*arguments: str) -> int:
        command = [sys.executable, "-m", "flows.cli", "regions", *arguments, "--catalog", str(folder), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        json.loads(done.stdout)
        assert "Traceback" not in done.stderr
        return done.returncode

    assert code("prices", "here") == 0
    assert code("prices", "plain") == 1
    assert code("prices", "nowhere") == 2


def test_fit_answers_by_price_per_unit_of_work() -> None:
    result = invoke("fit", "pretrain", "--parameters", "100000000", "--json", "--currency", "CNY")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["model"]) == (0, "small")
    assert {"region", "offer", "accelerator", "fraction", "price", "currency", "per_work"} == set(
        document["candidates"][0]
    )
    assert "offers are left out" in invoke("fit", "export").stdout
