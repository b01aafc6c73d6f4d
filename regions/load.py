"""A folder of YAML files -> one immutable Catalog with a digest, or one error that lists every fault of every file.

The only module of regions that reads files. Faults of one file never hide another's: files that are sound alone are
also checked against each other (link ends, currencies with rates, series, ids, jurisdictions).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import blake3
from pydantic import BeforeValidator, Field, model_validator

from regions.documents import Document, checked, nearest, read_document
from regions.errors import Fault, NotFoundError, RegionFileError
from regions.fields import Amount, Basis, Currency, Day, Section
from regions.model import Link, Region
from regions.money import FxTable, Rate
from regions.policy import Policy

ANYWHERE = "default"
"""In a link's `from` or `to`: any region."""
_SHARED = ("links", "fx", "policy")
SHIPPED = Path(__file__).parent / "catalog"
"""The catalog that comes with Nightrelay."""


class RateRow(Section):
    """One dated rate."""

    source_currency: Currency = Field(alias="from")
    target_currency: Currency = Field(alias="to")
    rate: Annotated[Amount, Field(gt=0)]
    as_of: Day
    basis: Basis
    source: str


class FxFile(Section):
    """fx.yaml."""

    rates: tuple[RateRow, ...] = ()


def _rows(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class LinksFile(Section):
    """links.yaml: rows per directed pair, and `default` rows for what no pair names."""

    links: tuple[Link, ...] = ()
    default: Annotated[tuple[Link, ...], BeforeValidator(_rows)] = ()
    """Rows whose `from` or `to` may be left out: then they hold for any region."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_may_leave_ends_out(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("default") is not None:
            rows = [data["default"]] if isinstance(data["default"], dict) else data["default"]
            if isinstance(rows, list):
                ends = {"from": ANYWHERE, "to": ANYWHERE}
                rows = [ends | row if isinstance(row, dict) else row for row in rows]
            return {**data, "default": rows}
        return data


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything known about where and at what price; `digest` changes with any byte of any file it was read from."""

    regions: Mapping[str, Region]
    links: tuple[Link, ...]
    fx: FxTable
    policy: Policy
    digest: str
    warnings: tuple[Fault, ...] = ()
    """What is allowed but should be looked at: stale prices, drafts."""
    _index: Mapping[tuple[str, str], Link] = field(default_factory=dict, repr=False, compare=False)

    def region(self, name: str) -> Region:
        """Return a region; NotFoundError names the nearest id."""
        if name in self.regions:
            return self.regions[name]
        near = nearest(name, sorted(self.regions))
        hint = f"did you mean {near}?" if near else f"known: {', '.join(sorted(self.regions)) or 'none'}"
        raise NotFoundError(f"no region {name!r} in the catalog; {hint}")

    def link(self, source: str, target: str) -> Link | None:
        """Return the link of a directed pair: its own row, else a default of its source, of its target, of any."""
        for pair in ((source, target), (source, ANYWHERE), (ANYWHERE, target), (ANYWHERE, ANYWHERE)):
            if pair in self._index:
                return self._index[pair]
        return None


def load(folder: Path, *, now: datetime | None = None) -> Catalog:
    """Return the catalog of a folder; RegionFileError lists all faults. With `now`, stale prices become warnings."""
    catalog, faults = inspect(folder, now=now)
    if catalog is None or faults:
        files = len({fault.file for fault in faults})
        raise RegionFileError(f"{_count(len(faults), 'fault')} in {_count(files, 'file')} of {folder}:", faults)
    return catalog


def inspect(folder: Path, *, now: datetime | None = None) -> tuple[Catalog | None, tuple[Fault, ...]]:
    """Return the catalog (None where there are faults) and every fault. Never raises for what a file says."""
    reading = _Reading(folder)
    files = reading.files()
    if not reading.faults and not files:
        reading.faults.append(
            Fault(str(folder), None, "(the folder)", "no *.yaml file", "region files", "see regions/catalog")
        )
    for path in files:
        if path.stem not in _SHARED:
            reading.region(path)
    links = reading.shared("links", LinksFile) or LinksFile()
    rates = reading.shared("fx", FxFile) or FxFile()
    policy = reading.shared("policy", Policy) or reading.shipped_policy()
    reading.check_links(links)
    if reading.has("policy"):
        reading.check_jurisdictions(policy)
    if reading.faults:
        return None, reading.sorted_faults()
    rows = (*links.links, *links.default)
    index = {(row.source_region, row.target_region): row for row in reversed(rows)}
    fx = FxTable(tuple(_rate(row) for row in rates.rates))
    regions = {name: region for name, (region, _) in sorted(reading.regions.items())}
    catalog = Catalog(MappingProxyType(regions), rows, fx, policy, reading.digest(), (), MappingProxyType(index))
    return catalog, ()


class _Reading:
    """One pass over a folder: what was read, and what was wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.regions: dict[str, tuple[Region, Document]] = {}
        self.documents: dict[str, Document] = {}
        self.faults: list[Fault] = []
        self._digests: dict[str, str] = {}

    def files(self) -> list[Path]:
        if not self.folder.is_dir():
            self.faults.append(Fault(str(self.folder), None, "(the folder)", "nothing", "a folder of region files"))
            return []
        return sorted(path for path in self.folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())

    def has(self, stem: str) -> bool:
        return stem in self.documents

    def digest(self) -> str:
        text = "".join(f"{name} {digest}\n" for name, digest in sorted(self._digests.items()))
        return blake3.blake3(text.encode()).hexdigest()

    def sorted_faults(self) -> tuple[Fault, ...]:
        return tuple(sorted(dict.fromkeys(self.faults), key=lambda fault: (fault.file, fault.line or 0, fault.field)))

    def document(self, path: Path) -> Document | None:
        content = self._bytes(path)
        if content is None:
            return None
        try:
            document = read_document(content.decode("utf-8-sig"), path.name)
        except UnicodeDecodeError:
            self.faults.append(Fault(path.name, None, "(the file)", "bytes that are not UTF-8", "YAML in UTF-8"))
            return None
        except RegionFileError as error:
            self.faults.extend(error.faults)
            return None
        self.documents[path.stem] = document
        return document

    def _bytes(self, path: Path) -> bytes | None:
        try:
            content = path.read_bytes()
        except OSError as error:
            self.faults.append(Fault(path.name, None, "(the file)", error.strerror or str(error), "a readable file"))
            return None
        self._digests[path.relative_to(self.folder).as_posix()] = blake3.blake3(content).hexdigest()
        return content

    def region(self, path: Path) -> None:
        document = self.document(path)
        if document is None:
            return
        region, faults = checked(Region, document)
        self.faults.extend(faults)
        self._check_id(path, document)
        if region is not None:
            self.regions.setdefault(region.id, (region, document))
            self._check_region(region, document)

    def shared(self, stem: str, model: type[Any]) -> Any:
        path = next((path for path in self.files() if path.stem == stem), None)
        document = self.document(path) if path is not None else None
        if document is None:
            return None
        data: Any = document.data if document.data is not None else {}
        if stem == "links" and isinstance(data, list):
            lines = {("links", *where): line for where, line in document.lines.items()}
            document = Document(document.file, {"links": data}, lines, document.faults)
        value, faults = checked(model, document if document.data is not None else Document(document.file, {}, {}))
        self.faults.extend(faults)
        return value

    def shipped_policy(self) -> Policy:
        text = (SHIPPED / "policy.yaml").read_text(encoding="utf-8")
        policy, faults = checked(Policy, read_document(text, "policy.yaml"))
        if policy is None:
            raise RegionFileError("the shipped policy.yaml is broken:", faults)
        return policy

    def _check_id(self, path: Path, document: Document) -> None:
        name = document.data.get("id") if isinstance(document.data, dict) else None
        if not isinstance(name, str):
            return
        if name in self.regions:
            other = self.regions[name][1].file
            self.faults.append(document.fault(("id",), name, "an id of its own", f"{other} has it already"))
        if name != path.stem:
            self.faults.append(
                document.fault(("id",), name, f'"{path.stem}", as the file is called', "rename one of them")
            )

    def _check_region(self, region: Region, document: Document) -> None:
        seen: set[str] = set()
        for index, offer in enumerate(region.offers):
            if offer.id in seen:
                self.faults.append(
                    document.fault(("offers", index, "id"), offer.id, "an offer id of its own in this file")
                )
            seen.add(offer.id)

    def check_links(self, links: LinksFile) -> None:
        document = self.documents.get("links")
        if document is None:
            return
        known = sorted(self.documents.keys() - set(_SHARED))
        for section, rows in (("links", links.links), ("default", links.default)):
            for index, row in enumerate(rows):
                for end, name in (("from", row.source_region), ("to", row.target_region)):
                    if name != ANYWHERE and name not in known:
                        near = nearest(name, known)
                        hint = f"did you mean {near}?" if near else "add the region's file, or take the row out"
                        self.faults.append(document.fault((section, index, end), name, "a region of this folder", hint))

    def check_jurisdictions(self, policy: Policy) -> None:
        if policy.jurisdictions is None:
            return
        for region, document in self.regions.values():
            name = region.residency.jurisdiction
            if name not in policy.jurisdictions:
                near = nearest(name, policy.jurisdictions)
                hint = f"did you mean {near}?" if near else "add it to jurisdictions in policy.yaml"
                expected = f"one of {', '.join(policy.jurisdictions)}"
                self.faults.append(document.fault(("residency", "jurisdiction"), name, expected, hint))


def _rate(row: RateRow) -> Rate:
    return Rate(row.source_currency, row.target_currency, row.rate, row.as_of, row.basis, row.source)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
