"""Cancelling reaches the work, at whatever moment and by whatever way: P40, P33, P35, P38 on the real thing."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from flows.flowruns import FINAL
from flows.rows import RunRow
from tests.scenarios.test_relay import check
from tests.scenarios.world import World

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(300)]


def gone(pid: int | None) -> bool:
    if pid is None:
        return True
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def ends_cancelled(world: World, run: RunRow) -> RunRow:
    """Wait for the run's end, then check that nothing of it is left and that the ledger stands still."""
    done = world.finished(run, 90)
    assert done.state == "cancelled", world.story()
    legs = world.journal.legs(run.id)
    for leg in legs:
        assert leg.state == "ended"
        beat = leg.beat
        assert (
            beat is None
            or (gone(beat.trainer_pid) and gone(beat.pid))
            or world.until(
                lambda beat=beat: gone(beat.trainer_pid) and gone(beat.pid), 20, "the leg's processes to end"
            )
        )
        if leg.flow_run is not None:
            seen = world.until(lambda leg=leg: _final(world, leg.flow_run), 60, f"leg {leg.number}'s flow run to end")
            assert seen
    before = world.journal.charges(run.id)
    time.sleep(1.5)
    assert world.journal.charges(run.id) == before
    return done


def _final(world: World, flow_run: str | None) -> bool:
    seen = world.flowruns.view(flow_run or "")
    return seen is not None and seen.type in FINAL


def test_cancelled_while_a_leg_trains_and_resumed_later(nightrelay: World) -> None:
    """P40 and P35: the leg saves, commits and is gone; states Cancelled; what was charged is charged once."""
    request = nightrelay.request()
    run = nightrelay.submit(request)
    leg = nightrelay.training(run, step=60)
    assert leg.beat is not None
    nightrelay.flowruns.cancel(run.flow_run)
    ends_cancelled(nightrelay, run)
    (last,) = [each for each in nightrelay.journal.legs(run.id) if each.number == leg.number]
    # Its planned end may come at the very moment of the cancel.
    assert last.outcome in ("stopped", "handed_off"), nightrelay.story()
    assert (last.to_step or 0) >= leg.beat.step, "what was trained until the cancel is committed"
    parent = nightrelay.flowruns.view(run.flow_run)
    assert parent is not None and parent.type == "CANCELLED"
    before = nightrelay.journal.charges(run.id)

    nightrelay.flowruns.submit(run.recipe, resume=run.id)
    nightrelay.until(lambda: nightrelay.journal.run(run.id).state == "running", 60, "the run to go on")
    check(nightrelay, request, nightrelay.finished(run, 150))
    assert nightrelay.journal.charges(run.id)[: len(before)] == before


def test_cancelled_before_its_first_leg(nightrelay: World) -> None:
    run = nightrelay.submit(nightrelay.request())
    nightrelay.journal.ask_cancel(run.id)
    nightrelay.flowruns.cancel(run.flow_run)
    ends_cancelled(nightrelay, run)


def test_a_leg_that_cannot_say_anything_is_ended_at_its_last_heartbeat(nightrelay: World) -> None:
    """P38 and P33: the attempt is ended as lost in the documented time, its charge ends at its last heartbeat."""
    run = nightrelay.submit(nightrelay.request())
    leg = nightrelay.training(run, step=90)
    assert leg.beat is not None
    os.kill(leg.beat.pid, signal.SIGKILL)
    killed = time.monotonic()

    def ended() -> bool:
        return any(each.number == leg.number and each.state == "ended" for each in nightrelay.journal.legs(run.id))

    nightrelay.until(ended, 45, "the lost leg to be ended")
    assert time.monotonic() - killed < 45
    (lost,) = [each for each in nightrelay.journal.legs(run.id) if each.number == leg.number]
    assert (lost.outcome, lost.estimated) == ("lost", True)
    assert lost.beat is not None and lost.ended_at == lost.beat.at
    rent = [charge for charge in nightrelay.journal.charges(run.id) if charge["leg"] == leg.number]
    assert rent and max(charge["end_at"] for charge in rent) <= lost.ended_at + (lost.ended_at - lost.started_at)  # type: ignore[operator]
    following = nightrelay.training(run, step=0)
    assert following.number > lost.number and (following.beat is None or following.beat.from_step == lost.to_step)
    nightrelay.finished(run)
    again = [charge for charge in nightrelay.journal.charges(run.id) if charge["leg"] == leg.number]
    assert again == rent, "an ended leg's charge never grows"
