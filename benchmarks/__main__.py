"""`make bench`: runs the benchmarks, prints what they measured and saves it. Names on the command line choose some."""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.results import save

BENCHMARKS = {
    "regions": "benchmarks.soak_regions",
    "transfer": "benchmarks.transfer",
    "data": "benchmarks.data",
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        print(f"== {name}", flush=True)
        measured = importlib.import_module(BENCHMARKS[name]).run()
        print(json.dumps(measured, indent=1, default=str))
        print(f"saved {save(name, measured).name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
