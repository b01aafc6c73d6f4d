from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from regions.documents import nearest, read_document, validate
from regions.errors import Fault, RegionFileError, RequestError
from regions.yamltext import read_yaml, write_yaml


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    price: str
    count: int = 1


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    rows: tuple[Inner, ...] = ()


def faults(text: str) -> list[Fault]:
    with pytest.raises(RegionFileError) as caught:
        validate(Outer, read_document(text, "file.yaml"))
    return list(caught.value.faults)


def test_every_path_knows_its_line() -> None:
    document = read_document("a: 1\nb:\n  - x: 2\n    y: {z: 3}\n", "f")
    assert document.data == {"a": 1, "b": [{"x": 2, "y": {"z": 3}}]}
    assert [document.line(path) for path in (("a",), ("b", 0), ("b", 0, "y", "z"), ("b", 7), ("nothing",))] == [
        1, 3, 4, 2, 1,
    ]  # fmt: skip


def test_all_faults_come_at_once_with_line_field_and_advice() -> None:
    found = faults('name: 5\nrows:\n  - {prise: "1", count: x}\n  - {price: 22:00, count: 1_000}\nother: 1\n')
    seen = {(fault.line, fault.field) for fault in found}
    assert seen == {
        (1, "name"), (3, "rows[0].prise"), (3, "rows[0].price"), (3, "rows[0].count"),
        (4, "rows[1].price"), (4, "rows[1].count"), (5, "other"),
    }  # fmt: skip
    by_field = {fault.field: fault for fault in found}
    assert by_field["rows[0].prise"].hint == "did you mean price?"
    assert by_field["rows[1].price"].hint.endswith('quote it: "22:00"')
    assert by_field["rows[1].count"].hint.endswith('quote it: "1000"')
    assert by_field["name"].hint == 'quote it: "5"'
    assert by_field["other"].hint == "known here: name, rows"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("22:00", "time"), ("NO", "true or false"), ("yes", "true or false"), ("on", "true or false"),
        ("1_000", "number"), ("0777", "number"), ("0x1F", "number"), ("0b11", "number"), ("1:30:00.5", "number"),
        ("1_0.5", "number"), (".inf", "number"), (".nan", "number"), ("9" * 50, "number"),
    ],
)  # fmt: skip
def test_what_yaml_readers_disagree_about_is_refused(text: str, meant: str) -> None:
    _, lines, found = read_yaml(f"a: 1\nkey: {text}\n", "f")
    assert [(fault.line, fault.field, fault.got) for fault in found] == [(2, "key", text)]
    assert meant in found[0].hint
    assert "quote it" in found[0].hint
    assert read_yaml(f'key: "{text}"', "f")[0] == {"key": text}, "quoted, it is what is written"
    assert lines["key",] == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-1.5", -1.5), ("1e6", 1e6), ("1.2E6", 1.2e6), ("true", True), ("False", False), ("null", None),
        ("~", None), ("", None), ("2026-11-30", "2026-11-30"), ("2026-12-08T08:00:00+08:00",) * 2,
        ("22:00:aa", "22:00:aa"), ("a1e6", "a1e6"), ("1/2", "1/2"), ("nope", "nope"), ("6 min", "6 min"),
    ],
)  # fmt: skip
def test_what_everyone_reads_alike_is_read(text: str, value: object) -> None:
    assert read_yaml(f"key: {text}", "f") == ({"key": value}, {(): 1, ("key",): 1}, ())


def test_keys_twice_merge_keys_tags_and_more_documents_are_refused() -> None:
    _, _, found = read_yaml("a: 1\na: 2\nb: &x {c: 1}\nd: {<<: *x, e: !!python/name:os.system ''}\n---\nf: 1\n", "f")
    assert [(fault.line, fault.got) for fault in found] == [
        (2, '"a"'), (4, "<<"), (4, "the tag tag:yaml.org,2002:python/name:os.system"), (5, "a second document (---)"),
    ]  # fmt: skip


def test_anchors_are_followed_but_never_into_a_flood() -> None:
    assert read_yaml("a: &x [1, 2]\nb: *x\n", "f")[0] == {"a": [1, 2], "b": [1, 2]}
    bomb = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{name}'] * 10)}]\n"
        for name, after in zip("abcdefg", "bcdefgh", strict=True)
    )
    with pytest.raises(RegionFileError, match="aliases"):
        read_document(bomb, "f")


@pytest.mark.parametrize("text", ["a: [1, 2", "a: b: c", "\t- x", "a: *nowhere", "%", "a: \x00", "{" * 3000])
def test_text_that_is_not_yaml_is_a_named_fault(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        validate(Outer, read_document(text, "run.yaml", error=RequestError), error=RequestError)
    assert all(fault.file == "run.yaml" for fault in caught.value.faults)
    assert caught.value.faults


def test_an_empty_file_and_a_list_are_no_mapping() -> None:
    for text in ("", "- 1\n", "just words"):
        [fault] = faults(text)
        assert (fault.field, fault.expected) == ("(the file)", "a mapping of fields (key: value)")


def test_the_nearest_word() -> None:
    assert nearest("timezome", ["timezone", "tariff"]) == "timezone"
    assert nearest("WEEKEND", ["weekend"]) == "weekend"
    assert nearest("zzz", ["weekend"]) is None


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
KEYS = st.text("abcdef", min_size=1, max_size=3)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(PLAIN)
def test_what_is_written_is_read_back(data: object) -> None:
    assert read_yaml(write_yaml(data), "f")[0] == data
    assert read_yaml(write_yaml(data), "f")[2] == ()


@given(st.dictionaries(st.text("abc", min_size=1), st.integers() | st.text(max_size=5) | st.booleans(), max_size=4))
def test_json_is_read_as_json(data: dict[str, object]) -> None:
    numbers = {key: value for key, value in data.items() if not isinstance(value, int) or abs(value) < 10**15}
    assert read_yaml(json.dumps(numbers), "f")[::2] == (numbers, ())


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        document = read_document(text, "f")
    except RegionFileError as error:
        assert error.faults
    else:
        assert document.line(()) is not None or document.data is None
