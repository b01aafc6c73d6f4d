"""What a process is told by its environment; read once at the door, passed on as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regions.clock import SystemClock, clock_from
from regions.errors import Fault, SettingsError

PROJECT = Path(__file__).resolve().parent.parent
"""The checkout (or site-packages) that holds the shipped catalog and examples."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a region's store really is: its URL, and the endpoint to reach it by where the URL does not say."""

    url: str
    endpoint: str | None = None

    def document(self) -> dict[str, str | None]:
        """Return the site as orders, batons and parameters carry it: never with credentials."""
        return {"url": self.url, "endpoint": self.endpoint}


@dataclass(frozen=True, slots=True)
class Settings:
    """The environment of one process, checked. `sites` overrides the stores named in region files, by region."""

    home: Path
    catalog: Path
    runs: tuple[Path, ...]
    database_url: str
    clock: SystemClock
    sites: Mapping[str, Site]
    work: Path
    api_url: str | None = None
    """The Prefect server's API (PREFECT_API_URL)."""

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables docs/contracts lists; SettingsError lists every one that is wrong."""
        home = Path(environ.get("NIGHTRELAY_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".nightrelay")
        own_runs = [Path(environ["NIGHTRELAY_RUNS"])] if environ.get("NIGHTRELAY_RUNS") else []
        return cls(
            home=home,
            catalog=Path(environ.get("NIGHTRELAY_CATALOG") or PROJECT / "regions" / "catalog"),
            runs=(*own_runs, PROJECT / "examples" / "runs"),
            database_url=environ.get("NIGHTRELAY_DATABASE_URL") or f"sqlite:///{home / 'journal.db'}",
            clock=clock_from(environ),
            sites=_sites(environ.get("NIGHTRELAY_SITES", "")),
            work=Path(environ.get("NIGHTRELAY_WORK") or home / "work"),
            api_url=environ.get("PREFECT_API_URL"),
        )


def _sites(text: str) -> dict[str, Site]:
    """Read NIGHTRELAY_SITES: a JSON object of region to {url, endpoint}, or the path of a file that holds one."""
    if not text.strip():
        return {}
    try:
        source = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
        return {region: Site(site["url"], site.get("endpoint")) for region, site in json.loads(source).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        expected = 'JSON such as {"local-berlin": {"url": "s3://...", "endpoint": null}}, or a file with it'
        fault = Fault("environment", None, "NIGHTRELAY_SITES", f"{text[:80]!r} ({error})", expected)
        raise SettingsError("NIGHTRELAY_SITES cannot be read:", [fault]) from error
