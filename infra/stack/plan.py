"""What a local stack consists of, and where each part keeps its files. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CONTROL = "control"
"""The control side's work pool, and the name of its worker."""
SERVER = "server"


@dataclass(frozen=True, slots=True)
class Extra:
    """One more resident process of the control side: a Python module, run with the control side's environment."""

    name: str
    module: str


@dataclass(frozen=True, slots=True)
class StackPlan:
    """What to start. `limits` are the most legs at once of each region, as processes of its worker."""

    home: Path
    limits: Mapping[str, int]
    stores: Literal["files", "s3"] = "files"
    """files: folders below `home`, so nothing is lost when the stack stops. s3: servers that hold all in memory."""
    port: int | None = None
    """The Prefect server's; None: 4200 if it is free, else any free one."""
    extras: tuple[Extra, ...] = ()
    control: Mapping[str, str] = field(default_factory=dict)
    """NIGHTRELAY_ variables of the control side: catalog, runs, database, clock."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """NIGHTRELAY_ variables of the regions as well: the clock."""
    templates: Path | None = None
    """Where migrated empty databases are kept for later stacks; None: below `home`."""

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions, in a fixed order."""
        return tuple(sorted(self.limits))

    @property
    def layout(self) -> Layout:
        """Where everything lies."""
        return Layout(self.home)


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders below a stack's home."""

    home: Path

    @property
    def state(self) -> Path:
        """What runs: names, pids, addresses."""
        return self.home / "stack.json"

    @property
    def sites(self) -> Path:
        """Where each region's store is: what NIGHTRELAY_SITES names."""
        return self.home / "sites.json"

    @property
    def lock(self) -> Path:
        """Held by whoever starts or stops the stack."""
        return self.home / "stack.lock"

    def side(self, name: str) -> Path:
        """Return the folder of the server, the control side or a region: nothing in it is for others to read."""
        return self.home / "sides" / name

    def store(self, region: str) -> Path:
        """Return a region's store, where it is a folder."""
        return self.home / "stores" / region

    def log(self, name: str) -> Path:
        """Return a program's log."""
        return self.home / "logs" / f"{name}.log"
