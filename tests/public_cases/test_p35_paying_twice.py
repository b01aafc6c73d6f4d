"""P35: work done once is paid once, however often the run is retried: charges belong to legs, not to runs."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from flows.train import submit
from tests.flows.driving import driven

STAGE = {"kind": "pretrain", "command": ["python", "none.py"], "accelerators": {"CPU": {"rate": 10}}}


def test_stages_that_succeeded_are_charged_once_and_the_failed_one_per_attempt(tmp_path: Path) -> None:
    stages = [{**STAGE, "id": name, "work": {"amount": 10}} for name in ("one", "two", "three")]
    run = driven(tmp_path, {"a": "6.00"}, stages=stages, within="6 h")
    for number, (stage, minutes, outcome) in enumerate(
        [("one", 5, "finished"), ("two", 5, "finished"), ("three", 6, "failed"), ("three", 10, "finished")], start=1
    ):
        while not any(leg.number == number and leg.state == "open" for leg in run.legs()):
            run.turn(10)
        leg = next(leg for leg in run.legs() if leg.number == number)
        assert leg.stage == stage
        begun = run.clock.real()
        run.clock.advance(minutes * 60)
        if outcome == "finished":
            run.commit(leg, tmp_path / f"save-{number}", 10)
        run.report(leg, outcome, begun, kind="trainer-exit")
        run.turn()
        if outcome == "failed":
            # The same flow run, retried: the same run, nothing charged anew.
            again = submit(run.journal, run.run.flow_run, {"id": "r", "stages": stages}, run.settings)
            assert again.id == run.run.id
    run.turn(1)
    charges = run.journal.charges(run.run.id)
    minutes_by_leg = [sum(c["quantity"] for c in charges if c["leg"] == leg) * 60 for leg in range(1, 5)]
    assert [round(float(minutes), 6) for minutes in minutes_by_leg] == [5, 5, 6, 10]
    assert abs(sum((c["total"] for c in charges), Decimal(0)) - Decimal("2.6")) < Decimal("1E-9")
    assert run.journal.run(run.run.id).state == "finished"
