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

_TALLY = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


def suite(*arguments: str, seed: int | None = None) -> dict[str, Any]:
    """Run pytest with these arguments at full size, and return its tally."""
    environment = {**os.environ, "NIGHTRELAY_SOAK": "1"}
    if seed is not None:
        environment["NIGHTRELAY_SCENARIO_SEED"] = str(seed)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", "timeout=1800", "-ra", *arguments],
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


def main(names: list[str]) -> int:
    """Run the named parts (unit, scenarios, regions), or all; exit with 1 where anything failed."""
    parts = {"unit": _unit, "scenarios": _scenarios, "regions": lambda: {"regions": soak_regions.run()}}
    failed = False
    for name in names or parts:
        measured = parts[name]()
        failed = failed or any(found.get("exit") for found in measured.values())
        print(f"saved {save(f'soak-{name}', measured).name}", flush=True)
    return 1 if failed else 0


def _unit() -> dict[str, Any]:
    return {"unit": suite("tests", "--ignore=tests/scenarios")}


def _scenarios() -> dict[str, Any]:
    seeds = os.environ.get("NIGHTRELAY_SOAK_SEEDS", "1,2,3").split(",")
    return {f"seed {seed}": suite("tests/scenarios", seed=int(seed)) for seed in seeds}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
