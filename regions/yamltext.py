"""YAML text -> plain data, the line of each path in it, and what is wrong with the text itself.

YAML readers disagree about unquoted 22:00 (1320?), NO (false?) and 1_000 (1000?); here each is refused with the advice
to quote it, whatever a model would have made of it. Dates stay text. Duplicate keys are faults, not overwritten.

libyaml's parser (through PyYAML) gives events with line marks many times as fast as a round-trip reader
(docs/decisions/0101-reading-yaml.md). This module is the only one that knows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import yaml  # type: ignore[import-untyped]

from regions.errors import Fault

Path = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_TAG = "tag:yaml.org,2002:"
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
_DIGITS = 40
"""An integer longer than this is no number anyone means."""
_MOST_NODES = 200_000
"""A file that comes to more values than this by aliases is refused instead of filling the memory."""


class NotYaml(ValueError):
    """The text cannot be taken apart at all; `fault` says where and why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def read_yaml(text: str, file: str) -> tuple[Any, Mapping[Path, int], tuple[Fault, ...]]:
    """Return data, lines (1-based) and faults of a YAML or JSON text; raises NotYaml."""
    reader = _Reader(file)
    try:
        data = reader.read(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as broken:
        if "\\u" in text:
            # JSON writes characters beyond U+FFFF as two escapes, which YAML forbids.
            with suppress(ValueError):
                return json.loads(text), {(): 1}, ()
        mark = broken.problem_mark or broken.context_mark
        line = None if mark is None else mark.line + 1
        raise NotYaml(_broken(text, file, line, str(broken.problem or broken))) from broken
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        raise NotYaml(_broken(text, file, None, str(broken))) from broken
    return data, reader.lines, tuple(reader.faults)


def write_yaml(data: object) -> str:
    """Return data as YAML that `read_yaml` gives back: text that looks like a number or a date is quoted."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return text


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as people write it: `offers[0].markets.spot.price`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(the file)"


def shown(value: object) -> str:
    """Return a value as it would stand in the file, cut short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class _Reader:
    """Turns parser events into data; gathers lines and the scalars that YAML readers would disagree about."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Path, int] = {}
        self.faults: list[Fault] = []
        self._events: Iterator[Any] = iter(())
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def read(self, events: Iterator[Any]) -> Any:
        self._events = events
        next(events)  # the stream's start
        if isinstance(next(events), yaml.StreamEndEvent):
            return None
        data = self._value(next(events), ())
        next(events)  # the document's end
        more = next(events)
        if not isinstance(more, yaml.StreamEndEvent):
            self._refuse(more, (), "a second document (---)", "one document", "put it into a file of its own")
        return data

    def _value(self, event: Any, path: Path) -> Any:
        self.lines[path] = event.start_mark.line + 1
        self._nodes += 1
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, path)
            if event.anchor is not None:
                self._anchors[event.anchor] = value, 1
            return value
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        before = self._nodes
        self._refuse_tag(event, path)
        data = self._items(path) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(path)
        if event.anchor is not None:
            self._anchors[event.anchor] = data, self._nodes - before
        return data

    def _alias(self, event: Any, path: Path) -> Any:
        if event.anchor not in self._anchors:
            self._refuse(
                event, path, f"*{event.anchor}", "an anchor that stands before it", "anchors are written &name"
            )
            return None
        data, nodes = self._anchors[event.anchor]
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise ValueError(f"more than {_MOST_NODES} values once aliases are followed")
        return data

    def _items(self, path: Path) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _mapping(self, path: Path) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._value(event, (*path, "?"))
                self._value(next(self._events), (*path, "?"))
                self._refuse(event, path, "a list, mapping or alias as key", "a plain key", "")
                continue
            key = self._scalar(event, (*path, event.value))
            here = (*path, key)
            first = self.lines.get(here)
            value = self._value(next(self._events), here)
            if event.implicit[0] and event.value == "<<":
                self._refuse(event, here, "<<", "the fields themselves", "merge keys are not read; write them out")
            elif key in data:
                self._refuse(event, here, shown(key), "each key once", f"it stands in line {first} already")
            else:
                data[key] = value
                self.lines[here] = event.start_mark.line + 1
        return data

    def _scalar(self, event: Any, path: Path) -> Any:
        text: str = event.value
        if not event.implicit[0]:
            self._refuse_tag(event, path)
            return text
        value, meant = _plain(text)
        if meant:
            quoted = text if ":" in text or meant == "true or false" else text.replace("_", "")
            hint = f'unquoted, YAML may read this as {meant}; quote it: "{quoted}"'
            self._refuse(event, path, text, "a quoted value", hint)
        return value

    def _refuse_tag(self, event: Any, path: Path) -> None:
        if event.tag not in (None, "!", _TAG + "str"):
            self._refuse(event, path, f"the tag {event.tag}", "plain YAML", "tags are not read; leave it out")

    def _refuse(self, event: Any, path: Path, got: str, expected: str, hint: str) -> None:
        self.faults.append(Fault(self.file, event.start_mark.line + 1, path_text(path), got, expected, hint))


@lru_cache(maxsize=65536)
def _plain(text: str) -> tuple[Any, str]:
    """Return what an unquoted scalar is, and, where YAML readers would disagree about it, what some take it for."""
    kind = next(
        (tag.removeprefix(_TAG) for tag, pattern in _RESOLVERS.get(text[:1], ()) if pattern.match(text)),
        "str",
    )
    if kind == "null":
        return None, ""
    if kind == "bool":
        return (_TRUTH[text], "") if text in _TRUTH else (text, "true or false")
    if kind == "int":
        return (int(text), "") if _INTEGER.fullmatch(text) and len(text) < _DIGITS else (text, "a number or a time")
    # PyYAML takes 1e6 for text; YAML 1.2 and people take it for a number.
    if kind == "float" or ("e" in text.lower() and any(mark.isdigit() for mark in text) and _FLOAT.fullmatch(text)):
        return (float(text), "") if _FLOAT.fullmatch(text) else (text, "a number or a time")
    return text, ""


def _broken(text: str, file: str, line: int | None, problem: str) -> Fault:
    lines = text.splitlines()
    got = lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else "text"
    return Fault(file, line, "(the file)", got[:80], "YAML", problem)
