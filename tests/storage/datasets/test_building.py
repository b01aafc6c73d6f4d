"""Sources of every kind come in whole; results are found by what they were made of; killed builds go on."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from regions.errors import InputError, NotFoundError
from storage.datasets import Cut, open_dataset
from storage.datasets.building import Recipe, Text, build, find, note
from storage.objects import open_store

ROWS = [{"name": f"n{number}", "value": number} for number in range(50)]


def as_parquet(folder: Path) -> Path:
    parquet.write_table(pa.Table.from_pylist(ROWS), folder / "rows.parquet", row_group_size=7)
    return folder / "rows.parquet"


def as_jsonl(folder: Path) -> Path:
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    return folder / "rows.jsonl"


def as_zipped_jsonl(folder: Path) -> Path:
    (folder / "rows.jsonl.gz").write_bytes(gzip.compress(as_jsonl(folder).read_bytes()))
    return folder / "rows.jsonl.gz"


def as_huggingface(folder: Path) -> Path:
    """What `Dataset.save_to_disk` leaves: Arrow streams and a state that names them."""
    where = folder / "huggingface"
    where.mkdir()
    table = pa.Table.from_pylist(ROWS)
    names = []
    for number in range(2):
        names.append(f"data-{number:05d}-of-00002.arrow")
        with pa.ipc.new_stream(where / names[-1], table.schema.with_metadata({"huggingface": "{}"})) as stream:
            stream.write_table(table.slice(25 * number, 25))
    (where / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    return where


def as_mds(folder: Path, compression: str | None = None) -> Path:
    """Two shards in MosaicML's layout: count, offsets, then for each sample the varying sizes and the values."""
    where = folder / "mds"
    where.mkdir()
    shards = []
    for number in range(2):
        samples = []
        for row in ROWS[25 * number : 25 * number + 25]:
            name = str(row["name"]).encode()
            samples.append(struct.pack("<I", len(name)) + name + struct.pack("<q", row["value"]))
        start = 4 + 4 * (len(samples) + 1)
        offsets = [start]
        for sample in samples:
            offsets.append(offsets[-1] + len(sample))
        data = struct.pack(f"<I{len(offsets)}I", len(samples), *offsets) + b"".join(samples)
        raw = {"basename": f"shard.{number:05d}.mds", "bytes": len(data), "hashes": {}}
        shard = {
            "column_names": ["name", "value"], "column_encodings": ["str", "int"], "column_sizes": [None, 8],
            "compression": compression, "raw_data": raw, "zip_data": None, "samples": len(samples), "format": "mds",
        }  # fmt: skip
        if compression:
            shard["zip_data"] = {"basename": raw["basename"] + ".zstd", "bytes": 0, "hashes": {}}
            (where / shard["zip_data"]["basename"]).write_bytes(pa.compress(data, codec="zstd", asbytes=True))
        else:
            (where / raw["basename"]).write_bytes(data)
        shards.append(shard)
    (where / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))
    return where


def as_zipped_mds(folder: Path) -> Path:
    return as_mds(folder, "zstd:3")


def rows_of(url: str) -> list[dict[str, object]]:
    reader = open_dataset(url, batch=8, shuffle=False, epochs=1, environ={})
    return [
        {"name": name, "value": value}
        for batch in reader
        for name, value in zip(batch["name"], batch["value"].tolist(), strict=True)
    ]


@pytest.mark.parametrize("make", [as_parquet, as_jsonl, as_zipped_jsonl, as_huggingface, as_mds, as_zipped_mds])
def test_every_kind_of_source_comes_in_whole(tmp_path: Path, make) -> None:
    url = (tmp_path / "dataset").as_uri()
    manifest, found = build(url, [make(tmp_path)], cut=Cut(block_bytes=200, shard_bytes=600))
    assert not found and manifest.rows == 50 and len(manifest.shards) > 1
    assert rows_of(f"{url}/{manifest.key}") == ROWS


def test_a_tar_of_samples_becomes_rows(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "samples.tar", "w") as archive:
        for number in range(5):
            for suffix, data in (("txt", f"text {number}".encode()), ("cls", str(number).encode())):
                member = tarfile.TarInfo(f"part/{number:03d}.{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    url = (tmp_path / "dataset").as_uri()
    build(url, [tmp_path / "samples.tar"])
    batch = next(iter(open_dataset(url, batch=5, shuffle=False, environ={})))
    assert batch["__key__"] == [f"part/00{number}" for number in range(5)]
    assert batch["txt"] == [f"text {number}".encode() for number in range(5)] and batch["cls"][3] == b"3"


def test_text_is_lines_or_samples(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt").write_text("three\n")
    (tmp_path / "short.txt").write_text("x")
    lines = (tmp_path / "lines").as_uri()
    build(lines, [tmp_path / "a.txt", tmp_path / "b.txt"])
    assert next(iter(open_dataset(lines, batch=9, shuffle=False, environ={})))["text"] == ["one", "two", "three"]
    samples = (tmp_path / "samples").as_uri()
    build(samples, [tmp_path / "short.txt", tmp_path / "a.txt"], text=Text(4, 2))
    batch = next(iter(open_dataset(samples, batch=9, shuffle=False, environ={})))
    assert [bytes(row) for row in batch["tokens"]] == [b"one\n", b"e\ntw", b"two\n"]
    with pytest.raises(InputError, match="none of 1 sources gave a sample"):
        build(samples, [tmp_path / "short.txt"], text=Text(4))


def test_the_second_who_needs_it_finds_it(tmp_path: Path) -> None:
    url = (tmp_path / "dataset").as_uri()
    source = as_jsonl(tmp_path)
    first, _ = build(url, [source])
    again, found = build(url, [source])
    assert found and again.digest == first.digest
    assert not build(url, [source], cut=Cut(compression="zstd"))[1]
    source.write_text(source.read_text() + '{"name": "more", "value": 1}\n')
    more, found = build(url, [source])
    assert not found and more.rows == 51

    store = open_store(url)
    store.delete(first.shards[0].name)
    source.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    assert not build(url, [source])[1] and build(url, [source])[1]


def test_any_result_can_be_noted_under_its_recipe(tmp_path: Path) -> None:
    url = (tmp_path / "dataset").as_uri()
    manifest, _ = build(url, [as_jsonl(tmp_path)])
    recipe = Recipe(("input digest",), code="tokenize.py digest", parameters={"vocabulary": 512})
    store = open_store(url)
    assert find(store, recipe) is None
    note(store, recipe, manifest)
    found = find(store, Recipe(("input digest",), code="tokenize.py digest", parameters={"vocabulary": 512}))
    assert found is not None and found.digest == manifest.digest
    assert find(store, Recipe(("input digest",), code="tokenize.py digest", parameters={"vocabulary": 513})) is None


def test_a_killed_build_goes_on_with_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.datasets import importing

    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({"name": "x", "value": number}) + "\n")
    sources = [tmp_path / f"{number}.jsonl" for number in range(3)]
    url = (tmp_path / "dataset").as_uri()
    read, asked = importing.read, []

    def counting(path: Path):
        asked.append(path.name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return read(path)

    monkeypatch.setattr(importing, "read", counting)
    with pytest.raises(KeyboardInterrupt):
        build(url, sources)
    manifest, _ = build(url, sources)
    assert asked == ["0.jsonl", "1.jsonl", "2.jsonl", "2.jsonl"]
    monkeypatch.undo()
    assert manifest.digest == build((tmp_path / "other").as_uri(), sources)[0].digest


def test_several_workers_build_the_same(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS[number:]))
    one, _ = build((tmp_path / "one").as_uri(), [tmp_path / f"{number}.jsonl" for number in range(3)])
    two, _ = build((tmp_path / "two").as_uri(), [tmp_path / f"{number}.jsonl" for number in range(3)], workers=2)
    assert one.digest == two.digest and one.statistics["value"]["max_value"] == 49


def test_what_cannot_be_imported_is_refused_by_name(tmp_path: Path) -> None:
    url = (tmp_path / "dataset").as_uri()
    with pytest.raises(NotFoundError, match="does not exist"):
        build(url, [tmp_path / "ghost"])
    (tmp_path / "odd.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="of no kind that can be imported"):
        build(url, [tmp_path / "odd.bin"])
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\nnot json\n')
    with pytest.raises(InputError, match=r"bad.jsonl:2 is no JSON"):
        build(url, [tmp_path / "bad.jsonl"])
    (tmp_path / "other.jsonl").write_text('{"b": "x"}\n')
    with pytest.raises(InputError, match="build them apart"):
        build(url, [as_jsonl(tmp_path), tmp_path / "other.jsonl"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds nothing that can be imported"):
        build(url, [tmp_path / "empty"])
