"""Builds a dataset from sources, several at once, and finds it again: results are keyed by what they were made of.

A recipe is the digests of the inputs, the code that reads them and its parameters. Each source's shards are noted
under the recipe when they are done, so a build that was killed goes on with the rest; the finished dataset is noted
as well, so whoever needs the same again, in any run, team or region that has it, finds it instead of building it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
from blake3 import blake3

from regions.errors import InputError, NotFoundError
from storage.datasets import importing
from storage.datasets.manifest import Blocks, Manifest, Shard
from storage.datasets.rows import from_text
from storage.datasets.shards import Cut, join, stands, write_shards
from storage.objects import Store, open_store

CODE = "nightrelay-build/1"
"""Changes whenever the same input would give other rows or shards."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a result was made of: equal recipes have equal results. `inputs` are digests, `code` names the program."""

    inputs: tuple[str, ...]
    code: str = CODE
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The recipe's identity."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return str(blake3(text.encode()).hexdigest())

    def key(self, folder: str = "") -> str:
        """Return where the result of this recipe is noted in a folder of a store."""
        return join(folder, f"recipes/{self.digest}.json")


@dataclass(frozen=True, slots=True)
class Text:
    """Read text sources as samples of `length` bytes, each beginning `stride` after the one before."""

    length: int
    stride: int | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """One source's shards."""

    schema: bytes
    shards: tuple[Shard, ...]
    blocks: Blocks
    statistics: Mapping[str, Mapping[str, Any]]


def find(store: Store, recipe: Recipe, folder: str = "") -> Manifest | None:
    """Return the dataset that this recipe has given before, if the store holds all of it."""
    try:
        name = json.loads(store.get(recipe.key(folder)))["manifest"]
        manifest = Manifest.parse(store.get(join(folder, name)), name)
    except NotFoundError:
        return None
    whole = all(stands(store, join(folder, key), size) for key, size, _ in manifest.items())
    return manifest if whole else None


def note(store: Store, recipe: Recipe, manifest: Manifest, folder: str = "") -> None:
    """Note that this recipe gives this dataset."""
    store.put(recipe.key(folder), json.dumps({"manifest": manifest.key}).encode())


def build(
    url: str,
    paths: Sequence[Path],
    *,
    cut: Cut | None = None,
    text: Text | None = None,
    workers: int = 1,
    about: Mapping[str, str] | None = None,
) -> tuple[Manifest, bool]:
    """Build a dataset at a URL from files and folders; return its manifest and whether it was found, not built."""
    cut, store = cut or Cut(), open_store(url)
    sources = [source for path in paths for source in importing.sources_of(path)]
    digests = [_digest(source) for source in sources]
    parameters = {"cut": asdict(cut), "text": asdict(text) if text else None, "about": dict(about or {})}
    recipe = Recipe(tuple(digests), parameters=parameters)
    found = find(store, recipe)
    if found is not None:
        return found, True
    jobs = [
        (url, source, Recipe((digest,), parameters=parameters).digest, cut, text)
        for source, digest in zip(sources, digests, strict=True)
    ]
    if workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(_build_part, jobs))
    else:
        parts = [_build_part(job) for job in jobs]
    filled = [(source, part) for source, part in zip(sources, parts, strict=True) if part is not None]
    if not filled:
        raise InputError(f"none of {len(sources)} sources gave a sample: nothing to build", kind="empty-dataset")
    manifest = _joined(filled, cut, about or {})
    store.put(manifest.key, manifest.data)
    note(store, recipe, manifest)
    return manifest, False


def _build_part(job: tuple[str, Path, str, Cut, Text | None]) -> _Part | None:
    """Build one source's shards, or find those that an earlier build has finished; None where it gives no sample."""
    url, source, key, cut, text = job
    store = open_store(url)
    found = _found_part(store, key)
    if found is not None:
        return found
    rows = _rows(source, text)
    first = next(rows, None)
    if first is None:
        return None
    schema, written, statistics = write_shards(store, chain([first], rows), cut)
    shards = tuple(shard for shard, _ in written)
    part = _Part(schema, shards, Blocks.joined([blocks for _, blocks in written]), statistics)
    document = {
        "schema": schema.hex(),
        "shards": [[s.name, s.rows, s.size, s.digest, s.blocks] for s in shards],
        "blocks": part.blocks.document(),
        "statistics": part.statistics,
    }
    store.put(f"parts/{key}.json", json.dumps(document).encode())
    return part


def _found_part(store: Store, key: str) -> _Part | None:
    try:
        document = json.loads(store.get(f"parts/{key}.json"))
    except NotFoundError:
        return None
    shards = tuple(Shard(*entry) for entry in document["shards"])
    if not all(stands(store, shard.name, shard.size) for shard in shards):
        return None
    blocks = Blocks.parse(document["blocks"])
    return _Part(bytes.fromhex(document["schema"]), shards, blocks, document["statistics"])


def _rows(source: Path, text: Text | None) -> Iterator[pa.RecordBatch]:
    if text is None:
        return importing.read(source)
    return from_text([importing.text_of(source)], text.length, stride=text.stride)


def _joined(filled: Sequence[tuple[Path, _Part]], cut: Cut, about: Mapping[str, str]) -> Manifest:
    parts = [part for _, part in filled]
    schema = pa.ipc.read_schema(pa.py_buffer(parts[0].schema))
    for source, part in filled:
        other = pa.ipc.read_schema(pa.py_buffer(part.schema))
        if other != schema:
            raise InputError(
                f"{source} has columns {_told(other)}, but {filled[0][0]} has {_told(schema)}: build them apart",
                kind="import",
            )
    statistics = parts[0].statistics
    for part in parts[1:]:
        statistics = {name: _merged(statistics[name], part.statistics[name]) for name in statistics}
    return Manifest(
        shards=tuple(shard for part in parts for shard in part.shards),
        blocks=Blocks.joined([part.blocks for part in parts]),
        schema=parts[0].schema,
        format=cut.format,
        statistics=statistics,
        about=about,
    )


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for name, value in other.items():
        if name.startswith(("min_", "max_")):
            choose = min if name.startswith("min_") else max
            merged[name] = choose(merged.get(name, value), value)
        elif name != "type":
            merged[name] = merged[name] + value
    return merged


def _told(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _digest(source: Path) -> str:
    """The digest of a source's bytes: of all its files, where it is a folder."""
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file())
    whole = blake3()
    for path in files:
        whole.update(path.relative_to(source.parent).as_posix().encode() if source.is_dir() else path.suffix.encode())
        whole.update(blake3(max_threads=blake3.AUTO).update_mmap(path).digest())
    return str(whole.hexdigest())
