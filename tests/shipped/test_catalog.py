"""The catalog as shipped: sound, sourced, and with its schemas in step."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from regions.curves import NoPrice
from regions.documents import read_document
from regions.load import SHIPPED, load
from regions.model import BASES, Catalog
from regions.offers import UNKNOWN, price_curve
from regions.prices import Price
from regions.schema import FILES, FOLDER, schemas, text_of
from regions.warnings import priced

FILES_SHIPPED = sorted(SHIPPED.glob("*.yaml"))
NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(SHIPPED, now=NOW)


def kind(path: Path) -> str:
    return path.stem if path.stem in FILES else "region"


def test_it_loads_with_all_its_regions(catalog: Catalog) -> None:
    assert len(catalog.regions) == 14
    assert {"local-shanghai", "local-berlin", "local-los-angeles"} < set(catalog.regions)
    assert sum(region.provider == "aliyun" for region in catalog.regions.values()) == 6


@pytest.mark.parametrize("name", sorted(FILES))
def test_schemas_are_in_step_with_the_models(name: str) -> None:
    written = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert written == text_of(schemas()[name]), "run: python -m regions.schema"


@pytest.mark.parametrize("path", FILES_SHIPPED, ids=lambda path: path.stem)
def test_each_file_names_its_schema_and_agrees_with_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# yaml-language-server: $schema=../schemas/{kind(path)}.json"
    schema = json.loads((path.parent / f"../schemas/{kind(path)}.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(read_document(text, path.name).data)


@pytest.mark.parametrize(
    "wrong",
    ["price: 1.5", 'price: "1_000"', 'prise: "1"', 'price: "1", basis: guess', 'price: "1", as_of: never'],
)
def test_the_schema_refuses_what_the_reader_refuses(wrong: str) -> None:
    text = (SHIPPED / "local-berlin.yaml").read_text(encoding="utf-8")
    before = 'on_demand: {price: "3.00", basis: claim, source: demo, as_of: 2026-11-30}'
    assert before in text
    data = read_document(text.replace(before, f"on_demand: {{{wrong}}}"), "x").data
    validator = jsonschema.Draft202012Validator(schemas()["region"], format_checker=jsonschema.FormatChecker())
    assert not validator.is_valid(data)


def test_every_price_says_how_well_it_is_known_and_names_a_source_that_is_explained(catalog: Catalog) -> None:
    for region in catalog.regions.values():
        for path, price in priced(region):
            assert price.basis in BASES, (region.id, path)
            if isinstance(price, Price):
                assert price.source, (region.id, path)
                assert price.as_of is not None, (region.id, path)
            source = price.source or ""
            assert " " in source or source in region.sources, (region.id, path, source)
    for link in catalog.links:
        region, _, source = (link.source or "").partition("/")
        if source:
            assert source in catalog.regions[region].sources, link


def test_all_currencies_can_be_compared(catalog: Catalog) -> None:
    currencies = {region.currency for region in catalog.regions.values()} | {link.currency for link in catalog.links}
    for one in currencies:
        for other in currencies:
            catalog.fx.path(one, other)


def test_every_offer_has_a_price_at_every_instant_of_the_year(catalog: Catalog) -> None:
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    for region in catalog.regions.values():
        for offer in region.offers:
            curve = price_curve(region, offer, "on_demand", start, end)
            assert sum((span.end - span.start for span in curve), timedelta()) == end - start
            if region.timezone != "Asia/Shanghai":  # there, 2027 begins in the last hours of 2026
                assert not any(span.basis == UNKNOWN for span in curve)
            with pytest.raises(NoPrice):
                price_curve(region, offer, "reserved", start, end)


def test_the_demo_follows_the_night(catalog: Catalog) -> None:
    """At every hour of a day one of the three demo regions is in its night."""
    rates = {"local-shanghai": "CNY", "local-berlin": "EUR", "local-los-angeles": "USD"}
    start = datetime(2026, 12, 1, tzinfo=UTC)
    dark: set[int] = set()
    for name, currency in rates.items():
        region = catalog.regions[name]
        assert region.currency == currency
        for span in price_curve(region, region.offers[0], "on_demand", start, start + timedelta(days=1)):
            if span.window == "night":
                hours = int((span.end - span.start) / timedelta(hours=1))
                dark |= {(span.start + timedelta(hours=hour)).hour for hour in range(hours)}
    assert dark == set(range(24))


@pytest.mark.parametrize(
    ("region", "offer", "market", "price", "basis", "source"),
    [
        ("aliyun-cn-hangzhou", "a100x8", "on_demand", "277.933", "list", "ali-list"),
        ("aliyun-cn-hangzhou", "l20", "reserved", "6919.25", "quote", "ali-quote"),
        ("ctyun-hangzhou7", "a100-40gb", "on_demand", "21.31", "list", "ct"),
        ("aws-us-east-1", "a100-40gb-x8", "on_demand", "21.957642", "list", "sky"),
        ("aws-us-east-1", "h100x8", "spot", "19.25", "observed", "sky"),
        ("aliyun-eu-central-1", "a10x4", "spot", "26.113", "estimate", "ali-spot"),
    ],
)
def test_figures_taken_from_the_sources(
    catalog: Catalog, region: str, offer: str, market: str, price: str, basis: str, source: str
) -> None:
    found = catalog.regions[region].offer(offer)
    assert found is not None
    sold = getattr(found.markets, market)
    amount = sold.price_per_month if market == "reserved" else sold.price
    assert (str(amount.amount), amount.basis, amount.source) == (price, basis, source)


def test_a_years_terms_of_ctyun_and_the_break_even_of_alibaba(catalog: Catalog) -> None:
    ctyun = catalog.regions["ctyun-hangzhou7"].offer("t4")
    assert ctyun is not None
    assert ctyun.markets.reserved is not None
    assert [str(term.multiplier) for term in ctyun.markets.reserved.terms] == ["0.85", "0.7", "0.5"]
    hangzhou = catalog.regions["aliyun-cn-hangzhou"].offer("a10")
    assert hangzhou is not None
    assert hangzhou.markets.reserved is not None
    assert hangzhou.markets.on_demand is not None
    month, hour = hangzhou.markets.reserved.price_per_month, hangzhou.markets.on_demand.price
    assert month is not None
    assert hour is not None
    assert round(month.amount / hour.amount) == 480
