"""A text's data and lines -> a checked model, or every fault at once: where, what was got, expected, and meant.

Region files, the tables beside them, the policy and run files all come in by this door.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from regions.errors import Fault, InputError, RegionFileError
from regions.yamltext import NotYaml, Path, path_text, read_yaml, shown

_M = TypeVar("_M", bound=BaseModel)

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
        return Fault(self.file, self.line(path), path_text(path), shown(got), expected, hint)


def read_document(text: str, file: str, *, error: type[InputError] = RegionFileError) -> Document:
    """Return the data of a YAML (or JSON) text. `error` is raised only where the text cannot be taken apart at all."""
    try:
        data, lines, faults = read_yaml(text, file)
    except NotYaml as broken:
        raise error(f"{file} is not YAML:", [broken.fault]) from broken
    return Document(file, data, lines, faults)


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


def nearest(word: str, known: Iterator[str] | Sequence[str]) -> str | None:
    """Return the known word a person probably meant."""
    options = list(known)
    close = get_close_matches(word.lower(), [option.lower() for option in options], n=1, cutoff=0.6)
    return next((option for option in options if close and option.lower() == close[0]), None)


def _fault(model: type[BaseModel], document: Document, details: ErrorDetails) -> Fault:
    kind, location = details["type"], tuple(details["loc"])
    path = _existing(document.data, location)
    got = shown(details["input"]) if kind != "missing" else "nothing"
    context = details.get("ctx", {})
    if kind == "missing":
        path = (*path, location[-1])
        return Fault(document.file, document.line(path), path_text(path), got, "a value", f"{location[-1]} is required")
    if kind == "extra_forbidden":
        path = (*path, location[-1]) if path != location else path
        known = _known_keys(model, location[:-1])
        near = nearest(str(location[-1]), known)
        hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
        return Fault(document.file, document.line(path), path_text(path), str(location[-1]), "a known key", hint)
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
        return f'text | quote it: "{shown(given)}"'
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


def _in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    unique = dict.fromkeys(faults)
    return tuple(sorted(unique, key=lambda fault: (fault.file, fault.line or 0, fault.field)))
