"""Keeps the very files of each catalog a run was planned by, so that later edits never change what was charged."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

from flows.journal import Journal
from regions.clock import Clock
from regions.errors import IntegrityError
from regions.load import load
from regions.model import Catalog

Stamp = tuple[tuple[str, int, int], ...]

_cache: dict[str, Catalog] = {}
_stamps: dict[Path, tuple[Stamp, str]] = {}


def current(journal: Journal, folder: Path, clock: Clock) -> Catalog:
    """Load the catalog as it stands, and keep its files under its digest. Files that did not change are not read."""
    stamp = _stamp(folder)
    seen = _stamps.get(folder)
    if seen is not None and seen[0] == stamp:
        return _cache[seen[1]]
    catalog = load(folder, now=clock.now())
    files = {str(path.relative_to(folder)): base64.b64encode(path.read_bytes()).decode() for path in _files(folder)}
    journal.keep_catalog(catalog.digest, {"files": files}, clock.real())
    _cache[catalog.digest] = catalog
    _stamps[folder] = (stamp, catalog.digest)
    return catalog


def _files(folder: Path) -> list[Path]:
    kinds = (".yaml", ".yml", ".csv", ".parquet")
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in kinds)


def _stamp(folder: Path) -> Stamp:
    return tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in _files(folder))


def kept(journal: Journal, digest: str) -> Catalog:
    """Return the catalog of a digest as it was; IntegrityError where the journal's files give another one."""
    if digest not in _cache:
        document: dict[str, Any] = journal.catalog(digest)
        with tempfile.TemporaryDirectory(prefix="nightrelay-catalog-") as scratch:
            for name, content in document["files"].items():
                path = Path(scratch) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(base64.b64decode(content))
            catalog = load(Path(scratch))
        if catalog.digest != digest:
            raise IntegrityError(f"the journal's files of catalog {digest} give {catalog.digest}")
        _cache[digest] = catalog
    return _cache[digest]
