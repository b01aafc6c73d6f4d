"""The proof that no step was lost, and what a person reads of a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from flows.report import make_report, prove, summary
from flows.rows import CheckpointRow, LegRow
from tests.flows.test_ledger import T0, a_leg, a_run


def leg(
    number: int, region: str, start: int | None, end: int | None, outcome: str = "handed_off", **more: Any
) -> LegRow:
    return replace(
        a_leg(region), number=number, state="ended", outcome=outcome, from_step=start, to_step=end,
        started_at=T0 + timedelta(hours=number), ended_at=T0 + timedelta(hours=number + 1), **more,
    )  # fmt: skip


def checkpoint(step: int, term: int) -> CheckpointRow:
    return CheckpointRow("r-1", "s", step, term, f"d{step}", f"k{step}", 10, ("a",))


def test_an_unbroken_line_is_a_proof() -> None:
    proof = prove([leg(1, "a", 0, 30), leg(2, "b", 30, 50)], [checkpoint(20, 1), checkpoint(30, 1), checkpoint(50, 2)])
    assert (proof.whole, proof.steps, proof.redone) == (True, 50, 0)


def test_a_gap_or_an_overlap_is_seen() -> None:
    history = [checkpoint(30, 1), checkpoint(50, 2)]
    assert not prove([leg(1, "a", 0, 30), leg(2, "b", 31, 50)], history).whole
    assert not prove([leg(1, "a", 0, 30), leg(2, "b", 20, 50)], history).whole


def test_steps_that_were_never_committed_are_counted_as_trained_again() -> None:
    heartbeat = {"step": 47}
    legs = [leg(1, "a", 0, 40, "lost", heartbeat=heartbeat), leg(2, "a", 40, 60)]
    assert prove(legs, [checkpoint(40, 1), checkpoint(60, 2)]).redone == 7


def test_dismissed_legs_are_no_part_of_the_line() -> None:
    legs = [leg(1, "a", 0, 40), leg(2, "b", None, None, "dismissed"), leg(3, "a", 40, 60)]
    assert prove(legs, [checkpoint(40, 1), checkpoint(60, 3)]).whole


def test_the_summary_compares_with_staying_at_home() -> None:
    charges = [{"leg": 1, "total": Decimal("6"), "total_currency": "CNY", "basis": "claim"}]
    finish = "2026-12-02T00:00:00+00:00"
    baselines = {
        "home_now": {"cost": "10", "finish": finish, "feasible": True},
        "home_off_peak": {"cost": "5", "finish": finish, "feasible": False},
        "cheapest_now": None,
    }
    told = make_report(a_run(), [leg(1, "a", 0, 30)], [checkpoint(30, 1)], charges, baselines, "CNY")
    text = "\n".join(summary(told))
    assert "6.00 CNY" in text and "(40.0 % less)" in text and "(20.0 % more)" in text
    assert "(20.0 % more); done 02 Dec 00:00Z, after the deadline" in text
    assert "No step was lost: 30 steps" in text and "claim 6.00 CNY" in text
