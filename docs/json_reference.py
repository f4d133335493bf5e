"""The tables of docs/json.md, from the JSON Schema files in resvm_cli/schemas/.

``docs/write_reference.py`` writes them to the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "json.md"
FOLDER = Path(__file__).parent.parent / "resvm_cli" / "schemas"
SUFFIX = ".schema.json"
COMMON = "common"
# in the order of the page: what commands print, then the files and lines that they write
NAMES = (
    *("train", "part", "tune", "tune-task", "score", "predict", "predict-files"),
    *("rank", "inspect", "simulate", "check", "convert"),
    *("benchmark", "benchmark-report", "figure", "benchmark-join"),
    *("prediction", "ranked-row", "reasons", "feature-map"),
    *("trial", "best-1", "best-2", "best-3"),
    *("benchmark-result", "benchmark-time", "manifest-1", "manifest-2", "manifest-3"),
)
MANIFESTS = [name for name in NAMES if name.startswith("manifest-")]
MANIFEST_PAGE = "[manifest.json](model-format.md)"  # explained there
ON_EVERY_OBJECT = ("schema", "kind")  # the page explains them once
SCHEMAS: dict[str, dict[str, Any]] = {
    path.name.removesuffix(SUFFIX): json.loads(path.read_text())
    for path in sorted(FOLDER.glob(f"*{SUFFIX}"))
}


def referred(reference: str, name: str) -> tuple[dict[str, Any], str]:
    """Return what a reference in schema ``name`` refers to, and the schema that contains it."""
    file, _, pointer = reference.partition("#")
    name = file.removesuffix(SUFFIX) or name
    found = SCHEMAS[name]
    for part in pointer.split("/")[1:]:
        found = found[part]
    return found, name


def flat(schema: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Follow references; what stands beside a reference replaces what it refers to."""
    if "$ref" not in schema:
        return schema, name
    own = {key: value for key, value in schema.items() if key != "$ref"}
    found, name = flat(*referred(schema["$ref"], name))
    return {**found, **own}, name


def without_null(schema: dict[str, Any], name: str) -> tuple[dict[str, Any], str, bool]:
    """Return a schema that may be null as what it is otherwise, and whether it may be null."""
    schema, name = flat(schema, name)
    choices = schema.get("oneOf", [])
    if len(choices) == 2 and {"type": "null"} in choices:
        other, name = flat(*(one for one in choices if one != {"type": "null"}), name)
        return {**other, **{key: schema[key] for key in schema if key != "oneOf"}}, name, True
    return schema, name, "null" in schema.get("type", ()) or None in schema.get("enum", ())


def type_text(schema: dict[str, Any], name: str) -> str:
    """Describe the type of a value in a few words, with a link if it has a section."""
    schema, name, may_be_null = without_null(schema, name)
    if "const" in schema:
        text = f"`{json.dumps(schema['const'])}`"
    elif "enum" in schema:
        texts = [f"`{json.dumps(one)}`" for one in schema["enum"] if one is not None]
        text = " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    elif "oneOf" in schema and "type" not in schema:
        text = " or ".join(dict.fromkeys(type_text(one, name) for one in schema["oneOf"]))
    elif "title" in schema:
        text = MANIFEST_PAGE if name in MANIFESTS else linked(schema["title"])
    else:
        kinds = schema.get("type", "object")
        text = kinds if isinstance(kinds, str) else kinds[0]
        if text == "array":
            item = type_text(schema["items"], name)
            text = f"list of {item}s" if item.isalpha() else f"list of {item}"
    return f"{text} or null" if may_be_null else text


def linked(title: str) -> str:
    anchor = re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def rows(schema: dict[str, Any], name: str, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield key, type and content of each key; keys of objects inside follow theirs."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    for key, own in properties.items():
        if not prefix and "schema" in properties and key in ON_EVERY_OBJECT:
            continue
        found, of, _ = without_null(own, name)
        described = found["description"]
        optional = "" if key in required else ", optional"
        inside = f"{prefix}{key}."
        if "items" in found:
            found, of, _ = without_null(found["items"], of)
            inside = f"{prefix}{key}[]."
        yield f"`{prefix}{key}`", type_text(own, name) + optional, described
        if "title" not in found and of not in MANIFESTS:
            yield from rows(found, of, inside)
    for own in schema.get("patternProperties", {}).values():
        keys = re.sub(r"`(\w+)`", rf"`{prefix}\1`", own["title"])
        kind = type_text({"type": own["type"]}, name)
        yield keys, f"{kind}, optional", own["description"]


def table(schema: dict[str, Any], name: str) -> list[str]:
    lines = ["| key | type | content |", "|---|---|---|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows(schema, name)), ""]


def section(name: str) -> list[str]:
    """Return the section of one schema, and of the objects that it defines."""
    schema = SCHEMAS[name]
    lines = []
    if name != COMMON:
        lines += [f"## {schema['title']}", "", f"{sentence(schema)} Schema: `{name}{SUFFIX}`.", ""]
        if "properties" in schema:
            lines += table(schema, name)
    for part in schema.get("$defs", {}).values():
        if "title" in part:
            lines += [f"### {part['title']}", "", sentence(part), "", *table(part, name)]
    return lines


def sentence(schema: dict[str, Any]) -> str:
    text = schema["description"]
    return f"{text[:1].upper()}{text[1:]}."


def reference() -> str:
    """Return the generated part of the page."""
    lines: list[str] = []
    for name in NAMES:
        if name not in MANIFESTS:
            lines += section(name)
    files = ", ".join(f"`{name}{SUFFIX}`" for name in MANIFESTS)
    lines += ["## manifest.json", "", f"See {MANIFEST_PAGE}. Schemas: {files}.", ""]
    lines += ["## Shared objects", "", f"Several schemas refer to `{COMMON}{SUFFIX}`.", ""]
    return "\n".join([*lines, *section(COMMON)]).rstrip()
