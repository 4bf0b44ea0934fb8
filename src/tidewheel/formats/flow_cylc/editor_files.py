"""Writes a JSON Schema and a grammar of flow.cylc for editors, from the table of items.

The schema describes a definition as nested objects (what `tidewheel config --json` prints), for
completion and hover texts; the TextMate grammar colours the text itself. Both are generated,
so an item that is added to the table is known to editors too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidewheel.core.graph.outputs import SHORT_FORMS, STANDARD
from tidewheel.formats.flow_cylc.graph_arrows import FAMILY_QUALIFIERS
from tidewheel.formats.flow_cylc.items import FLOW, ItemSpec, SectionSpec
from tidewheel.formats.flow_cylc.values import ValueKind

Json = dict[str, object]

_TEXT: Json = {"type": "string"}
_LIST: Json = {"type": ["array", "string"], "items": {"type": "string"}}
_DURATION = "ISO 8601, such as PT10M or P1D"
_TYPES: dict[ValueKind, Json] = {
    ValueKind.TEXT: _TEXT,
    ValueKind.TEXTS: _LIST,
    ValueKind.NAMES: _LIST,
    ValueKind.INTEGER: {"type": "integer"},
    ValueKind.NUMBER: {"type": "number"},
    ValueKind.BOOLEAN: {"type": "boolean"},
    ValueKind.DURATION: {"type": "string", "description": _DURATION},
    ValueKind.DURATIONS: {**_LIST, "description": f"{_DURATION}; 3*PT1M is PT1M, PT1M, PT1M"},
    ValueKind.POINT: {**_TEXT, "description": "a cycle point, such as 20300101T00Z or 1"},
    ValueKind.PARAMETER: {**_LIST, "description": "1..5, 1..9..2, or names"},
    ValueKind.XTRIGGER: {**_TEXT, "description": "function(argument, key=value):PT10S"},
    ValueKind.GRAPH: {"type": "string", "description": "lines such as: a & b[-P1]:fail? => c"},
}


def json_schema() -> Json:
    """Returns the schema of a whole definition."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "flow.cylc",
        "description": "A workflow definition as nested sections and items.",
        **_section(FLOW),
    }


def _section(spec: SectionSpec) -> Json:
    schema: Json = {
        "type": "object",
        "properties": {name: _entry(entry) for name, entry in spec.entries.items()},
        "additionalProperties": False if spec.other is None else _entry(spec.other),
    }
    if spec.idle_because:
        schema["description"] = f"No effect: {spec.idle_because}."
    return schema


def _entry(spec: ItemSpec | SectionSpec) -> Json:
    if isinstance(spec, SectionSpec):
        return _section(spec)
    schema = dict(_TYPES[spec.kind])
    if spec.choices:
        schema["enum"] = list(spec.choices)
    if spec.default not in (None, "", ()):
        schema["default"] = spec.default
    if spec.idle_because:
        schema["description"] = f"No effect: {spec.idle_because}."
    return schema


def grammar() -> Json:
    """Returns a TextMate grammar: sections, known items, strings, templates and graph text."""
    names = sorted({re.escape(name) for name in _item_names(FLOW)}, key=lambda n: (-len(n), n))
    outputs = sorted({*STANDARD, *SHORT_FORMS, *FAMILY_QUALIFIERS}, key=lambda n: (-len(n), n))
    return {
        "scopeName": "source.flow-cylc",
        "name": "flow.cylc",
        "fileTypes": ["flow.cylc", "cylc"],
        "patterns": [
            _match("comment.line.shebang.flow-cylc", r"\A#!jinja2.*$"),
            _match("comment.line.number-sign.flow-cylc", r"#.*$"),
            _match("meta.preprocessor.include.flow-cylc", r"^\s*%include\b.*$"),
            _match("entity.name.section.flow-cylc", r"^\s*\[+[^\[\]]+\]+"),
            _match("keyword.other.item.flow-cylc", rf"^\s*(?:{'|'.join(names)})(?=\s*=)"),
            _match("variable.other.item.flow-cylc", r"^\s*[^=\[\]#]+?(?=\s*=(?!>))"),
            {"include": "#template"},
            _block("string.quoted.triple.flow-cylc", '"""'),
            _block("string.quoted.triple.flow-cylc", "'''"),
        ],
        "repository": {
            "template": {
                "patterns": [
                    _block("meta.embedded.jinja2", r"\{\{", r"\}\}"),
                    _block("meta.embedded.jinja2", r"\{%", r"%\}"),
                    _block("comment.block.jinja2", r"\{#", r"#\}"),
                ]
            },
            "graph": {
                "patterns": [
                    {"include": "#template"},
                    _match("comment.line.number-sign.flow-cylc", r"#.*$"),
                    _match("keyword.operator.arrow.flow-cylc", r"=>"),
                    _match("keyword.operator.logical.flow-cylc", r"[&|!?]"),
                    _match("support.function.xtrigger.flow-cylc", r"@[\w\-+%]+"),
                    _match(
                        "constant.language.output.flow-cylc", rf":(?:{'|'.join(outputs)})\b"
                    ),
                    _match("variable.other.output.flow-cylc", r":[\w\-]+"),
                    _match("constant.numeric.offset.flow-cylc", r"\[[^\[\]]*\]"),
                    _match("variable.parameter.flow-cylc", r"<[^<>]*>"),
                ]
            },
        },
    }


def _item_names(spec: SectionSpec) -> Iterator[str]:
    for name, entry in spec.entries.items():
        if isinstance(entry, ItemSpec):
            yield name
        else:
            yield from _item_names(entry)
    if isinstance(spec.other, SectionSpec):
        yield from _item_names(spec.other)


def _match(scope: str, pattern: str) -> Json:
    return {"name": scope, "match": pattern}


def _block(scope: str, begin: str, end: str = "") -> Json:
    return {
        "name": scope,
        "begin": begin,
        "end": end or begin,
        "patterns": [{"include": "#graph" if begin in ('"""', "'''") else "$base"}],
    }
