"""What a person sees while a run goes on: the frame in a terminal, the line where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from flows.render.live import PriceNow, Watched, frame, line, step_now, trail
from flows.rows import LegRow
from tests.flows.test_ledger import T0, a_leg, a_run

NIGHT = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)  # midnight in Shanghai, 17:00 in Berlin
ZONES = {"shanghai": "Asia/Shanghai", "berlin": "Europe/Berlin"}


def leg(number: int, region: str, state: str, **more: Any) -> LegRow:
    return replace(a_leg(region), number=number, state=state, **more)


def heartbeat(**facts: Any) -> dict[str, Any]:
    clocks = dict.fromkeys(("real", "at", "started_real", "started_at"), T0.isoformat())
    return {"number": 1, "phase": "train", "pid": 1, **clocks, **facts}


DONE = leg(1, "shanghai", "ended", outcome="handed_off", from_step=0, to_step=1200, heartbeat=heartbeat(step=1210))
TRAINS = leg(
    2, "berlin", "open",
    heartbeat=heartbeat(step=1300, loss=1.2345, samples_per_second=512.4, handed_bytes=3 << 20),
)  # fmt: skip
COMES = leg(3, "shanghai", "launched", heartbeat=heartbeat(phase="waiting", handed_bytes=1 << 20))


def watched(legs: Sequence[LegRow] = (), **more: Any) -> Watched:
    prices = {"shanghai": PriceNow(Decimal("9.6"), "CNY", "night"), "berlin": None}
    seen = Watched(
        run=a_run(), legs=legs, now=NIGHT, zones=ZONES, prices=prices, cost=Decimal("1.5"), accrued=Decimal("0.25"),
        currency="CNY", work=1700, ui="http://127.0.0.1:4200",
    )  # fmt: skip
    return replace(seen, **more)


def shown(seen: Watched, width: int = 120) -> list[str]:
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(frame(seen))
    return captured.get().splitlines()


def test_the_frame_shows_each_regions_hour_price_and_leg() -> None:
    lines = shown(watched([DONE, TRAINS]))
    shanghai = next(text for text in lines if text.startswith("│ shanghai"))
    berlin = next(text for text in lines if text.startswith("│ berlin"))
    assert shanghai.split()[1:] == [
        "shanghai",
        "Tue",
        "00:00",
        "9.60",
        "CNY/h",
        "night",
        "1",
        "handed",
        "off",
        "1,200",
        "│",
    ]
    assert berlin.split()[1:] == ["berlin", "Mon", "17:00", "-", "2", "training", "1,300", "1.234", "512", "│"]
    text = "\n".join(lines)
    assert "1,300 of 1,700 steps" in text
    assert "way: shanghai 1,200 > berlin ..." in text
    assert "handed over 3.0 MiB   money so far 1.75 CNY" in text
    assert "http://127.0.0.1:4200" in text and "run clock 2026-11-30 16:00Z" in text


def test_columns_stay_where_they_are_while_values_change() -> None:
    heads = {shown(watched(legs))[1] for legs in ([], [DONE], [DONE, TRAINS], [DONE, TRAINS, COMES])}
    assert len(heads) == 1


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_frame_keeps_to_the_terminals_width(width: int) -> None:
    assert {len(text) for text in shown(watched([DONE, TRAINS, COMES]), width)} == {width}


def test_before_the_first_leg_there_is_nothing_to_count() -> None:
    text = "\n".join(shown(watched()))
    assert "0 of 1,700 steps" in text and "way: no leg has begun" in text
    assert line(watched()).startswith("shanghai=00:00 berlin=17:00  running  handed over 0 B")


def test_a_line_names_the_regions_that_work_and_what_they_do() -> None:
    assert line(watched([DONE, TRAINS, COMES])) == (
        "shanghai=00:00 berlin=17:00  berlin leg 2 training step 1300 loss 1.234 512 samples/s; "
        "shanghai leg 3 waiting for the baton step 0  handed over 4.0 MiB   money so far 1.75 CNY"
    )


def test_steps_that_were_not_committed_do_not_count_once_their_leg_has_ended() -> None:
    assert step_now([DONE]) == 1200
    assert step_now([DONE, TRAINS]) == 1300
    assert step_now([DONE, leg(2, "berlin", "ended", outcome="dismissed")]) == 1200


def test_legs_that_never_had_the_term_are_no_part_of_the_way() -> None:
    dismissed = leg(2, "berlin", "ended", outcome="dismissed")
    assert trail([DONE, dismissed, COMES]) == "way: shanghai 1,200"
