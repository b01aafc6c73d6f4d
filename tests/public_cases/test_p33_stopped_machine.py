"""P33: a machine that stopped must not keep costing: what a leg cost never depends on when one looks."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from flows.relay import Limits
from tests.flows.driving import Driven, driven

MINUTES = Decimal(7) / 60


def open_leg(run: Driven) -> None:
    run.turn()
    run.turn()


def total(run: Driven) -> Decimal:
    return sum((charge["total"] for charge in run.journal.charges(run.run.id) if charge["leg"] == 1), Decimal(0))


@pytest.mark.parametrize("later", [10 * 60, 14 * 3600])
def test_seven_minutes_stay_seven_minutes(tmp_path: Path, later: int) -> None:
    run = driven(tmp_path)
    open_leg(run)
    (leg,) = run.legs()
    begun = run.clock.real()
    run.clock.advance(7 * 60)
    run.report(leg, "yielded", begun)
    run.turn()
    at_once = total(run)
    run.turn(later)
    assert at_once == total(run)
    assert abs(at_once - 2 * MINUTES) < Decimal("1E-9")
    assert not run.legs()[0].estimated


def test_one_that_vanished_ends_at_its_last_heartbeat_and_is_marked_as_estimated(tmp_path: Path) -> None:
    run = driven(tmp_path)
    open_leg(run)
    (leg,) = run.legs()
    begun = run.clock.real()
    run.clock.advance(7 * 60)
    run.beat(leg, 5, begun=begun)
    run.turn()
    run.turn(Limits().silence + 1)
    ended = run.legs()[0]
    assert (ended.outcome, ended.estimated) == ("lost", True)
    assert abs(total(run) - 2 * MINUTES) < Decimal("1E-9")
    run.turn(14 * 3600)
    assert abs(total(run) - 2 * MINUTES) < Decimal("1E-9")
