"""`python -m infra.worker POOL --limit N`: what `prefect worker start --type process` does, for the local stack.

It differs in what a stack that starts all at once needs: it loads while the server still starts and waits for server
and pool, it leaves the command line's own imports out, and it takes SIGINT back from a shell that had it ignored (such
a worker would not stop at its first SIGTERM).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

import anyio
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName
from prefect.utilities.processutils import setup_signal_handlers_worker
from prefect.workers.process import ProcessWorker

_EVERY = 0.2
_HEARTBEAT_SECONDS = 10


def _say(text: object) -> None:
    sys.stderr.write(f"{text}\n")


async def _wait_for_work(pool: str, seconds: float) -> bool:
    """Wait until something is deployed into the pool, which is the last thing the stack's starter does.

    Workers that began before would write while it writes: SQLite then refuses one of them, who tries again 2 s later.
    """
    into_pool = WorkPoolFilter(name=WorkPoolFilterName(any_=[pool]))
    with anyio.move_on_after(seconds):
        async with get_client() as client:
            # No server yet: nobody listens, or it answers that it is not ready.
            while await client.api_healthcheck() is not None or not await client.read_deployments(
                work_pool_filter=into_pool, limit=1
            ):
                await anyio.sleep(_EVERY)
            return True
    return False


async def _work(pool: str, limit: int | None, patience: float) -> int:
    if not await _wait_for_work(pool, patience):
        _say(f"worker: nothing is deployed into a work pool {pool!r} after {patience:.0f} s: run `nightrelay apply`")
        return 3
    setup_signal_handlers_worker(os.getpid(), "the process worker", _say)
    worker = ProcessWorker(
        name=f"{pool}-{os.getpid()}",
        work_pool_name=pool,
        limit=limit,
        prefetch_seconds=0,
        heartbeat_interval_seconds=_HEARTBEAT_SECONDS,
        create_pool_if_not_found=False,
    )
    await worker.start(printer=_say)
    return 0


def main() -> None:
    """Work until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m infra.worker", description="Serve one work pool with processes.")
    parser.add_argument("pool")
    parser.add_argument("--limit", type=int, default=None, help="most flow runs at once on this machine")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds to wait for the server and the pool")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(anyio.run(_work, given.pool, given.limit, given.patience))
    except KeyboardInterrupt:
        _say(f"worker of {given.pool}: stopped")


if __name__ == "__main__":
    main()
