"""A folder of YAML files -> one immutable Catalog with a digest, or one error that lists every fault of every file.

The only module of regions that reads files. A fault of one file or field never hides another's: fields are checked by
the models, the rest by `consistency`, and all of it is reported together.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import blake3

from regions import consistency
from regions.documents import Document, checked, read_document
from regions.errors import Fault, InternalError, RegionFileError
from regions.fields import Section
from regions.model import Catalog, Electricity, Market, Policy, Region
from regions.series import Series, SeriesError, read_series
from regions.tables import FxFile, LinksFile
from regions.warnings import warnings_of

SHIPPED = Path(__file__).parent / "catalog"
"""The catalog that comes with Nightrelay."""
_SHARED = ("links", "fx", "policy")
_S = TypeVar("_S", bound=Section)


def load(folder: Path, *, now: datetime | None = None) -> Catalog:
    """Return the catalog of a folder; RegionFileError lists all faults. With `now`, old prices become warnings."""
    catalog, faults = inspect(folder, now=now)
    if catalog is None:
        files = _count(len({fault.file for fault in faults}), "file")
        raise RegionFileError(f"{_count(len(faults), 'fault')} in {files} of {folder}:", faults)
    return catalog


def inspect(folder: Path, *, now: datetime | None = None) -> tuple[Catalog | None, tuple[Fault, ...]]:
    """Return the catalog, or None and every fault. Never raises for what a file says."""
    reading = _Reading(folder)
    for path in reading.files():
        if path.stem not in _SHARED:
            reading.read_region(path)
    links = reading.read_shared("links", LinksFile) or LinksFile()
    rates = reading.read_shared("fx", FxFile) or FxFile()
    policy = reading.read_shared("policy", Policy) or _shipped_policy()
    reading.check_together(policy)
    if reading.faults:
        return None, reading.sorted_faults()
    catalog = Catalog(
        regions=MappingProxyType(dict(sorted(reading.regions.items()))),
        links=(*links.links, *links.default),
        fx=rates.table(),
        policy=policy,
        digest=reading.digest(),
    )
    return replace(catalog, warnings=warnings_of(catalog, reading.documents, now)), ()


class _Reading:
    """One pass over a folder: what was read, and what was wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.regions: dict[str, Region] = {}
        self.documents: dict[str, Document] = {}
        """By region id, and links, fx, policy by their names."""
        self.faults: list[Fault] = []
        self._digests: dict[str, str] = {}

    def files(self) -> list[Path]:
        if not self.folder.is_dir():
            self._fault(str(self.folder), "(the folder)", "nothing", "a folder of region files")
            return []
        found = sorted(path for path in self.folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())
        if not found:
            self._fault(str(self.folder), "(the folder)", "no *.yaml file", "region files")
        return found

    def read_region(self, path: Path) -> None:
        document = self._document(path)
        if document is None:
            return
        region, faults = checked(Region, document)
        self.faults += faults
        self.faults += consistency.identity(document, path.stem, self.documents)
        for check in (consistency.offers, consistency.electricity, consistency.calendar):
            self.faults += check(document)
        series = dict(self._series(path, document))
        name = region.id if region is not None else path.stem
        self.documents.setdefault(name, document)
        if region is not None:
            self.regions.setdefault(name, _with_series(region, series))

    def read_shared(self, stem: str, model: type[_S]) -> _S | None:
        path = self.folder / f"{stem}.yaml"
        document = self._document(path) if path.is_file() else None
        if document is None:
            return None
        if stem == "links" and isinstance(document.data, list):
            lines = {("links", *where): line for where, line in document.lines.items()}
            document = replace(document, data={"links": document.data}, lines=lines)
        if document.data is None and stem != "policy":
            document = replace(document, data={})
        value, faults = checked(model, document)
        self.faults += faults
        self.documents[stem] = document
        return value

    def check_together(self, policy: Policy) -> None:
        regions = {name: document for name, document in self.documents.items() if name not in _SHARED}
        if "links" in self.documents:
            self.faults += consistency.link_ends(self.documents["links"], regions)
        if "policy" in self.documents:
            for document in regions.values():
                self.faults += consistency.jurisdiction(document, policy.jurisdictions)

    def digest(self) -> str:
        text = "".join(f"{name} {digest}\n" for name, digest in sorted(self._digests.items()))
        return blake3.blake3(text.encode()).hexdigest()

    def sorted_faults(self) -> tuple[Fault, ...]:
        return tuple(sorted(dict.fromkeys(self.faults), key=lambda fault: (fault.file, fault.line or 0, fault.field)))

    def _document(self, path: Path) -> Document | None:
        content = self._bytes(path)
        try:
            return None if content is None else read_document(content.decode("utf-8-sig"), path.name)
        except UnicodeDecodeError:
            self._fault(path.name, "(the file)", "bytes that are not UTF-8", "YAML in UTF-8")
        except RegionFileError as error:
            self.faults += error.faults
        return None

    def _series(self, path: Path, document: Document) -> list[tuple[str, Series]]:
        found = []
        for where, name in consistency.series_files(document):
            file = path.parent / name
            if Path(name).is_absolute() or ".." in Path(name).parts or not file.is_file():
                expected = "a CSV or Parquet file beside the region file"
                self.faults.append(document.fault(where, name, expected, "the path is relative to the catalog"))
                continue
            content = self._bytes(file)
            try:
                found += [(name, read_series(name, content))] if content is not None else []
            except SeriesError as error:
                self._fault(name, error.column, error.got, error.expected, f"named by {document.file}", error.row)
        return found

    def _bytes(self, path: Path) -> bytes | None:
        name = path.relative_to(self.folder).as_posix()
        try:
            content = path.read_bytes()
        except OSError as error:
            self._fault(name, "(the file)", error.strerror or str(error), "a readable file")
            return None
        self._digests[name] = blake3.blake3(content).hexdigest()
        return content

    def _fault(self, file: str, where: str, got: str, expected: str, hint: str = "", line: int | None = None) -> None:
        self.faults.append(Fault(file, line, where, got, expected, hint))


def _with_series(region: Region, series: dict[str, Series]) -> Region:
    """Return the region with the contents of its series files in place."""
    for offer in region.offers:
        for market in (offer.markets.on_demand, offer.markets.spot):
            _attach(market, series)
    _attach(region.electricity, series)
    return region


def _attach(owner: Market | Electricity | None, series: dict[str, Series]) -> None:
    if owner is not None and owner.series in series:
        owner.attach(series[owner.series])


def _shipped_policy() -> Policy:
    policy, faults = checked(
        Policy, read_document((SHIPPED / "policy.yaml").read_text(encoding="utf-8"), "policy.yaml")
    )
    if policy is None:
        raise InternalError(f"the shipped policy.yaml is broken: {faults[0]}")
    return policy


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
