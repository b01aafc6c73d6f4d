"""One catalog, or one error with everything that is wrong in every file."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from regions.errors import Fault, NotFoundError, RegionFileError
from regions.load import inspect, load
from tests.regions.files import at, catalog, text, write

LINKS = "links:\n  - {from: one, to: two, price_per_gb: '0.1', currency: USD, bandwidth: 1 Gbit/s}\n"
FX = "rates:\n  - {from: USD, to: CNY, rate: '7.2', as_of: 2026-11-30, basis: list, source: bank}\n"
POLICY = (Path(__file__).parents[2] / "regions/catalog/policy.yaml").read_text()


def faults(folder: Path, **files: str) -> list[Fault]:
    found = inspect(write(folder, **files))[1]
    assert all(fault.file and fault.field and fault.got and fault.expected for fault in found)
    return list(found)


def one_fault(folder: Path, **files: str) -> Fault:
    [fault] = faults(folder, **files)
    return fault


def test_a_folder_becomes_one_frozen_catalog(tmp_path: Path) -> None:
    loaded = catalog(tmp_path, one=text("one"), two=text("two", currency="CNY"), links=LINKS, fx=FX)
    assert list(loaded.regions) == ["one", "two"]
    with pytest.raises(TypeError):
        loaded.regions["three"] = loaded.regions["one"]  # type: ignore[index]
    with pytest.raises(ValueError, match="frozen"):
        loaded.regions["one"].id = "two"
    assert loaded.fx.path("CNY", "USD")[0].rate == Decimal("7.2")
    with pytest.raises(NotFoundError, match="did you mean one"):
        loaded.region("onee")


def test_the_digest_is_the_files_and_nothing_else(tmp_path: Path) -> None:
    first = catalog(tmp_path / "a", one=text("one")).digest
    assert catalog(tmp_path / "b", one=text("one")).digest == first
    assert catalog(tmp_path / "b", one=text("one", price='"3.01"')).digest != first
    (tmp_path / "a" / "README.txt").write_text("not a region")
    assert load(tmp_path / "a").digest == first


def test_no_fault_hides_another(tmp_path: Path) -> None:
    broken = text("one", zone="Asia/Shangai", price="1.5", windows='{start: 22:00, end: "25:00", multiplier: "-1"}')
    wrong_days = '{days: [wekend, holiday:easter], start: "24:00", end: "08:00"}'
    found = faults(
        tmp_path,
        one=broken.replace("provider: other", "provider: alyun\nzone: x"),
        two=text("three", windows=wrong_days).replace("gpu", "g u"),
        four="a: [",
        five=text("five").replace("storage:", "storag:"),
        links=LINKS.replace("two", "onne").replace("from: one", "from: one, frm: x"),
        fx=FX.replace("'7.2'", "7.2"),
        policy=POLICY.replace("stale_after: 365 d", "stale_after: 365").replace('"0.80"', '"0.20"'),
    )
    places = {(fault.file, fault.field) for fault in found}
    assert places >= {
        ("one.yaml", "timezone"),
        ("one.yaml", "provider"),
        ("one.yaml", "zone"),
        ("one.yaml", "offers[0].markets.on_demand.price"),
        ("one.yaml", "tariff.windows[0].start"),
        ("one.yaml", "tariff.windows[0].end"),
        ("one.yaml", "tariff.windows[0].multiplier"),
        ("two.yaml", "id"),
        ("two.yaml", "tariff.windows[0].days[0]"),
        ("two.yaml", "tariff.windows[0].days[1]"),
        ("two.yaml", "tariff.windows[0].start"),
        ("two.yaml", "tariff.windows[0].multiplier"),
        ("two.yaml", "offers[0].id"),
        ("four.yaml", "(the file)"),
        ("five.yaml", "storage"),
        ("five.yaml", "storag"),
        ("links.yaml", "links[0].to"),
        ("links.yaml", "links[0].frm"),
        ("fx.yaml", "rates[0].rate"),
        ("policy.yaml", "stale_after"),
        ("policy.yaml", "elasticity"),
    }
    assert all(fault.line for fault in found), "each knows its line"
    with pytest.raises(RegionFileError) as caught:
        load(tmp_path)
    assert caught.value.faults == tuple(found)
    assert f"{len(found)} faults in 7 files" in caught.value.message


@pytest.mark.parametrize(
    ("change", "field", "hint"),
    [
        (("timezone: UTC", "timezone: Asia/Shangai"), "timezone", "did you mean Asia/Shanghai?"),
        (("timezone: UTC", "timezone: CST"), "timezone", ""),
        (("timezone: UTC", 'timezone: "+08:00"'), "timezone", "abbreviations and offsets"),
        (("provider: other", "provider: Aws"), "provider", "did you mean aws?"),
        (("currency: USD", "currency: usd"), "currency", ""),
        (("    count: 1", "    cuont: 1"), "offers[0].cuont", "did you mean count?"),
        (("startup: 0 s", "startup: 5"), "offers[0].startup", ""),
        (("quota: 4", "quota: -1"), "offers[0].quota", ""),
        (("quota: 4", 'quota: "4"'), "offers[0].quota", ""),
        (("increment: 1 s", "increment: 0 s"), "offers[0].billing.increment", ""),
        (('price: "3.00"', 'price: "-3.00"'), "offers[0].markets.on_demand.price", ""),
        (('price: "3.00"', "price: 3.00"), "offers[0].markets.on_demand.price", 'quote it: "3.0"'),
        (('price: "3.00"', 'price: "1_000"'), "offers[0].markets.on_demand.price", "no separators"),
        (('price: "3.00"', 'price: "3,5"'), "offers[0].markets.on_demand.price", "no separators"),
        (('price: "3.00"', 'price: "NaN"'), "offers[0].markets.on_demand.price", ""),
        (("basis: list", "basis: lst"), "offers[0].markets.on_demand.basis", "did you mean list?"),
        (("as_of: 2026-11-30", "as_of: 30.11.2026"), "offers[0].markets.on_demand.as_of", ""),
        (("jurisdiction: here", "jurisdiction: 5"), "residency.jurisdiction", 'quote it: "5"'),
    ],
)
def test_each_fault_names_its_field_and_what_to_do(
    tmp_path: Path, change: tuple[str, str], field: str, hint: str
) -> None:
    fault = one_fault(tmp_path, here=text().replace(*change))
    assert (fault.field, fault.file) == (field, "here.yaml")
    line = (tmp_path / "here.yaml").read_text().splitlines()[(fault.line or 0) - 1]
    assert change[1].split(":")[0].strip() in line
    assert hint in fault.hint


def test_ids_and_names(tmp_path: Path) -> None:
    twice = text("one").replace(
        "storage:", text("x").split("offers:")[1].split("storage:")[0].lstrip("\n") + "storage:"
    )
    assert one_fault(tmp_path / "a", one=twice).field == "offers[1].id"
    found = faults(tmp_path / "b", one=text("one"), two=text("one"))
    assert {fault.expected for fault in found} == {"an id of its own", '"two", as the file is called'}


def test_processors_are_counted_once(tmp_path: Path) -> None:
    cpu = text(count=3, offer="    vcpus: 4").replace("accelerator: GPU", "accelerator: CPU")
    assert "vcpus (4)" in one_fault(tmp_path, here=cpu).expected
    only = text(offer="    vcpus: 4").replace("accelerator: GPU", "accelerator: CPU").replace("    count: 1\n", "")
    assert catalog(tmp_path / "b", here=only).regions["here"].offers[0].units == 4


def test_owned_machines_need_power_and_one_currency(tmp_path: Path) -> None:
    owned = text(more='electricity: {billing: owned, price_per_kwh: "0.2", currency: EUR}')
    assert {fault.field for fault in faults(tmp_path, here=owned)} == {"electricity.currency", "offers[0].power"}
    free = text(more="electricity: {billing: owned}", offer="    power: 3 kW")
    assert one_fault(tmp_path, here=free).field == "electricity.price_per_kwh"


@pytest.mark.parametrize(
    ("holidays", "days", "field", "hint"),
    [
        ('{country: "XX"}', "all", "holidays.country", ""),
        ("{country: DE, subdivision: ZZ}", "all", "holidays.subdivision", ""),
        ("{country: CN}", "holiday:nationl_day", "tariff.windows[0].days[0]", "did you mean holiday:national_day?"),
        ("{country: null}", "holiday:national_day", "tariff.windows[0].days[0]", "name a country first"),
        ("{country: CN}", '"holiday:national_day[3-1]"', "tariff.windows[0].days[0]", "holiday:national_day[1-3]"),
    ],
)
def test_calendars_are_checked(tmp_path: Path, holidays: str, days: str, field: str, hint: str) -> None:
    wrong = text(holidays=holidays, windows=f'{{days: [{days}], start: "00:00", end: "00:00", multiplier: "0.5"}}')
    fault = one_fault(tmp_path, here=wrong)
    assert fault.field == field
    assert hint in fault.hint


def test_links_know_their_regions_and_their_order(tmp_path: Path) -> None:
    row = "{{from: {0}, to: {1}, price_per_gb: '{2}', currency: USD, bandwidth: 8 Mbit/s}}"
    rows = [row.format(*each) for each in (("one", "two", 1), ("one", "default", 2), ("default", "two", 3))]
    links = "default: {price_per_gb: '4', currency: USD, bandwidth: 1 MB/s}\ngb: binary\nlinks:\n"
    loaded = catalog(
        tmp_path,
        one=text("one"),
        two=text("two"),
        three=text("three"),
        links=links + "".join(f"  - {r}\n" for r in rows),
    )

    def price(source: str, target: str) -> str:
        link = loaded.link(source, target)
        assert link is not None
        assert link.price_per_gb is not None
        assert (link.bandwidth, link.gb_bytes) == (1_000_000, 2**30)
        return str(link.price_per_gb.amount)

    assert [price("one", "two"), price("one", "three"), price("three", "two"), price("two", "one")] == [*"1234"]
    assert catalog(tmp_path / "b", one=text("one")).link("one", "two") is None


def test_links_may_be_a_bare_list(tmp_path: Path) -> None:
    bare = "- {from: one, to: two, price_per_gb: '0.1', currency: USD, bandwidth: 1 Gbit/s}\n"
    assert catalog(tmp_path, one=text("one"), two=text("two"), links=bare).link("one", "two") is not None
    assert one_fault(tmp_path / "b", one=text("one"), links=bare).line == 1


def test_a_link_to_itself_and_a_pair_twice(tmp_path: Path) -> None:
    row = "  - {from: one, to: two, price_per_gb: '0.1', currency: USD}\n"
    found = faults(tmp_path, one=text("one"), two=text("two"), links="links:\n" + row * 2 + row.replace("two", "one"))
    assert [(fault.line, fault.expected) for fault in found] == [
        (3, "each pair once"),
        (4, "another region than `from`"),
    ]


def test_jurisdictions_are_those_of_the_policy(tmp_path: Path) -> None:
    assert one_fault(tmp_path, here=text(), policy=POLICY).field == "residency.jurisdiction"
    assert not faults(tmp_path / "b", here=text()), "with no policy file any name is accepted"


def test_prices_inherit_what_their_section_says(tmp_path: Path) -> None:
    storage = """storage:
  basis: quote
  source: letter
  currency: EUR
  hot: {url: "file:///hot", price_per_gb_month: "0", basis: contract}
  cold:
    url: file:///cold
    classes:
      standard: {price_per_gb_month: {price: "0.02", source: list, currency: USD}, put_per_10k: ""}
"""
    region = catalog(tmp_path, here=text(more="as_of: 2026-01-01").split("storage:")[0] + storage).regions["here"]
    assert region.storage.hot is not None
    hot, standard = region.storage.hot.price_per_gb_month, region.storage.cold.classes["standard"]
    cold = standard.price_per_gb_month
    assert hot is not None
    assert cold is not None
    assert (hot.amount, hot.basis, hot.source, hot.currency, hot.free) == (0, "contract", "letter", "EUR", True)
    assert (cold.amount, cold.basis, cold.source, cold.currency) == (Decimal("0.02"), "quote", "list", "USD")
    assert (str(cold.as_of), standard.put_per_10k) == ("2026-01-01", None)


def test_defaults_are_pinned(tmp_path: Path) -> None:
    least = """id: here
provider: aws
timezone: Asia/Shanghai
currency: CNY
residency: {jurisdiction: cn-mainland}
offers: [{id: a, accelerator: T4, markets: {on_demand: "1.5", spot: "0.5"}}]
storage: {cold: {url: oss://b/p, endpoint: oss-cn-hangzhou.aliyuncs.com}}
"""
    region = catalog(tmp_path, here=least).regions["here"]
    offer = region.offers[0]
    assert (region.status, region.tariff.anchor, region.tariff.windows, region.residency.export_allowed) == (
        "active", "local", (), False,
    )  # fmt: skip
    assert (region.electricity.billing, region.electricity.pue) == ("included", Decimal("1.3"))
    assert (offer.units, offer.quota, offer.startup, offer.fractions) == (1, 16, timedelta(minutes=6), ())
    assert (offer.billing.increment, offer.billing.minimum) == (timedelta(seconds=1), timedelta(seconds=60))
    assert (region.storage.cold.month_hours, region.storage.cold.gb) == (720, "decimal")
    assert region.storage.cold.endpoint is not None
    assert region.storage.cold.endpoint.public == "oss-cn-hangzhou.aliyuncs.com"
    assert offer.markets.on_demand is not None
    assert offer.markets.on_demand.price is not None
    assert (offer.markets.on_demand.price.basis, offer.markets.reserved) == ("estimate", None)


def test_series_files_are_checked_and_attached(tmp_path: Path) -> None:
    market = '{price: "3.00", series: spot.csv}'
    (tmp_path / "spot.csv").write_text("instant,price\n2026-12-01T00:00Z,1.5\n2026-12-01T06:00Z,2.5\n")
    loaded = catalog(tmp_path, here=text(market=market))
    sold = loaded.regions["here"].offers[0].markets.on_demand
    assert sold is not None
    assert sold.prices is not None
    assert (sold.prices.start, sold.prices.end) == (at("2026-12-01T00:00Z"), at("2026-12-01T12:00Z"))
    (tmp_path / "spot.csv").write_text("instant,price\n2026-12-01T00:00Z,1.6\n")
    assert load(tmp_path).digest != loaded.digest
    for name in ("nothing.csv", "../spot.csv", "/etc/hostname"):
        fault = one_fault(tmp_path, here=text(market=market.replace("spot.csv", name)))
        assert (fault.field, fault.expected) == (
            "offers[0].markets.on_demand.series", "a CSV or Parquet file beside the region file",
        )  # fmt: skip
    (tmp_path / "spot.csv").write_text("when,price\n2026-12-01T00:00Z,1.6\n")
    fault = one_fault(tmp_path, here=text(market=market))
    assert (fault.file, fault.line, fault.hint) == ("spot.csv", 1, "named by here.yaml")


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_no_folder_and_no_files(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RegionFileError, match="region files"):
        load(tmp_path / folder)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "here.yaml").write_bytes(b"\xff\xfe\x00")
    assert one_fault(tmp_path).got == "bytes that are not UTF-8"


def test_old_prices_drafts_lone_currencies_and_unknown_years_warn(tmp_path: Path) -> None:
    workdays = '{days: [workday], start: "09:00", end: "17:00", multiplier: "2", as_of: 2024-01-01}'
    write(
        tmp_path,
        one=text("one", windows=workdays, holidays="{country: CN}").replace("2026-11-30", "2025-01-01"),
        two=text("two", currency="CNY", more="status: draft"),
    )
    fields = [(w.file, w.field, w.hint) for w in load(tmp_path, now=at("2026-11-30T00:00Z")).warnings]
    assert ("one.yaml", "offers[0].markets.on_demand.price", "stale") in fields
    assert ("one.yaml", "tariff.windows[0]", "stale") in fields
    assert [field for name, field, _ in fields if name == "one.yaml"].count("holidays.country") == 1
    assert {field for name, field, _ in fields if name == "two.yaml"} == {"status", "currency"}
    assert not [w for w in load(tmp_path).warnings if w.hint == "stale"], "without a now, nothing is old"
