"""The decisions of a relay, fault by fault, without a clock, a store or a server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from flows.messages import Heartbeat, Report
from flows.relay import (
    Ask,
    Launch,
    LegView,
    Limits,
    Open,
    Tempo,
    choose,
    endings,
    given_up,
    pause,
    stop_everything,
    tempo_of,
    wants_plan,
)

T0 = datetime(2026, 11, 30, 15, 0, tzinfo=UTC)
LIMITS = Limits()


LEAD = 7.0
TEMPO = Tempo(lambda instant: instant, speed=1.0, launch=LEAD)
"""A run clock that is the real one."""


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def leg(
    number: int = 1,
    *,
    holds: bool = True,
    region: str = "a",
    start: datetime | None = None,
    end: datetime | None = None,
    **more: Any,
) -> LegView:
    return LegView(
        number=number,
        stage="pretrain",
        region=region,
        holds_term=holds,
        launched_real=T0,
        opened_real=T0 if holds else None,
        planned_start=start or T0,
        planned_end=end or after(3600),
        **more,
    )


def beat(at: float) -> Heartbeat:
    return Heartbeat(
        number=1, real=after(at), at=after(at), phase="train", started_real=T0, started_at=T0, pid=1, from_step=0
    )


def report(outcome: str, kind: str = "") -> Report:
    return Report(
        number=1, outcome=outcome, reason="said so", kind=kind, from_step=0, to_step=10, commits=(), phases=(),
        started_at=T0, ended_at=T0, started_real=T0, ended_real=T0, handed_bytes=0, handed_seconds=0, pid=1,
    )  # fmt: skip


def planned(region: str, start: float, end: float, stage: str = "pretrain") -> Any:
    return SimpleNamespace(
        region=region, stage=stage, offer="cpu", market="on_demand", start=after(start), end=after(end), startup=0
    )


def test_a_report_ends_a_leg_whatever_its_heartbeat_says() -> None:
    (end,) = endings([leg(report=report("handed_off"), beat=beat(0))], after(5), LIMITS)
    assert (end.number, end.outcome) == (1, "handed_off")


@pytest.mark.parametrize(("quiet", "lost"), [(LIMITS.silence - 1, False), (LIMITS.silence + 1, True)])
def test_a_silent_leg_is_lost_in_the_documented_time(quiet: float, lost: bool) -> None:
    assert bool(endings([leg(beat=beat(0))], after(quiet), LIMITS)) is lost


@pytest.mark.parametrize(("quiet", "lost"), [(LIMITS.silence_crashed - 1, False), (LIMITS.silence_crashed + 1, True)])
def test_a_crash_prefect_reports_only_shortens_the_wait(quiet: float, lost: bool) -> None:
    assert bool(endings([leg(beat=beat(0), process_gone=True)], after(quiet), LIMITS)) is lost


def test_a_leg_that_beats_is_alive_though_prefect_calls_it_crashed() -> None:
    """A leg whose worker died goes on training; Prefect is never the proof."""
    assert endings([leg(beat=beat(100), process_gone=True)], after(101), LIMITS) == []


def test_a_leg_that_never_came_is_given_up() -> None:
    (end,) = endings([leg(holds=False)], after(LIMITS.launch + 1), LIMITS)
    assert end.outcome == "lost"


def test_without_any_leg_the_first_planned_one_is_launched_when_it_is_time() -> None:
    early = choose([], [planned("a", 60, 600)], "pretrain", T0, TEMPO)
    due = choose([], [planned("a", 60, 600)], "pretrain", after(60 - LEAD), TEMPO)
    assert early == []
    assert isinstance(due[0], Launch) and due[0].leg.region == "a"


def test_a_launched_leg_gets_the_term_as_soon_as_nobody_holds_it() -> None:
    assert choose([leg(2, holds=False)], [], "pretrain", T0, TEMPO) == [Open(2)]


def test_a_prepared_leg_waits_while_another_holds_the_term() -> None:
    assert choose([leg(1), leg(2, holds=False)], [], "pretrain", T0, TEMPO) == []


def test_a_leg_prepared_for_a_stage_that_is_over_is_dismissed() -> None:
    (ask,) = choose([leg(2, holds=False)], [], "validate", T0, TEMPO)
    assert isinstance(ask, Ask) and ask.wish == "dismiss"


def test_never_two_legs_get_the_term() -> None:
    actions = choose([leg(2, holds=False), leg(3, holds=False)], [], "pretrain", T0, TEMPO)
    assert [action for action in actions if isinstance(action, Open)] == [Open(2)]
    assert [action.number for action in actions if isinstance(action, Ask)] == [3]


def test_the_next_leg_is_prepared_before_the_planned_end() -> None:
    holder = leg(1, region="a", end=after(100))
    near = after(100 - LEAD + 1)
    assert wants_plan([holder], near, TEMPO, 0.0)
    (launch,) = choose([holder], [planned("a", 0, 100), planned("b", 100, 500)], "pretrain", near, TEMPO)
    assert isinstance(launch, Launch) and launch.leg.region == "b"


def test_no_plan_is_wanted_while_the_end_is_far_or_the_next_leg_is_prepared() -> None:
    assert not wants_plan([leg(1, end=after(1000))], after(1), TEMPO, 0.0)
    assert not wants_plan([leg(1, end=after(10)), leg(2, holds=False)], after(9), TEMPO, 0.0)


def test_a_plan_that_stays_extends_the_leg_instead_of_restarting_it() -> None:
    holder = leg(1, region="a", end=after(100))
    (ask,) = choose([holder], [planned("a", 0, 900)], "pretrain", after(95), TEMPO)
    assert ask == Ask(1, "extend", "the plan keeps it here", stop_by=after(900))


def test_cancelling_stops_the_holder_and_dismisses_the_one_in_waiting() -> None:
    asks = stop_everything([leg(1), leg(2, holds=False)], "cancelled")
    assert [(ask.number, ask.wish) for ask in asks if isinstance(ask, Ask)] == [(1, "stop"), (2, "dismiss")]


def test_waiting_is_named_and_ends_in_time_for_the_next_decision() -> None:
    holder = pause([leg(1, end=after(1000))], [], T0, TEMPO, LIMITS, 0.0)
    window = pause([], [planned("a", 5000, 6000)], T0, TEMPO, LIMITS, 0.0)
    assert (holder.name, holder.until) == ("WaitingForLeg", after(1000 - 2 * LEAD)), "a driver must start as well"
    assert (window.name, window.until) == ("WaitingForWindow", after(5000 - LEAD))


def test_the_same_failure_three_times_in_a_row_stops_the_run() -> None:
    assert given_up([("failed", "exit-1")] * 3, LIMITS)
    assert not given_up([("failed", "exit-1")] * 2, LIMITS)
    assert not given_up([("failed", "exit-1"), ("lost", ""), ("failed", "exit-1"), ("failed", "exit-1")], LIMITS)
    assert not given_up([("failed", "exit-1"), ("failed", "out-of-memory"), ("failed", "exit-1")], LIMITS)


def test_a_lost_leg_is_judged_by_its_newest_sign_of_life() -> None:
    fresh = replace(leg(beat=beat(50)), opened_real=after(60))
    assert fresh.last_sign() == after(60)


def test_a_leg_asked_for_early_is_not_opened_before_its_planned_start() -> None:
    early = leg(2, holds=False, start=after(50))
    assert choose([early], [], "pretrain", after(49), TEMPO) == []
    assert choose([early], [], "pretrain", after(50), TEMPO) == [Open(2)]


def test_a_leg_is_asked_for_as_early_as_launches_took_lately_and_as_its_machine_needs() -> None:
    fast = Tempo(lambda instant: instant, speed=1000.0, launch=4.0)
    assert fast.lead(startup=120.0).total_seconds() == 4.0
    assert TEMPO.lead(startup=360.0).total_seconds() == 360.0
    assert tempo_of([9.0, 2.0, 3.0, 2.5], lambda instant: instant, 1.0, LIMITS).launch == 3.0 + LIMITS.spare
    assert tempo_of([], lambda instant: instant, 1.0, LIMITS).launch == LIMITS.launch_guess + LIMITS.spare


def test_a_machine_is_rented_early_only_to_relieve_another() -> None:
    slow = SimpleNamespace(**{**vars(planned("b", 1000, 2000)), "startup": 300.0})
    assert TEMPO.ask_at(slow, relieves=True) == after(700)
    assert TEMPO.ask_at(slow, relieves=False) == after(1000 - LEAD)
