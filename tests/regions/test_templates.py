"""Which offers suit a stage: by memory, share and price per unit of work, never by a model's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from regions.load import SHIPPED, load
from regions.model import Catalog
from regions.templates import Choice, choose
from tests.regions.files import at, catalog, text

NOON = at("2026-12-01T04:00Z")  # noon in Shanghai


@pytest.fixture(scope="module")
def shipped() -> Catalog:
    return load(SHIPPED)


def order(choice: Choice) -> list[tuple[str, str]]:
    return [(each.region, each.offer) for each in choice.candidates]


def test_the_a10_beats_the_t4_in_hangzhou_and_prices_decide(shipped: Catalog) -> None:
    choice = choose(shipped, "pretrain", 10**8, "on_demand", NOON, "CNY")
    here = [offer for region, offer in order(choice) if region == "aliyun-cn-hangzhou"]
    assert here.index("a10") < here.index("t4"), "cheaper per hour and faster, whatever the names suggest"
    amounts = [each.per_work.amount for each in choice.candidates]
    assert amounts == sorted(amounts)
    assert choice.model == "small"


def test_a_large_model_needs_the_memory(shipped: Catalog) -> None:
    choice = choose(shipped, "pretrain", 10**10, "on_demand", NOON, "CNY")
    assert choice.model == "large"
    assert {each.accelerator for each in choice.candidates} <= {"A100-40GB", "A100-80GB", "L40S", "H100", "Ascend-910B"}
    reasons = {(each.region, each.offer): each.reason for each in choice.unsuited}
    assert "T4 is not among" in reasons["aliyun-cn-hangzhou", "t4"]
    assert "has no quota" in reasons["aws-us-east-1", "h100x8"]


def test_preprocessing_wants_processors(shipped: Catalog) -> None:
    choice = choose(shipped, "preprocess", None, "on_demand", NOON, "EUR")
    assert {each.accelerator for each in choice.candidates} == {"CPU"}


def test_tuning_may_take_the_smallest_fraction_that_is_enough(shipped: Catalog) -> None:
    choice = choose(shipped, "tune", 10**8, "on_demand", NOON, "CNY")
    halves = [each for each in choice.candidates if each.fraction is not None]
    assert [(each.region, str(each.fraction.share)) for each in halves if each.fraction] == [("ctyun-hangzhou7", "1/2")]
    assert str(halves[0].price) == "5.053 CNY", "the seller's own price, which is more than half"


def test_what_cannot_be_compared_is_left_out_by_name(tmp_path: Path) -> None:
    gpu = text("yen", currency="JPY").replace("accelerator: GPU", "accelerator: T4")
    loaded = catalog(tmp_path, yen=gpu, none=text("none", market="null").replace("accelerator: GPU", "accelerator: T4"))
    choice = choose(loaded, "pretrain", 1000, "on_demand", NOON, "USD")
    assert choice.candidates == ()
    assert [each.reason.split(" for ")[0].split(" between")[0] for each in choice.unsuited] == [
        "no price", "no dated rate",
    ]  # fmt: skip
