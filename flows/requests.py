"""From what a user typed after `run=` to a checked request: an id, a path, a URL, or the object itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flows.settings import Settings
from regions.errors import Fault, NightrelayError, RequestError
from regions.model import Catalog
from regions.planning.request import RunRequest, parse_run
from storage.objects import open_store


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with the very text it came from, which the journal keeps."""

    request: RunRequest
    text: str
    file: str

    def document(self) -> dict[str, str]:
        """Return what the journal keeps of it."""
        return {"file": self.file, "text": self.text}

    @classmethod
    def again(cls, document: Mapping[str, Any]) -> Asked:
        """Read back what the journal kept."""
        return cls(parse_run(document["text"], document["file"]), document["text"], document["file"])


def ask(run: str | Mapping[str, Any], settings: Settings, catalog: Catalog) -> Asked:
    """Return the request; RequestError lists every fault of the file, and of the regions it names, at once."""
    if isinstance(run, Mapping):
        text, file = json.dumps(run, indent=2), "parameter run"
    else:
        text, file = _find(run, settings)
    asked = Asked(parse_run(text, file), text, file)
    if faults := _region_faults(asked, catalog):
        raise RequestError(f"{file} names what is not there:", faults)
    return asked


def _find(run: str, settings: Settings) -> tuple[str, str]:
    """Return the text and name of a run file: a URL, a path, or an id looked up in the folders of run files."""
    scheme = urlsplit(run).scheme
    if scheme and len(scheme) > 1:
        base, _, name = run.rpartition("/")
        return open_store(base).get(name).decode(), run
    path = Path(run)
    if path.suffix in (".yaml", ".yml", ".json") or "/" in run:
        if not path.is_file():
            raise RequestError("no such run file:", [Fault(run, None, "run", repr(run), "the path of a run file")])
        return path.read_text(encoding="utf-8"), str(path)
    for folder in settings.runs:
        for suffix in (".yaml", ".yml", ".json"):
            file = folder / f"{run}{suffix}"
            if file.is_file():
                return file.read_text(encoding="utf-8"), file.name
    known = sorted({entry.stem for folder in settings.runs if folder.is_dir() for entry in folder.glob("*.y*ml")})
    near = get_close_matches(run, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "looked in " + ", ".join(str(folder) for folder in settings.runs)
    expected = f"the id of a run file ({', '.join(known) or 'there are none'}), a path, a URL or an object"
    raise RequestError("no such run:", [Fault("parameter run", None, "run", repr(run), expected, hint)])


def _region_faults(asked: Asked, catalog: Catalog) -> list[Fault]:
    """Name every region the request mentions that the catalog does not have."""
    wish = asked.request.regions
    named = [("regions.allow", region) for region in wish.allow or ()]
    named += [("regions.deny", region) for region in wish.deny]
    named += [("regions.home", wish.home)] if wish.home else []
    faults = []
    for field, region in named:
        if region not in catalog.regions:
            near = get_close_matches(region, catalog.regions, n=1)
            hint = f"did you mean {near[0]!r}?" if near else ""
            expected = "a region of the catalog: " + ", ".join(sorted(catalog.regions))
            faults.append(Fault(asked.file, None, field, repr(region), expected, hint))
    return faults


def first_line(error: NightrelayError) -> str:
    """Return an error's first line, for a state's message."""
    return error.message.splitlines()[0]
