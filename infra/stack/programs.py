"""The programs of a stack: what each is called, its command and its environment. Pure but for reading the plan."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping

from infra.keeping import MARK, Program
from infra.stack.environment import (
    OWNER_KEY,
    READER_KEY,
    Site,
    base_environment,
    control_environment,
    region_environment,
    server_environment,
)
from infra.stack.plan import CONTROL, SERVER, StackPlan
from infra.stack.ports import HOST
from infra.stack.state import StackState


def sites_of(plan: StackPlan, state: StackState) -> dict[str, Site]:
    """Return where each region's store is, with its keys."""
    if plan.stores == "files":
        return {region: Site(plan.layout.store(region).resolve().as_uri(), None, "", "") for region in plan.regions}
    return {
        region: Site(
            f"s3://{bucket_of(region)}",
            f"http://{HOST}:{state.store_ports[region]}",
            _key(state.secret, region, "owner"),
            _key(state.secret, region, "reader"),
        )
        for region in plan.regions
    }


def bucket_of(region: str) -> str:
    """Return the name of a region's bucket."""
    return f"nightrelay-{region}"


def programs_of(
    plan: StackPlan, state: StackState, environ: Mapping[str, str], *, migrate: bool
) -> tuple[Program, ...]:
    """Return everything to start, the slowest first."""
    sites = sites_of(plan, state)
    layout, url = plan.layout, state.api_url
    mark = {MARK: state.mark}
    control = {**control_environment(environ, plan, url, sites), **mark}

    def python(name: str, env: Mapping[str, str], *arguments: str) -> Program:
        return Program(name, (sys.executable, *arguments), env, layout.home, layout.log(name))

    # Without it the server tells its own pages to ask port 4200, wherever it listens.
    server = {**server_environment(environ, layout), "PREFECT_SERVER_UI_API_URL": url, **mark}
    if not migrate:
        server |= {
            "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",
            "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
        }
    start = ("-m", "prefect", "server", "start", "--host", HOST, "--port", str(state.port))
    stores = [
        python(
            f"store-{region}",
            {**base_environment(environ), OWNER_KEY: sites[region].owner, READER_KEY: sites[region].reader, **mark},
            *("-m", "infra.objectstore", bucket_of(region), "--port", str(port)),
        )
        for region, port in sorted(state.store_ports.items())
    ]
    workers = [
        python(
            worker_of(region),
            {**region_environment(environ, plan, region, url, sites), **mark},
            *("-m", "infra.worker", region, "--limit", str(plan.limits[region])),
        )
        for region in plan.regions
    ]
    extras = [python(extra.name, control, "-m", extra.module) for extra in plan.extras]
    steering = python(worker_of(CONTROL), control, "-m", "infra.worker", CONTROL)
    return (python(SERVER, server, *start), *stores, steering, *workers, *extras)


def worker_of(pool: str) -> str:
    """Return the name of a pool's worker program."""
    return f"worker-{pool}"


def _key(secret: str, region: str, role: str) -> str:
    return hashlib.blake2b(f"{region}/{role}".encode(), key=secret.encode(), digest_size=16).hexdigest()
