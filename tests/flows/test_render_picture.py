"""The picture of a relay: the same values give the same bytes, and everything told is on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from matplotlib import rcParams
from matplotlib.figure import Figure
from matplotlib.text import Text

from flows.render.picture import Bar, Lane, Step, as_png, as_svg, draw_relay

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def hours(count: float) -> datetime:
    return T0 + timedelta(hours=count)


def lane(region: str, zone: str, night: tuple[float, float]) -> Lane:
    begin, end = night
    steps = [
        Step(T0, hours(begin), 20, None),
        Step(hours(begin), hours(end), 8, "night"),
        Step(hours(end), hours(30), 20, None),
    ]
    return Lane(region, zone, steps)


LANES = [lane("berlin", "Europe/Berlin", (9, 19)), lane("shanghai", "Asia/Shanghai", (2, 12))]
BARS = [Bar("leg 1", "shanghai", hours(2), hours(12)), Bar("leg 2", "berlin", hours(12.5), hours(13))]


def drawn(**more: object) -> Figure:
    return draw_relay("r-1: 2 legs, 99.00 CNY", LANES, BARS, "CNY", **more)  # type: ignore[arg-type]


def words(figure: Figure) -> list[str]:
    return [text.get_text().strip() for text in figure.findobj(Text)]  # type: ignore[attr-defined]


def test_the_same_values_give_the_same_svg() -> None:
    first = as_svg(drawn())
    assert first == as_svg(drawn())
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert rcParams["svg.hashsalt"] == "nightrelay"


def test_a_png_is_small_enough_for_a_page() -> None:
    png = as_png(drawn())
    assert png.startswith(b"\x89PNG") and len(png) < 300_000


def test_lanes_stand_in_the_order_in_which_they_are_used() -> None:
    titles = [axis.get_title("left") for axis in drawn().axes]
    assert titles == ["shanghai", "berlin"]


def test_legs_windows_and_local_hours_are_written_on_it() -> None:
    told = words(drawn(marks={"now": hours(3), "deadline": hours(29)}))
    assert {"leg 1", "leg 2", "night", "now", "deadline", "r-1: 2 legs, 99.00 CNY", "Asia/Shanghai"} <= set(told)
    assert told.count("22:00") >= 2, "each night begins at 22:00 on its region's own wall"


def test_a_leg_too_short_for_its_label_has_it_beside() -> None:
    figure = drawn()
    labels = {text.get_text().strip(): text for text in figure.findobj(Text)}  # type: ignore[attr-defined]
    assert labels["leg 1"].get_ha() == "center" and labels["leg 2"].get_ha() == "left"


def test_a_region_without_a_price_is_an_empty_lane() -> None:
    assert as_svg(draw_relay("r", [Lane("a", "UTC", [])], [], "CNY"))
