"""Whose day is it: workdays, weekends, holidays, make-up days, and years nobody has published."""

from __future__ import annotations

from datetime import date

import pytest

from regions.days import calendar_fault, day_selectors, holiday_names, kinds, unknown_years
from regions.model import Holidays

CHINA = Holidays(country="CN")


def only(rules: Holidays, day: str) -> set[str]:
    [kind] = kinds(rules, date.fromisoformat(day))
    return set(kind)


@pytest.mark.parametrize(
    ("day", "is_a"),
    [
        ("2026-02-14", "workday"),  # a Saturday worked for the Spring Festival
        ("2026-10-10", "workday"),
        ("2026-09-20", "workday"),  # a Sunday
        ("2026-10-05", "holiday"),
        ("2026-10-07", "holiday"),  # a day off because 10-10 is worked
        ("2026-10-04", "weekend"),  # a Sunday inside the break, in no list
        ("2026-10-09", "workday"),
        ("2026-10-11", "weekend"),
    ],
)
def test_chinese_make_up_days(day: str, is_a: str) -> None:
    assert {"workday", "weekend", "holiday"} & only(CHINA, day) == {is_a}
    assert only(Holidays(), "2026-02-14") == {"all", "sat", "weekend"}, "without a country a Saturday is a Saturday"


def test_make_up_days_can_be_switched_off() -> None:
    plain = Holidays(country="CN", makeup_workdays=False)
    assert "weekend" in only(plain, "2026-02-14")
    assert unknown_years(plain, 2026, 2030) == ()


def test_a_named_holiday_is_the_whole_break_and_its_days_are_numbered() -> None:
    week = [only(CHINA, f"2026-10-{day:02}") for day in range(1, 9)]
    assert ["holiday:national_day" in kind for kind in week] == [True] * 7 + [False]
    for number, kind in enumerate(week[:7], start=1):
        assert f"holiday:national_day#{number}" in kind
    may = [only(CHINA, f"2026-05-{day:02}") for day in range(1, 6)]
    assert all("holiday:labour_day" in kind and "holiday:labor_day" in kind for kind in may), "spelt either way"
    assert "weekend" in may[2], "the third day is a Sunday, in no list, yet the third day of the holiday"


def test_elsewhere_only_the_days_that_bear_the_name() -> None:
    germany = Holidays(country="DE", subdivision="HE")
    assert "holiday:christmas_day" in only(germany, "2026-12-25")
    assert "holiday:christmas_day" not in only(germany, "2026-12-26")
    assert "holiday:christmas_day#2" in only(germany, "2026-12-26"), "asked for by number, the days off in a row count"
    assert "holiday" in only(germany, "2026-06-04"), "Corpus Christi is a holiday in Hesse"
    assert "workday" in only(Holidays(country="DE", subdivision="BE"), "2026-06-04"), "and none in Berlin"


def test_an_unpublished_year_is_unknown_not_guessed() -> None:
    assert unknown_years(CHINA, 2025, 2028) == (2027, 2028)
    assert set(kinds(CHINA, date(2027, 3, 3))) == {
        frozenset({"all", "wed", "workday"}), frozenset({"all", "wed", "holiday"}),
    }  # fmt: skip
    assert {"workday" in way for way in kinds(CHINA, date(2027, 3, 6))} == {True, False}, "a Saturday may be worked"
    assert only(CHINA, "2027-10-01") >= {"holiday", "holiday:national_day#1"}, "what the law names is certain"
    assert len(kinds(CHINA, date(2027, 10, 4))) == 2, "the library's guess of a day in lieu is not taken"


def test_a_year_the_file_publishes_is_known() -> None:
    told = Holidays(country="CN", extra_workdays=(date(2027, 2, 20),), extra_holidays=(date(2027, 2, 10),))
    assert unknown_years(told, 2026, 2028) == (2028,)
    assert "workday" in only(told, "2027-02-20")
    assert "holiday" in only(told, "2027-02-10")
    assert "workday" in only(told, "2027-03-03")


def test_extra_days_hold_without_a_country() -> None:
    rules = Holidays(extra_holidays=(date(2026, 12, 2),), extra_workdays=(date(2026, 12, 5),))
    assert "holiday" in only(rules, "2026-12-02")
    assert "workday" in only(rules, "2026-12-05")


def test_ranges_are_written_out() -> None:
    assert day_selectors(("mon", "holiday:x[2-3]", "holiday:y[1]", "holiday:z")) == {
        "mon", "holiday:x#2", "holiday:x#3", "holiday:y#1", "holiday:z",
    }  # fmt: skip


def test_countries_and_names_are_known() -> None:
    assert calendar_fault("CN", None) is None
    assert calendar_fault("US", "CA") is None
    assert calendar_fault("ZZ", None) is not None
    assert {"national_day", "labour_day", "spring_festival", "mid_autumn_festival"} <= holiday_names("CN", None)
    assert "thanksgiving_day" in holiday_names("US", None)


def test_norway_is_a_country() -> None:
    assert calendar_fault("NO", None) is None
    assert "holiday" in only(Holidays(country="NO"), "2026-05-17")
