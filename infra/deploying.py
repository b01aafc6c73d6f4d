"""Reads what stands at a Prefect server and makes a difference real: the only writer of pools and deployments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import anyio
import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolCreate, WorkPoolUpdate
from prefect.exceptions import PrefectHTTPStatusError
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.workers.process import ProcessWorker
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from infra.pools import POOL_TYPE, Change, Found, FoundDeployment, FoundPool, FoundQueue, Wanted, difference
from regions.errors import OutsideError

_T = TypeVar("_T")
_PATIENCE = 60.0
"""Seconds for which a busy server is asked again."""
_COMPARED = (
    "work_pool_name",
    "work_queue_name",
    "entrypoint",
    "description",
    "tags",
    "job_variables",
    "pull_steps",
    "enforce_parameter_schema",
    "parameter_openapi_schema",
)


def apply(api_url: str, wanted: Wanted, *, dry_run: bool = False, prune: bool = False) -> tuple[Change, ...]:
    """Make a server agree with a wish and return what was (with `dry_run`: would be) changed. Idempotent.

    A server that is busy half way through (SQLite lets one of two writers go) is read again and the rest is done.
    """

    looks: list[tuple[Change, ...]] = []

    async def work(client: PrefectClient) -> None:
        looks.append(difference(wanted, await _read(client, wanted), prune=prune))
        if not dry_run:
            await _carry_out(client, looks[-1])

    with_client(api_url, work)
    return looks[0]


def with_client(api_url: str, work: Callable[[PrefectClient], Coroutine[Any, Any, _T]]) -> _T:
    """Do something idempotent at a server, from its start again while the server is busy.

    The client's own retry waits 2 s and more each time, which is why it is switched off. OutsideError names the
    server's trouble.
    """
    again = AsyncRetrying(
        retry=retry_if_exception(_busy),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        stop=stop_after_delay(_PATIENCE),
        reraise=True,
    )

    async def run() -> _T:
        async with _errors_named(api_url), PrefectClient(api_url) as client:
            return await again(work, client)

    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):
        return anyio.run(run)


def _busy(error: BaseException) -> bool:
    return isinstance(error, PrefectHTTPStatusError) and error.response.status_code in (408, 429, 500, 502, 503)


@asynccontextmanager
async def _errors_named(api_url: str) -> AsyncIterator[None]:
    try:
        yield
    except PrefectHTTPStatusError as error:
        answer = error.response
        raise OutsideError(
            f"the Prefect server at {api_url} refused {answer.request.method} {answer.request.url.path}: "
            f"{answer.status_code} {answer.text[:300]}"
        ) from error
    except (httpx.TransportError, RuntimeError) as error:
        raise OutsideError(
            f"no Prefect server answers at {api_url} ({error or type(error).__name__}): start one (nightrelay up), "
            "or set PREFECT_API_URL"
        ) from error


async def _read(client: PrefectClient, wanted: Wanted) -> Found:
    names = {pool.name for pool in wanted.pools}
    pools = {}
    for pool in await client.read_work_pools():
        if pool.name in names:
            queues = {
                queue.name: FoundQueue(str(queue.id), queue.priority or 0, queue.is_paused)
                for queue in await client.read_work_queues(work_pool_name=pool.name)
            }
            pools[pool.name] = FoundPool(pool.concurrency_limit, queues, pool.is_paused)
    return Found(pools, await _deployments(client))


async def _deployments(client: PrefectClient) -> dict[str, FoundDeployment]:
    found: dict[str, FoundDeployment] = {}
    flows: dict[UUID, str] = {}
    page = 200
    while batch := await client.read_deployments(limit=page, offset=len(found)):
        for deployment in batch:
            if deployment.flow_id not in flows:
                flows[deployment.flow_id] = (await client.read_flow(deployment.flow_id)).name
            fields = deployment.model_dump(mode="json", include=set(_COMPARED))
            # `prefect deploy` writes a schema without the empty part that Prefect's own functions give it.
            schema = fields["parameter_openapi_schema"] or {}
            fields["parameter_openapi_schema"] = {"definitions": {}, **schema}
            name = f"{flows[deployment.flow_id]}/{deployment.name}"
            found[name] = FoundDeployment(str(deployment.id), fields, bool(deployment.paused))
        if len(batch) < page:
            break
    return found


async def _carry_out(client: PrefectClient, changes: tuple[Change, ...]) -> None:
    for change in changes:
        new = {name: value for name, (_, value) in change.fields.items()}
        if change.kind == "pool":
            await _change_pool(client, change, new["concurrency_limit"])
        elif change.kind == "queue":
            await _change_queue(client, change, new["priority"])
        elif change.verb == "delete":
            await client.delete_deployment(UUID(change.id))
        elif change.verb == "update":
            await client.update_deployment(UUID(change.id), DeploymentUpdate(**new))
        else:
            flow, _, name = change.name.partition("/")
            await client.create_deployment(await client.create_flow_from_name(flow), name, **new)


async def _change_pool(client: PrefectClient, change: Change, limit: int | None) -> None:
    if change.verb == "update":
        await client.update_work_pool(change.name, WorkPoolUpdate(concurrency_limit=limit))
        return
    template = ProcessWorker.get_default_base_job_template()
    await client.create_work_pool(
        WorkPoolCreate(name=change.name, type=POOL_TYPE, concurrency_limit=limit, base_job_template=template)
    )


async def _change_queue(client: PrefectClient, change: Change, priority: int) -> None:
    if change.verb == "update":
        await client.update_work_queue(UUID(change.id), priority=priority)
    else:
        pool, _, name = change.name.partition("/")
        await client.create_work_queue(name, priority=priority, work_pool_name=pool)
