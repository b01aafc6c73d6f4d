"""P40: cancelling reaches the work: it is asked to save and leave, nothing starts afterwards, the cost is kept.

The same on real processes: tests/scenarios/test_stopping.py.
"""

from __future__ import annotations

from pathlib import Path

from flows.driver import Done
from tests.flows.driving import driven


def test_the_leg_is_asked_to_stop_and_no_other_is_started(tmp_path: Path) -> None:
    run = driven(tmp_path)
    run.turn()
    run.turn()
    (leg,) = run.legs()
    begun = run.clock.real()
    run.beat(leg, 5, begun=begun)
    run.turn(1)
    run.journal.ask_cancel(run.run.id)
    run.turn(1)
    control = run.control(leg)
    assert control is not None and control.wish == "stop"
    run.commit(leg, tmp_path / "save", 7)
    run.clock.advance(300)
    run.report(leg, "stopped", begun, step=7)
    done = run.turn()
    assert isinstance(done, Done) and done.state == "cancelled"
    assert [each.outcome for each in run.legs()] == ["stopped"]
    assert [row.step for row in run.journal.checkpoints(run.run.id)] == [7]
    assert run.journal.charges(run.run.id)
    assert isinstance(run.turn(3600), Done) and len(run.legs()) == 1


def test_a_leg_in_waiting_is_dismissed(tmp_path: Path) -> None:
    run = driven(tmp_path)
    run.turn()
    run.journal.ask_cancel(run.run.id)
    run.turn(1)
    (leg,) = run.legs()
    control = run.control(leg)
    assert control is not None and control.dismissed >= leg.number
