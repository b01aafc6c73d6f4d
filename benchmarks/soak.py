"""`make soak`: every suite at the sizes promised, and the relay with many kills; saved with the commit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from typing import Any

from benchmarks import soak_regions
from benchmarks.results import ROOT, save

SEEDS = range(1, 4)
_TALLY = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


def suite(*arguments: str, seed: int | None = None) -> dict[str, Any]:
    """Run pytest with these arguments at full size, and return its tally."""
    environment = {**os.environ, "NIGHTRELAY_SOAK": "1"}
    if seed is not None:
        environment["NIGHTRELAY_SCENARIO_SEED"] = str(seed)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", "timeout=1800", "-q", "-ra", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    tally = {word: int(count) for count, word in _TALLY.findall(lines[-1] if lines else "")}
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    print(f"{' '.join(arguments)} seed={seed}: {lines[-1] if lines else done.stderr[-300:]}", flush=True)
    return {**tally, "seconds": round(time.monotonic() - began, 1), "exit": done.returncode, "failures": failed}


def main() -> int:
    """Run everything; exit with 1 where anything failed."""
    suites = {"unit": suite("tests", "--ignore=tests/scenarios")}
    for seed in SEEDS:
        suites[f"scenarios, seed {seed}"] = suite("tests/scenarios", seed=seed)
    path = save("soak", {"suites": suites, "regions": soak_regions.run()})
    print(f"saved {path}")
    return 0 if all(found["exit"] == 0 for found in suites.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
