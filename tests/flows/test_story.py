"""A run's story: artifacts and events at the moments people wait for, and no stop where the server is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.driver import Done
from flows.story import Story, show_progress
from regions.errors import OutsideError
from tests.flows.driving import Driven, driven
from tests.flows.inprocess import ThreadLegs


def events(run: Driven) -> list[str]:
    return [name for name, _ in run.flowruns.events]


def shown(run: Driven, key: str) -> Any:
    return run.flowruns.artifacts[f"{run.run.id}-{key}"]


def until_open(run: Driven) -> None:
    """Let the first leg be asked for and get the term."""
    for _ in range(40):
        run.turn(passed=10)
        for leg in run.legs():
            run.beat(leg, 0)
        if any(leg.state == "open" for leg in run.legs()):
            return
    raise AssertionError("no leg was opened")


def test_the_plan_is_shown_before_anything_starts(tmp_path: Path) -> None:
    run = driven(tmp_path)
    run.turn()
    first, total = shown(run, "plan")
    assert first["region"] == "a" and total["stage"] == "total"
    assert events(run)[0] == "nightrelay.run.planned"


def test_a_run_is_told_from_its_plan_to_its_report(tmp_path: Path) -> None:
    run = driven(tmp_path)
    until_open(run)
    (leg,) = run.legs()
    begun = run.clock.real()
    run.clock.advance(3600)
    run.commit(leg, tmp_path / "save", 100)
    run.report(leg, "finished", begun, step=100)
    assert isinstance(run.turn(), Done)

    told = events(run)
    assert told[0] == "nightrelay.run.planned"
    assert told[-3:] == ["nightrelay.leg.started", "nightrelay.leg.finished", "nightrelay.run.finished"]
    assert dict(run.flowruns.events)["nightrelay.leg.finished"] == {
        "leg": 1, "region": "a", "outcome": "finished", "reason": "said so",
    }  # fmt: skip
    done, total = shown(run, "costs")
    assert (done["steps"], done["outcome"], done["cost"]) == ("0 to 100", "finished", "2.00 CNY")
    assert (total["leg"], total["cost"]) == ("total", "2.00 CNY")
    assert shown(run, "progress") == 100
    assert "No step was lost: 100 steps" in shown(run, "report")
    assert shown(run, "picture").startswith("data:image/png;base64,")


class Counting(ThreadLegs):
    """Remembers every artifact made and rewritten, with its description."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        self.rewritten: list[tuple[str, str]] = []

    def artifact(self, flow_run: str, key: str, kind: str, data: Any, description: str = "") -> str:
        self.made.append((key, description))
        return key

    def update_artifact(self, artifact: str, data: Any, description: str = "") -> None:
        self.rewritten.append((artifact, description))

    def emit(self, *arguments: Any, **named: Any) -> None:
        """Say nothing."""


class Away(Counting):
    """A server that does not answer."""

    def artifact(self, *arguments: Any, **named: Any) -> str:
        raise OutsideError("the server did not answer")

    def emit(self, *arguments: Any, **named: Any) -> None:
        raise OutsideError("the server did not answer")


def story(run: Driven, flowruns: ThreadLegs) -> Story:
    return Story(run.journal, flowruns, run.clock, run.driver._catalog, run.run)  # type: ignore[arg-type]


def plan_document(revision: int, **changes: Any) -> dict[str, Any]:
    empty = {"revision": revision, "currency": "CNY", "cost": "4.5", "finish": "2026-12-01T07:00:00+00:00", "legs": []}
    return empty | changes


def test_an_artifact_is_made_once_and_then_rewritten(tmp_path: Path) -> None:
    run, flowruns = driven(tmp_path), Counting()
    told = story(run, flowruns)
    told.planned(plan_document(1))
    told.planned(plan_document(2, cost=None, finish=None, binding="the deadline"))
    key = f"{run.run.id}-plan"
    assert flowruns.made == [(key, "Plan, revision 1: 4.50 CNY, done 01 Dec 07:00 UTC")]
    assert flowruns.rewritten == [(key, "Plan, revision 2: no plan fits: the deadline")]


def test_a_later_driver_goes_on_with_the_same_artifact(tmp_path: Path) -> None:
    run, flowruns = driven(tmp_path), Counting()
    story(run, flowruns).planned(plan_document(1))
    story(run, flowruns).planned(plan_document(2))
    assert (len(flowruns.made), len(flowruns.rewritten)) == (1, 1)


def test_a_server_that_is_away_leaves_a_gap_and_stops_nothing(tmp_path: Path) -> None:
    run = driven(tmp_path)
    told = story(run, Away())
    told.planned(plan_document(1))
    show_progress(run.journal, Away(), run.run, 0.5, "half")  # type: ignore[arg-type]
    back = Counting()
    story(run, back).planned(plan_document(2))
    assert [key for key, _ in back.made] == [f"{run.run.id}-plan"]


def test_progress_is_told_in_percent(tmp_path: Path) -> None:
    run = driven(tmp_path)
    show_progress(run.journal, run.flowruns, run.run, 1 / 3, "s: 33 of 100 steps")  # type: ignore[arg-type]
    assert shown(run, "progress") == 33.3
