"""`nightrelay doctor`: does this installation have what it needs? Each check says what it saw and what to do next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Literal
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from rich.console import Console

from flows.commands.output import JsonFlag, emit
from flows.settings import Settings
from flows.sites import Sites
from infra.stack.plan import Layout
from infra.stack.ports import PREFERRED, listening
from infra.stack.state import read_state
from regions.clock import Clock, SystemClock
from regions.errors import NightrelayError
from regions.load import inspect
from regions.model import Catalog

Verdict = Literal["good", "warning", "bad"]
_PYTHONS = ((3, 11), (3, 13))
_PACKAGES = ("nightrelay", "prefect", "fsspec", "s3fs", "ossfs", "pyarrow", "sqlalchemy", "tzdata")
_LEAST_FREE = 2 << 30
_MOST_SKEW = timedelta(seconds=30)
"""Leases and signatures bear minutes; half a minute is where one should look."""
_SIGNS: Mapping[str, str] = {"good": "[green]ok[/green]", "warning": "[yellow]!![/yellow]", "bad": "[red]no[/red]"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `hint` says what to do where it is not good."""

    name: str
    verdict: Verdict
    seen: str
    hint: str = ""


def doctor(
    region: Annotated[
        list[str] | None, typer.Option(help="Check these regions' stores, instead of all active.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check the installation: zones, versions, catalog, server, pools, stores by writing an object, clock, disk."""
    environ = _with_local_stack(os.environ)
    settings = Settings.read(environ)
    clock = SystemClock()
    checks = list(_checks(settings, environ, region, clock))
    good = all(check.verdict != "bad" for check in checks)
    document = {"ok": good, "checks": [asdict(check) for check in checks]}
    emit(document, lambda console: _tell(console, checks), as_json)
    if not good:
        raise typer.Exit(1)


def _checks(settings: Settings, environ: Mapping[str, str], regions: list[str] | None, clock: Clock) -> Iterator[Check]:
    yield python_check(sys.version_info[:2])
    yield from version_checks()
    catalog, faults = inspect(settings.catalog)
    yield catalog_check(settings.catalog, catalog, [str(fault) for fault in faults])
    zones = sorted({place.timezone for place in catalog.regions.values()}) if catalog else ["Europe/Berlin"]
    yield zone_check(zones)
    yield disk_check(settings.home)
    yield database_check(settings)
    api_url = environ.get("PREFECT_API_URL")
    yield from server_checks(api_url, settings, catalog, clock)
    if catalog is not None:
        sites = Sites(settings, catalog)
        active = [name for name, place in catalog.regions.items() if place.status == "active"]
        for name in regions or (sorted(settings.sites) or active):
            if name not in settings.sites and name in catalog.regions and catalog.regions[name].provider == "local":
                yield Check(f"store of {name}", "warning", "it comes with the local stack", "nightrelay up")
            else:
                yield store_check(sites, name, clock)


def python_check(running: tuple[int, ...]) -> Check:
    """Say whether this Python is one of those the product is tested on."""
    text = ".".join(map(str, running))
    if _PYTHONS[0] <= running <= _PYTHONS[1]:
        return Check("python", "good", text)
    return Check("python", "bad", text, "use Python 3.11, 3.12 or 3.13")


def version_checks() -> Iterator[Check]:
    """Name the installed versions of what matters."""
    for package in _PACKAGES:
        try:
            yield Check(f"version of {package}", "good", version(package))
        except PackageNotFoundError:
            hint = (
                "install nightrelay anew (make setup)" if package != "nightrelay" else "run from a checkout: make setup"
            )
            yield Check(f"version of {package}", "bad", "not installed", hint)


def catalog_check(folder: Path, catalog: Catalog | None, faults: list[str]) -> Check:
    """Say whether the region files can be read."""
    if catalog is not None:
        return Check("region files", "good", f"{len(catalog.regions)} regions in {folder}")
    seen = f"{len(faults)} faults in {folder}, the first: {faults[0]}" if faults else f"none in {folder}"
    return Check("region files", "bad", seen, "nightrelay regions check")


def zone_check(zones: list[str]) -> Check:
    """Say whether zone data are there, and know the rules that are in force."""
    missing = []
    for zone in zones:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            missing.append(zone)
    if missing:
        return Check(
            "zone data", "bad", f"missing: {', '.join(missing)}", "install tzdata, or correct the region files"
        )
    summer = datetime(2026, 7, 1, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin")).utcoffset()
    winter = datetime(2026, 12, 1, tzinfo=UTC).astimezone(ZoneInfo("Europe/Berlin")).utcoffset()
    if (summer, winter) != (timedelta(hours=2), timedelta(hours=1)):
        return Check("zone data", "bad", "Berlin's summer time is wrong", "bring tzdata up to date")
    return Check("zone data", "good", f"{len(zones)} zones")


def disk_check(home: Path) -> Check:
    """Say whether there is room where state is kept."""
    existing = next((folder for folder in (home, *home.parents) if folder.exists()), Path("/"))
    free = shutil.disk_usage(existing).free
    if not os.access(existing, os.W_OK):
        return Check("disk", "bad", f"{existing} cannot be written", "set NIGHTRELAY_HOME to a folder of yours")
    verdict: Verdict = "good" if free >= _LEAST_FREE else "warning"
    return Check("disk", verdict, f"{free >> 20} MiB free at {existing}", "" if verdict == "good" else "make room")


def database_check(settings: Settings) -> Check:
    """Say whether the journal can be opened."""
    from flows.journal import Journal

    def look() -> str:
        settings.home.mkdir(parents=True, exist_ok=True)
        return f"{len(Journal.open(settings.database_url).runs())} runs"

    return _tried("journal", look, "see NIGHTRELAY_DATABASE_URL")


def server_checks(api_url: str | None, settings: Settings, catalog: Catalog | None, clock: Clock) -> Iterator[Check]:
    """Say whether the Prefect server answers, agrees on the time and version, and has what the region files ask for."""
    if api_url is None:
        taken = listening(PREFERRED)
        seen = f"no server known; port {PREFERRED} is {'in use' if taken else 'free'}"
        yield Check("prefect server", "warning", seen, "start one (nightrelay up), or set PREFECT_API_URL")
        return
    import httpx

    began = clock.real()
    try:
        answer = httpx.get(f"{api_url}/admin/version", timeout=10)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        yield Check("prefect server", "bad", f"{api_url}: {error}", "nightrelay up, or set PREFECT_API_URL")
        return
    server, client = str(answer.json()), version("prefect")
    same = server.split(".")[:2] == client.split(".")[:2]
    hint = "" if same else f"use the same minor version as here ({client})"
    yield Check("prefect server", "good" if same else "warning", f"{api_url}, version {server}", hint)
    if "Date" in answer.headers:
        told = datetime.strptime(answer.headers["Date"], "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=UTC)
        yield skew_check("clock of the prefect server", told, began, clock.real() + timedelta(seconds=1))
    if catalog is not None:
        yield _pools_check(api_url, settings)


def _pools_check(api_url: str, settings: Settings) -> Check:
    from flows.commands.apply import wish_for
    from infra.deploying import apply as apply_to

    def look() -> str:
        changes = apply_to(api_url, wish_for(settings.catalog, sorted(settings.sites) or None), dry_run=True)
        return f"differ from the region files in {len(changes)} places" if changes else ""

    found = _tried("pools and deployments", look, "nightrelay up")
    if found.verdict == "bad":
        return found
    if found.seen:
        return Check(found.name, "warning", found.seen, "nightrelay apply --dry-run shows them")
    return Check(found.name, "good", "as the region files have them")


def store_check(sites: Sites, region: str, clock: Clock) -> Check:
    """Say whether a region's store can be written and read with the credentials at hand, and agrees on the time."""
    key = f"doctor/{uuid4().hex}"
    name = f"store of {region}"

    def look() -> str:
        place, store = sites.place(region), sites.store(region)
        began = clock.real()
        store.put(key, b"nightrelay doctor")
        try:
            if store.get(key) != b"nightrelay doctor":
                return "what was written is not what is read"
            skew = skew_check(name, store.head(key).modified, began, clock.real())
        finally:
            store.delete(key)
        return f"{place.url} " + ("written and read" if skew.verdict == "good" else f"works, but {skew.seen}")

    found = _tried(name, look, "check the region file's url, and the cloud's credentials (its own variables or files)")
    if found.verdict == "good" and ", but" in found.seen:
        return Check(name, "warning", found.seen, "set the clocks (NTP)")
    return found


def skew_check(name: str, told: datetime, earliest: datetime, latest: datetime) -> Check:
    """Say how far another clock is off, which told its time between two instants of ours (whole seconds)."""
    early, late = earliest - timedelta(seconds=1) - told, told - latest
    off = max(early, late, timedelta(0))
    if off <= _MOST_SKEW:
        return Check(name, "good", "agrees with this machine's")
    direction = "behind" if early > late else "ahead of"
    return Check(
        name, "warning", f"its clock is {off.total_seconds():.0f} s {direction} this machine's", "set the clocks"
    )


def _tried(name: str, look: Callable[[], str], hint: str) -> Check:
    """Look, and turn what goes wrong into a finding: a doctor does not fall ill."""
    try:
        return Check(name, "good", look())
    except NightrelayError as error:
        return Check(name, "bad", error.message, hint)
    except Exception as error:
        return Check(name, "bad", f"{type(error).__name__}: {error}", hint)


def _with_local_stack(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the addresses and keys of the local stack put under it, if one was started."""
    layout = Layout(Settings.read(environ).home.resolve())
    state = read_state(layout.state)
    if state is None:
        return dict(environ)
    local = {"PREFECT_API_URL": state.api_url, "NIGHTRELAY_SITES": str(layout.sites)}
    if state.stores == "s3":
        local["AWS_SHARED_CREDENTIALS_FILE"] = str(layout.side("control") / "credentials")
        # Credentials are read by the stores themselves, from this process's environment.
        os.environ.setdefault("AWS_SHARED_CREDENTIALS_FILE", local["AWS_SHARED_CREDENTIALS_FILE"])
    return {**local, **environ}


def _tell(console: Console, checks: list[Check]) -> None:
    for check in checks:
        console.print(f"{_SIGNS[check.verdict]}  {check.name}: ", end="")
        console.print(check.seen, markup=False, soft_wrap=True)
        if check.hint and check.verdict != "good":
            console.print(f"      {check.hint}", style="dim", markup=False, soft_wrap=True)
