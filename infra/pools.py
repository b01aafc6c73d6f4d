"""Work pools, queues and deployments as they should be, how they are, and the difference: values, no server.

One pool per region and one for the control side, each with the queues core, important and normal; one deployment of
the leg per region, since Prefect cannot send a deployment's run to another pool. What an operator paused (a pool, a
queue, a deployment, a schedule) is not part of a wish, so it stays as it is (docs/decisions/0503).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from regions.model import Region

CONTROL = "control"
QUEUES: Mapping[str, int] = {"core": 1, "important": 2, "normal": 3}
"""Every pool's queues and their priorities; 1 is served first."""
TAG = "nightrelay"
"""Marks what was deployed from region files: what bears it may be removed with them."""
POOL_TYPE = "process"
ENGINE = "python -m prefect.engine"
"""The command of a flow run: the engine itself, which spares one start of Python against Prefect's default."""


@dataclass(frozen=True, slots=True)
class FlowSpec:
    """A flow that can be deployed. `entrypoint` is `<file>:<function>` from the project's folder."""

    name: str
    entrypoint: str
    description: str
    schema: Mapping[str, Any]
    """The JSON schema of its parameters."""


@dataclass(frozen=True, slots=True)
class Pool:
    """A work pool. `limit` is the most flow runs at once, None for no limit."""

    name: str
    limit: int | None = None
    queues: Mapping[str, int] = field(default_factory=lambda: dict(QUEUES))


@dataclass(frozen=True, slots=True)
class Deployment:
    """A flow in a pool."""

    flow: FlowSpec
    name: str
    pool: str
    tags: tuple[str, ...]
    queue: str = "normal"

    @property
    def full_name(self) -> str:
        """The name by which it is run."""
        return f"{self.flow.name}/{self.name}"

    def fields(self) -> dict[str, Any]:
        """Return what is to stand at the server, by the API's names."""
        return {
            "work_pool_name": self.pool,
            "work_queue_name": self.queue,
            "entrypoint": self.flow.entrypoint,
            "description": self.flow.description,
            "tags": list(self.tags),
            "job_variables": {"command": ENGINE},
            "pull_steps": [{"infra.project.enter": {}}],
            "enforce_parameter_schema": True,
            "parameter_openapi_schema": {"definitions": {}, **self.flow.schema},
        }


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that should stand at a server."""

    pools: tuple[Pool, ...]
    deployments: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True)
class FoundQueue:
    """A queue as it is."""

    id: str
    priority: int
    paused: bool = False


@dataclass(frozen=True, slots=True)
class FoundPool:
    """A pool as it is."""

    limit: int | None
    queues: Mapping[str, FoundQueue]
    paused: bool = False


@dataclass(frozen=True, slots=True)
class FoundDeployment:
    """A deployment as it is; `fields` by the API's names."""

    id: str
    fields: Mapping[str, Any]
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """All that stands at a server, of the names asked for."""

    pools: Mapping[str, FoundPool]
    deployments: Mapping[str, FoundDeployment]


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to do. `fields` holds what becomes of it: name to (what is, what shall be)."""

    verb: Literal["create", "update", "delete"]
    kind: Literal["pool", "queue", "deployment"]
    name: str
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    id: str = ""
    paused: bool = False
    """Whether an operator has paused it; it stays so."""

    def document(self) -> dict[str, object]:
        """Return it as `apply --json` prints it."""
        fields = {name: {"from": old, "to": new} for name, (old, new) in self.fields.items()}
        return {"verb": self.verb, "kind": self.kind, "name": self.name, "fields": fields, "paused": self.paused}


def wanted_for(regions: Iterable[Region], train: FlowSpec, leg: FlowSpec) -> Wanted:
    """Return what a server needs for these regions: a region's quota is its pool's limit."""
    places = sorted((region for region in regions if region.status != "retired"), key=lambda region: region.id)
    relay = Deployment(train, "relay", CONTROL, (TAG,))
    legs = [Deployment(leg, region.id, region.id, (TAG, f"region:{region.id}")) for region in places]
    pools = [Pool(CONTROL), *(Pool(region.id, quota_of(region)) for region in places)]
    return Wanted(tuple(pools), (relay, *legs))


def quota_of(region: Region) -> int:
    """Return how many legs a region can run at once: one per instance it may have, and at least one to be asked."""
    return max(1, sum(offer.quota or 0 for offer in region.offers))


def difference(wanted: Wanted, found: Found, *, prune: bool) -> tuple[Change, ...]:
    """Return what must be done, in an order in which it can be: pools, queues, deployments, removals.

    `prune` removes deployments that bear our tag and are not wanted; a pool is never removed, as its runs' history and
    an operator's settings go with it.
    """
    changes = [change for pool in wanted.pools for change in _pool_changes(pool, found.pools.get(pool.name))]
    for deployment in wanted.deployments:
        change = _deployment_change(deployment, found.deployments.get(deployment.full_name))
        if change is not None:
            changes.append(change)
    if prune:
        known = {deployment.full_name for deployment in wanted.deployments}
        changes += [
            Change("delete", "deployment", name, id=here.id, paused=here.paused)
            for name, here in sorted(found.deployments.items())
            if name not in known and TAG in here.fields["tags"]
        ]
    return tuple(changes)


def _pool_changes(pool: Pool, here: FoundPool | None) -> list[Change]:
    changes = []
    if here is None:
        changes.append(Change("create", "pool", pool.name, {"concurrency_limit": (None, pool.limit)}))
    elif here.limit != pool.limit:
        limits = {"concurrency_limit": (here.limit, pool.limit)}
        changes.append(Change("update", "pool", pool.name, limits, paused=here.paused))
    queues = {} if here is None else here.queues
    for name, priority in sorted(pool.queues.items(), key=lambda item: item[1]):
        queue = queues.get(name)
        if queue is None:
            changes.append(Change("create", "queue", f"{pool.name}/{name}", {"priority": (None, priority)}))
        elif queue.priority != priority:
            fields = {"priority": (queue.priority, priority)}
            changes.append(Change("update", "queue", f"{pool.name}/{name}", fields, queue.id, queue.paused))
    return changes


def _deployment_change(deployment: Deployment, here: FoundDeployment | None) -> Change | None:
    fields = deployment.fields()
    if here is None:
        return Change("create", "deployment", deployment.full_name, {name: (None, new) for name, new in fields.items()})
    changed = {name: (here.fields.get(name), new) for name, new in fields.items() if here.fields.get(name) != new}
    if not changed:
        return None
    return Change("update", "deployment", deployment.full_name, changed, here.id, here.paused)
