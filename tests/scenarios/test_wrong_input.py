"""What is wrong is said at the door, whole, before anything starts."""

from __future__ import annotations

import pytest

from flows.flowruns import FINAL
from tests.scenarios.world import World

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(200)]


def test_a_bad_run_is_refused_with_every_fault_and_nothing_starts(nightrelay: World) -> None:
    request = nightrelay.request(within="soon", priority="urgent", stage={"work": {"amount": -1}})
    flow_run = nightrelay.flowruns.submit(request)

    def over() -> str | None:
        seen = nightrelay.flowruns.view(flow_run)
        return seen.message if seen is not None and seen.type in FINAL else None

    said = nightrelay.until(over, 90, "the refusal")
    for field in ("within", "priority", "stages[0].work.amount"):
        assert field in said, said
    seen = nightrelay.flowruns.view(flow_run)
    assert seen is not None and seen.type == "FAILED"
    assert nightrelay.journal.run_of(flow_run) is None


def test_a_command_that_is_not_there_is_one_clear_reason(nightrelay: World) -> None:
    run = nightrelay.submit(nightrelay.request(stage={"command": ["no-such-trainer", "--flag"]}))
    done = nightrelay.finished(run, 150)
    assert done.state == "failed"
    assert "program-missing" in done.reason
    assert "'no-such-trainer'" in nightrelay.journal.legs(run.id)[-1].reason
