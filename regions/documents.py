"""YAML text -> plain data that knows its lines -> a checked model, or every fault of the text at once.

YAML readers disagree about unquoted 22:00 (1320?), NO (false?) and 1_000 (1000?); here each is refused with the advice
to quote it, whatever the model would have made of it. Dates stay text. Duplicate keys are faults, not overwritten.

libyaml's composer (through PyYAML) gives nodes with line marks about ten times as fast as a round-trip reader
(docs/decisions/0101-reading-yaml.md). This module is the only one that knows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from regions.errors import Fault, InputError, RegionFileError

_M = TypeVar("_M", bound=BaseModel)
Path = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_TAG = "tag:yaml.org,2002:"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Document:
    """A file's data, the line of each path in it, and what was wrong with the text itself."""

    file: str
    data: Any
    lines: Mapping[Path, int] = field(repr=False)
    faults: tuple[Fault, ...] = ()

    def line(self, path: Sequence[str | int]) -> int | None:
        """Return the 1-based line of a path, or of its nearest parent that stands in the file."""
        here = tuple(path)
        while here not in self.lines and here:
            here = here[:-1]
        return self.lines.get(here)

    def fault(self, path: Sequence[str | int], got: object, expected: str, hint: str = "") -> Fault:
        """Return a fault at a path; `got` is shown as it would stand in the file."""
        shown = got if isinstance(got, Shown) else _shown(got)
        return Fault(self.file, self.line(path), path_text(path), shown, expected, hint)


class Shown(str):
    """Text for a fault's `got` that is to be printed as it is."""

    __slots__ = ()


def read_document(text: str, file: str, *, error: type[InputError] = RegionFileError) -> Document:
    """Return the data of a YAML (or JSON) text. `error` is raised only where the text cannot be taken apart at all."""
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        line = None if mark is None else mark.line + 1
        raise error(f"{file} is not YAML:", [_broken(text, file, line, str(broken.problem or broken))]) from broken
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        raise error(f"{file} is not YAML:", [_broken(text, file, None, str(broken))]) from broken
    reader = _Reader(file)
    data = None if node is None else reader.value(node, ())
    return Document(file, data, reader.lines, tuple(reader.faults))


def validate(model: type[_M], document: Document, *, error: type[InputError] = RegionFileError) -> _M:
    """Return the model, or raise `error` with all faults: of the text, and of each field."""
    value, faults = checked(model, document)
    if value is None:
        raise error(f"{document.file} has {len(faults)} fault{'s' if len(faults) != 1 else ''}:", faults)
    return value


def checked(model: type[_M], document: Document) -> tuple[_M | None, tuple[Fault, ...]]:
    """Return the model and no faults, or None and all of them."""
    misread = {(fault.line, fault.field) for fault in document.faults}
    faults = list(document.faults)
    try:
        value = model.model_validate(document.data)
    except ValidationError as invalid:
        for details in invalid.errors(include_url=False):
            fault = _fault(model, document, details)
            # What the reader already refused (22:00) is a fault of its own; the model's view of it would say it twice.
            if (fault.line, fault.field) not in misread:
                faults.append(fault)
        return None, _in_order(faults)
    return (value, ()) if not faults else (None, _in_order(faults))


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `offers[0].markets.spot.price`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(the file)"


def nearest(word: str, known: Iterator[str] | Sequence[str]) -> str | None:
    """Return the known word a person probably meant."""
    options = list(known)
    close = get_close_matches(word.lower(), [option.lower() for option in options], n=1, cutoff=0.6)
    return next((option for option in options if close and option.lower() == close[0]), None)


class _Reader:
    """Turns composed nodes into data; gathers lines and the scalars that YAML readers would disagree about."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.faults: list[Fault] = []

    def value(self, node: Any, path: Path) -> Any:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Any, path: Path) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, path, "a list or mapping as key", "a plain key", "")
                continue
            if key_node.tag == _TAG + "merge":
                self._refuse(key_node, path, "<<", "the fields themselves", "merge keys are not read; write them out")
                continue
            key = self._scalar(key_node, (*path, key_node.value))
            here = (*path, key)
            if key in data:
                first = self.lines[here]
                self._refuse(key_node, here, _shown(key), "each key once", f"it stands in line {first} already")
                continue
            data[key] = self.value(value_node, here)
            self.lines[here] = key_node.start_mark.line + 1
        return data

    def _scalar(self, node: Any, path: Path) -> Any:
        text: str = node.value
        kind = node.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp", "value"):
            # PyYAML takes 1e6 for text; YAML 1.2 and people take it for a number.
            plain_number = kind == "str" and node.style is None and "e" in text.lower() and _FLOAT.fullmatch(text)
            return float(text) if plain_number and any(mark.isdigit() for mark in text) else text
        if kind == "null":
            return None
        if kind == "bool" and text in _TRUTH:
            return _TRUTH[text]
        if kind == "int" and _INTEGER.fullmatch(text) and len(text) < 40:
            return int(text)
        if kind == "float" and _FLOAT.fullmatch(text):
            return float(text)
        if kind in ("bool", "int", "float"):
            meant = {"bool": "true or false", "int": "a number or a time", "float": "a number or a time"}[kind]
            hint = f'quote it: "{text}"' if kind == "bool" or ":" in text else f'quote it: "{text.replace("_", "")}"'
            self._refuse(node, path, text, "a quoted value", f"unquoted, YAML may read this as {meant}; {hint}")
            return text
        self._refuse(node, path, f"the tag {node.tag}", "plain YAML", "tags are not read; leave it out")
        return text

    def _refuse(self, node: Any, path: Path, got: str, expected: str, hint: str) -> None:
        self.faults.append(Fault(self.file, node.start_mark.line + 1, path_text(path), got, expected, hint))


def _fault(model: type[BaseModel], document: Document, details: ErrorDetails) -> Fault:
    kind, location = details["type"], tuple(details["loc"])
    path = _existing(document.data, location)
    got = _shown(details["input"]) if kind != "missing" else "nothing"
    context = details.get("ctx", {})
    if kind == "missing":
        path = (*path, location[-1])
        return Fault(document.file, document.line(path), path_text(path), got, "a value", f"{location[-1]} is required")
    if kind == "extra_forbidden":
        path = (*path, location[-1]) if path != location else path
        known = _known_keys(model, location[:-1])
        near = nearest(str(location[-1]), known)
        hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
        return Fault(document.file, document.line(path), path_text(path), Shown(location[-1]), "a known key", hint)
    if kind == "literal_error":
        options = str(context.get("expected", ""))
        near = nearest(str(details["input"]), re.findall(r"'([^']*)'", options))
        return Fault(
            document.file, document.line(path), path_text(path), got, f"one of {options}",
            f"did you mean {near}?" if near else "",
        )  # fmt: skip
    expected, _, hint = _expected(details).partition(" | ")
    return Fault(document.file, document.line(path), path_text(path), got, expected, hint)


def _expected(details: ErrorDetails) -> str:
    """Return what a pydantic error wanted, as words; validators of ours raise ValueError("<expected> | <hint>")."""
    given = details["input"]
    number = isinstance(given, int | float)
    if details["type"] == "value_error":
        return str(details.get("ctx", {}).get("error", details["msg"]))
    if details["type"] == "string_type" and number:
        return f'text | quote it: "{_shown(given)}"'
    message = re.sub(r"^Input should be ", "", details["msg"])
    if details["type"] in ("model_type", "model_attributes_type", "dict_type", "mapping_type"):
        message = "a mapping of fields (key: value)"
    elif details["type"] in ("tuple_type", "list_type"):
        message = "a list"
    return message[:1].lower() + message[1:]


def _existing(data: Any, location: Path) -> Path:
    """Return the part of a pydantic location that stands in the file (it also names union members and parsed parts)."""
    here: list[str | int] = []
    for part in location:
        found = _MISSING
        if isinstance(data, dict):
            found = data.get(part, _MISSING)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            found = data[part]
        if found is _MISSING:
            break
        here.append(part)
        data = found
    return tuple(here)


def _known_keys(model: Any, location: Path) -> list[str]:
    """Return the keys a model accepts at a location, following its annotations."""
    models = [model]
    for part in location:
        models = [inner for outer in models for inner in _models_at(outer, part)]
    return sorted({info.alias or name for found in models for name, info in found.model_fields.items()})


def _models_at(model: type[BaseModel], part: str | int) -> list[type[BaseModel]]:
    if isinstance(part, int):
        return [model]
    for name, info in model.model_fields.items():
        if part in (name, info.alias):
            return list(_models_in(info.annotation))
    return [model]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _broken(text: str, file: str, line: int | None, problem: str) -> Fault:
    lines = text.splitlines()
    got = lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else "text"
    return Fault(file, line, "(the file)", got[:80], "YAML", problem)


def _in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    unique = dict.fromkeys(faults)
    return tuple(sorted(unique, key=lambda fault: (fault.file, fault.line or 0, fault.field)))


def write_document(data: object) -> str:
    """Return data as YAML that `read_document` gives back: text that looks like a number or a date is quoted."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return text
