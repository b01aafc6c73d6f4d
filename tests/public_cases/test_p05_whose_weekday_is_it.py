"""P05: time of day and weekday are both the region's, whatever zone the process runs in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.regions.files import text, write

PLAN = """
import json, sys
from pathlib import Path
from regions.load import load
from tests.regions.wishes import planned
plan = planned(load(Path(sys.argv[1])), "2025-01-17T03:00-06:00", 600, only="office", home="here")
print(json.dumps(plan.document(), default=str))
"""


def run(zone: str, *command: str) -> object:
    environ = {**os.environ, "TZ": zone}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    days = "mon, tue, wed, thu, fri"
    window = f'{{name: office, days: [{days}], start: "06:00", end: "22:00", multiplier: "0.5"}}'
    return write(tmp_path, here=text(zone="US/Central", windows=window))


def test_the_rate_and_the_plan_are_the_same_under_both(folder: Path) -> None:
    answers = []
    for zone in ("Australia/Melbourne", "UTC"):
        curves = {}
        # Friday morning is Saturday in Melbourne; Sunday evening is Monday there.
        for instant in ("2025-01-17T08:00-06:00", "2025-01-19T18:30-06:00"):
            ask = ["regions", "prices", "here", "--offer", "gpu", "--from", instant, "--to", instant[:14] + "59-06:00"]
            [span] = run(zone, sys.executable, "-m", "flows.cli", *ask, "--catalog", str(folder), "--json")  # type: ignore[misc]
            curves[instant] = (span["window"], span["price"])
        answers.append((curves, run(zone, sys.executable, "-c", PLAN, str(folder))))
    assert answers[0] == answers[1]
    assert answers[0][0] == {"2025-01-17T08:00-06:00": ("office", "1.5"), "2025-01-19T18:30-06:00": (None, "3")}
