"""Writes docs/reference/ from the program's own tables; a test compares the two."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from item_words import KEPT, OF_TIDEWHEEL, OURS, WORDS
from write_python_page import annotated_fields

from tidewheel import config
from tidewheel.formats.flow_cylc.items import FLOW, ItemSpec, SectionSpec
from tidewheel.formats.flow_cylc.values import ValueKind
from tidewheel.formats.sip import keys
from tidewheel.server.openapi import document
from tidewheel.server.route_table import ROUTES

FOLDER = Path(__file__).with_name("reference")
MADE = "Made from the program by `python docs/write_reference.py`; do not edit by hand.\n"
KINDS = {
    ValueKind.TEXT: "text",
    ValueKind.TEXTS: "list",
    ValueKind.NAMES: "names",
    ValueKind.INTEGER: "number",
    ValueKind.NUMBER: "number",
    ValueKind.BOOLEAN: "True, False",
    ValueKind.DURATION: "duration",
    ValueKind.DURATIONS: "durations",
    ValueKind.POINT: "point",
    ValueKind.PARAMETER: "values",
    ValueKind.XTRIGGER: "call",
    ValueKind.GRAPH: "graph",
}


def table(
    head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]
) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    """A text that is no HTML; within backticks nothing is."""
    parts = text.replace("|", "\\|").replace("\n", " ").split("`")
    return "`".join(
        part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts)
    )


# ---- flow.cylc ----


def flow_items() -> str:
    """Every item that is read, section by section."""
    parts = [
        "# Items of flow.cylc\n\n" + MADE,
        """tidewheel accepts every item that a current Cylc accepts. *Used* means that the
item has its effect; other items are read, checked and kept, and the last column says why they
have no effect.
`…` stands for a name that you choose. Durations are ISO 8601 (`PT10M`; `3*PT1M` means three
times `PT1M`). Spellings of older versions are upgraded, with a message.
""",
    ]
    for title, spec in sections(FLOW, ""):
        rows = [_item(title, name, one, spec) for name, one in _items(spec)]
        parts.append(
            f"## {title}\n\n" + table(("item", "value", "default", "for", "here"), rows)
        )
    return "\n".join(parts)


def sections(spec: SectionSpec, title: str) -> Iterator[tuple[str, SectionSpec]]:
    """Sections with items of their own, from the top down."""
    if any(True for _ in _items(spec)):
        yield title, spec
    for name, entry in spec.entries.items():
        if isinstance(entry, SectionSpec):
            yield from sections(entry, f"{title}[{name}]")
    if isinstance(spec.other, SectionSpec) and title != "[scheduler][main loop]":
        yield from sections(spec.other, f"{title}[…]")


def _items(spec: SectionSpec) -> Iterator[tuple[str, ItemSpec]]:
    for name, entry in spec.entries.items():
        if isinstance(entry, ItemSpec):
            yield name, entry
    if isinstance(spec.other, ItemSpec):
        yield "…", spec.other
    elif spec.idle_because:
        yield "…", ItemSpec(ValueKind.TEXT)


def _item(title: str, name: str, one: ItemSpec, spec: SectionSpec) -> tuple[str, ...]:
    words = WORDS.get(title, {}).get(name)
    assert words, f"docs/item_words.py has no words for {title} {name}"
    value = ", ".join(one.choices) if one.choices else KINDS[one.kind]
    because = one.idle_because or spec.idle_because
    if because:
        here = f"no effect: {because}"
    elif f"{title} {name}" in OURS:
        here = OF_TIDEWHEEL
    else:
        here = KEPT.get(f"{title} {name}") or KEPT.get(title) or "used"
    return f"`{name}`", value, _default(one), words, here


def _default(one: ItemSpec) -> str:
    if one.default in (None, "", ()):
        return ""
    if one.kind is ValueKind.DURATION and isinstance(one.default, float):
        return f"{one.default:g} s"
    return f"`{one.default}`"


# ---- SIP ----


def sip_keys() -> str:
    """Every key of a definition."""
    parts = [
        "# Keys of SIP definitions\n\n" + MADE,
        "[SIP](../sip.md) explains how they work together.\n",
    ]
    mappings: list[tuple[str, Mapping[str, keys.Key]]] = [
        ("The definition", keys.DEFINITION),
        ("A stage: `stages`", keys.STAGE),
        ("A dependency: `dependencies`", keys.DEPENDENCY),
        *((f"A resource: `type: {name}`", found) for name, found in keys.RESOURCES.items()),
    ]
    for title, found in mappings:
        rows = [_key(name, key) for name, key in found.items()]
        parts.append(
            f"## {title}\n\n"
            + table(("key", "value", "must be there", "for", "tolerated"), rows)
        )
    reserved = [(f"`{name}`", *words) for name, words in keys.RESERVED_KEYS.items()]
    parts.append(
        "## Kept for later\n\n" + table(("key", "what is said", "do instead"), reserved)
    )
    return "\n".join(parts)


def _key(name: str, key: keys.Key) -> tuple[str, ...]:
    value = ", ".join(f"`{one}`" for one in key.choices) or key.kind.name.lower()
    absent = {
        keys.Absent.FINE: "no",
        keys.Absent.WARNED: "a warning if not",
        keys.Absent.REFUSED: "yes",
    }[key.absent]
    other = f"`{key.other_spelling}`" if key.other_spelling else ""
    return f"`{name}`", value, absent, key.about, other


# ---- settings ----


def settings() -> str:
    """Every setting of every part, with its default and the comment beside it."""
    parts = [
        "# Settings of each part\n\n" + MADE,
        """Each part of tidewheel gets one of these objects when it starts.
[Configuration](../configuration.md) and [the commands](../cli.md) say which settings have an
option or a variable; applications that embed a part set them in Python (`tidewheel.config`).
""",
    ]
    for name, kind in inspect.getmembers(config, inspect.isclass):
        if name.endswith(("Settings", "Limits")):
            doc = inspect.getdoc(kind) or ""
            rows = list(_settings_of(kind))
            head = ("setting", "type", "default", "")
            parts.append(f"## {name}\n\n{doc}\n\n" + table(head, rows))
    return "\n".join(parts)


def _settings_of(kind: type) -> Iterator[tuple[str, ...]]:
    for name, node, comment in annotated_fields(kind):
        default = "" if node.value is None else ast.unparse(node.value)
        constant = getattr(config, default, None)
        shown = constant if isinstance(constant, int | float | str) else default
        if str(shown).startswith("field("):
            shown = "its own defaults"
        typed = ast.unparse(node.annotation)
        yield (
            f"`{name}`",
            f"`{typed}`",
            f"`{shown}`" if default else "required",
            comment,
        )


# ---- REST ----


def rest() -> str:
    """Every request, from the OpenAPI document."""
    api = document(ROUTES)
    schemas = api["components"]["schemas"]
    by_tag: dict[str, list[str]] = {}
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            text = _operation(method.upper(), path, operation)
            by_tag.setdefault(operation["tags"][0], []).append(text)
    parts = [
        "# REST: every request\n\n" + MADE,
        """This page is made from the OpenAPI 3.1 document, which a server has at
`/api/v1/openapi.json`. [The server](../server.md) explains requests, tokens, errors and pages.
Types in `code` are [below](#types). The answer to a request that breaks a rule is a `Problem`.
""",
    ]
    for tag, operations in by_tag.items():
        parts.append(f"## {tag}\n\n" + "\n".join(operations))
    parts.append(
        "## Types\n\n" + "\n".join(_type(name, schemas[name]) for name in sorted(schemas))
    )
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    lines = [f"### {method} {path}\n", f"{operation['summary']} {operation['description']}\n"]
    parameters = [
        (f"`{one['name']}`", one["in"], _typed(one["schema"]), "yes" if one["required"] else "")
        for one in operation["parameters"]
        if one["name"] != "Idempotency-Key"
    ]
    if parameters:
        lines.append(table(("parameter", "in", "type", "required"), parameters))
    if body := operation.get("requestBody"):
        lines.append(f"Body: {_content(body['content'])}\n")
    good = [one for status, one in operation["responses"].items() if status.startswith("2")]
    if good and "content" in good[0]:
        lines.append(f"Answers: {_content(good[0]['content'])}\n")
    return "\n".join(lines)


def _content(content: Mapping[str, Any]) -> str:
    return ", ".join(
        _typed(one["schema"]) + ("" if kind == "application/json" else f" ({kind})")
        for kind, one in content.items()
    )


def _grouped(schema: Mapping[str, Any]) -> str:
    """Returns a type within another: in parentheses if it is one of several."""
    text = _typed(schema)
    return f"({text})" if " or " in text else text


def _typed(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one line for each kind of schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[`{name}`](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_typed(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    match schema.get("type"):
        case "array":
            return "list of " + _grouped(schema.get("items") or {})
        case "object" if schema.get("additionalProperties"):
            return "object with values of type " + _grouped(schema["additionalProperties"])
        case str(kind):
            return {"integer": "whole number", "null": "null"}.get(kind, kind)
        case list(kinds):
            return " or ".join(kinds)
    return "any JSON"


def _type(name: str, schema: Mapping[str, Any]) -> str:
    words = re.sub(r"\s+", " ", schema.get("description", ""))
    head = f"### {name}\n\n{words}\n" if words else f"### {name}\n"
    if "properties" not in schema:
        return f"{head}\n{_typed(schema)}\n"
    required = set(schema.get("required", ()))
    rows = [
        (
            f"`{field}`",
            _typed(one),
            "required" if field in required else _default_of_field(one),
        )
        for field, one in schema["properties"].items()
    ]
    return head + "\n" + table(("field", "type", "default"), rows)


def _default_of_field(field: Mapping[str, Any]) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else "may be missing"


def files() -> dict[str, str]:
    """The text of each page by its name."""
    return {
        "flow_items.md": flow_items(),
        "sip_keys.md": sip_keys(),
        "settings.md": settings(),
        "rest.md": rest(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for page, text in files().items():
        (FOLDER / page).write_text(text, encoding="utf-8")
