"""JSON schemas of the catalog's files, for editors: `python -m regions.schema` writes them, a test keeps them in step.

They are made from the models; only what the models do before they check (facts that flow down from a section, ends
that a default row leaves out) is said again here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from regions.model import Policy, Region
from regions.tables import FxFile, LinksFile

FOLDER = Path(__file__).parent / "schemas"
FILES: dict[str, type[BaseModel]] = {"region": Region, "links": LinksFile, "fx": FxFile, "policy": Policy}


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each kind of file, by its name without `.json`."""
    return {name: _schema(name, model) for name, model in FILES.items()}


def text_of(schema: dict[str, Any]) -> str:
    """Return a schema as it is written to its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write(folder: Path = FOLDER) -> None:
    """Write all schemas."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / f"{name}.json").write_text(text_of(schema), encoding="utf-8")


def _schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=True)
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": f"Nightrelay {name} file"}
    definitions = schema.get("$defs", {})
    if "Price" in definitions:
        definitions["PriceFields"] = definitions["Price"] | {"required": ["price"]}
        definitions["Price"] = {
            "description": "A quoted decimal, or a mapping that also says how well it is known. Absent is not zero.",
            "anyOf": [
                definitions["PriceFields"]["properties"]["price"],
                {"$ref": "#/$defs/PriceFields"},
                {"const": ""},
            ],
        }
    for short, key in (("Market", "price"), ("Spot", "price"), ("Endpoint", "public")):
        if short in definitions:
            definitions[short] = {"anyOf": [{"type": "string"}, definitions[short]]}
            definitions[short]["description"] = f"A mapping, or just its {key}."
    _let_text_stand_for_a_list(schema)
    if name == "links":
        whole = definitions["Link"]
        definitions["DefaultLink"] = whole | {
            "required": [key for key in whole["required"] if key not in ("from", "to")]
        }
        rows = {"type": "array", "items": {"$ref": "#/$defs/DefaultLink"}}
        schema["properties"]["default"] = {"anyOf": [rows, {"$ref": "#/$defs/DefaultLink"}], "default": []}
    return schema


def _let_text_stand_for_a_list(node: Any) -> None:
    """Allow `days: all` beside `days: [all]`."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "days" and isinstance(value, dict) and value.get("type") == "array":
                plain = {
                    name: value.pop(name) for name in list(value) if name not in ("default", "description", "title")
                }
                value["anyOf"] = [plain, {"type": "string"}]
            _let_text_stand_for_a_list(value)
    elif isinstance(node, list):
        for item in node:
            _let_text_stand_for_a_list(item)


if __name__ == "__main__":
    write()
