"""The environment of each process of the stack, built from a whitelist: what is not named here is not passed on.

A region's processes know their own store's credentials and, to read the source of a handoff, the others' reading ones;
they know neither the journal's database nor the user's HOME.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.stack.plan import CONTROL, SERVER, Layout, StackPlan
from infra.stack.ports import HOST

_PASSED = re.compile(
    r"^(PATH|LANG|LANGUAGE|LC_.*|TZ|TZDIR|TMPDIR|TERM|USER|LOGNAME|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HTTPS?|ALL|NO)_PROXY|(https?|all|no)_proxy|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|CUDA_.*|NVIDIA_.*|ROCR_.*|HIP_.*"
    r"|COVERAGE_.*|PYTHONPATH|PYTHONHASHSEED|PYTHONDONTWRITEBYTECODE)$"
)
OWNER_KEY, READER_KEY = "NIGHTRELAY_STORE_OWNER", "NIGHTRELAY_STORE_READER"
"""The variables by which a store's server learns its keys; a command line could be read by every user."""
_LOOPBACK = f"{HOST},localhost"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a region's store is, and this stack's keys to it: `owner` to write, `reader` to read."""

    url: str
    endpoint: str | None
    owner: str
    reader: str

    def document(self) -> dict[str, str | None]:
        """Return what NIGHTRELAY_SITES holds of it: no keys."""
        return {"url": self.url, "endpoint": self.endpoint}


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what every process of the stack gets of the user's environment."""
    passed = {name: value for name, value in environ.items() if _PASSED.match(name)}
    own_programs = str(Path(sys.executable).parent)
    path = [entry for entry in passed.get("PATH", os.defpath).split(os.pathsep) if entry != own_programs]
    for name in ("NO_PROXY", "no_proxy"):
        passed[name] = ",".join(filter(None, [passed.get(name), _LOOPBACK]))
    return {
        **passed,
        "PATH": os.pathsep.join([own_programs, *path]),
        "PYTHONUNBUFFERED": "1",
        # One arena per thread would cost some 20 MB in each of these processes.
        "MALLOC_ARENA_MAX": "2",
        "DO_NOT_TRACK": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def server_environment(environ: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """Return the Prefect server's environment: SQLite, loopback, nothing sent anywhere."""
    side = layout.side(SERVER)
    return {
        **_at_home(base_environment(environ), side),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{side / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
        # The default keeps leases in memory: after a restart, taken slots would stay taken for good.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }


def control_environment(
    environ: Mapping[str, str], plan: StackPlan, api_url: str, sites: Mapping[str, Site]
) -> dict[str, str]:
    """Return the control side's environment: it sees the journal, and every region's store as its owner."""
    layout = plan.layout
    return {
        **_at_home(base_environment(environ), layout.side(CONTROL)),
        **_prefect(api_url),
        **_credentials(layout.side(CONTROL), {region: site.owner for region, site in sites.items()}),
        "NIGHTRELAY_HOME": str(layout.home),
        "NIGHTRELAY_SITES": str(layout.sites),
        **plan.shared,
        **plan.control,
    }


def region_environment(
    environ: Mapping[str, str], plan: StackPlan, region: str, api_url: str, sites: Mapping[str, Site]
) -> dict[str, str]:
    """Return a region's environment: its own HOME and work folder, its own store, no database."""
    side = plan.layout.side(region)
    keys = {other: site.owner if other == region else site.reader for other, site in sites.items()}
    return {
        **_at_home(base_environment(environ), side),
        **_prefect(api_url),
        **_credentials(side, keys),
        "NIGHTRELAY_HOME": str(side / "home" / ".nightrelay"),
        "NIGHTRELAY_WORK": str(side / "work"),
        "NIGHTRELAY_REGION": region,
        **plan.shared,
    }


def write_side(side: Path, keys: Mapping[str, str]) -> None:
    """Make a side's folders, for its user alone, and write its credentials: one profile per region."""
    for folder in (side, side / "home", side / "work", side / "prefect"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    profiles = "".join(
        f"[{region}]\naws_access_key_id = {key}\naws_secret_access_key = {key}\n"
        for region, key in sorted(keys.items())
    )
    for name, text in (("credentials", profiles), ("config", "")):
        path = side / name
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")


def _at_home(environment: dict[str, str], side: Path) -> dict[str, str]:
    return {**environment, "HOME": str(side / "home"), "PREFECT_HOME": str(side / "prefect")}


def _prefect(api_url: str) -> dict[str, str]:
    return {
        "PREFECT_API_URL": api_url,
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_WORKER_PREFETCH_SECONDS": "0",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_TELEMETRY_ENABLE_RESOURCE_METRICS": "false",
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_CLI_COLORS": "false",
    }


def _credentials(side: Path, keys: Mapping[str, str]) -> dict[str, str]:
    if not any(keys.values()):
        return {}
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(side / "credentials"),
        "AWS_CONFIG_FILE": str(side / "config"),
        "AWS_DEFAULT_REGION": "us-east-1",
    }
