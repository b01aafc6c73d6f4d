"""P38: a leg that can no longer say anything is ended in the documented time; the next one goes on from its commit."""

from __future__ import annotations

from pathlib import Path

from flows.relay import Limits
from tests.flows.driving import driven


def test_a_silent_leg_is_lost_and_its_commits_count(tmp_path: Path) -> None:
    run = driven(tmp_path)
    run.turn()
    run.turn()
    (leg,) = run.legs()
    begun = run.clock.real()
    for step in (10, 20):
        run.commit(leg, tmp_path / f"save-{step}", step)
    run.clock.advance(60)
    run.beat(leg, 25, begun=begun)
    run.turn()
    assert [each.state for each in run.legs()] == ["open"]
    run.turn(Limits().silence - 1)
    assert [each.state for each in run.legs()] == ["open"], "not before the documented time"
    run.turn(2)
    lost, *following = run.legs()
    assert (lost.outcome, lost.to_step) == ("lost", 20)
    while not any(each.state == "open" for each in run.legs()):
        run.turn(1)
    following = [each for each in run.legs() if each.state == "open"]
    baton = run.baton(following[0])
    assert baton is not None and baton.start_from is not None and baton.start_from.step == 20
    assert run.flowruns.view(lost.flow_run or "").type == "CANCELLED", "the lost leg's flow run is ended too"  # type: ignore[union-attr]


def test_a_late_commit_of_the_lost_leg_never_enters_the_history(tmp_path: Path) -> None:
    run = driven(tmp_path)
    run.turn()
    run.turn()
    (leg,) = run.legs()
    run.commit(leg, tmp_path / "save-10", 10)
    run.beat(leg, 12)
    run.turn(Limits().silence + 1)
    run.turn(1)
    while not any(each.state == "open" for each in run.legs()):
        run.turn(1)
    run.commit(leg, tmp_path / "save-30", 30)
    run.turn(1)
    assert [row.step for row in run.journal.checkpoints(run.run.id)] == [10]
    control = run.control(leg)
    assert control is not None and control.term > leg.number, "the zombie sees that a newer term stands"
