"""What editors need to know of SIP definitions: a JSON Schema from the table of keys.

Templates are texts to an editor, so that every value may also be one with `{{ }}` in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.formats.sip.keys import (
    DEFINITION,
    DEPENDENCY,
    RESOURCES,
    SCHEMA_VERSION,
    STAGE,
    Absent,
    Key,
    Kind,
)

Schema = dict[str, object]

_TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{.*\}\}"}
_TYPES: Mapping[Kind, Schema] = {
    Kind.TEXT: {"type": "string"},
    Kind.VERSION: {"type": ["string", "number"]},
    Kind.DURATION: {"type": ["string", "number"]},
    Kind.SIZE: {"type": ["string", "integer"]},
    Kind.NUMBER: {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEMPLATE]},
    Kind.COUNT: {"anyOf": [{"type": "integer", "minimum": 1}, _TEMPLATE]},
    Kind.BOOLEAN: {"anyOf": [{"type": "boolean"}, _TEMPLATE]},
    Kind.LIST: {"type": "array"},
    Kind.MAPPING: {"type": "object"},
}


def sip_json_schema() -> Schema:
    """The schema of a definition file."""
    stage = _mapping(STAGE)
    properties = stage["properties"]
    assert isinstance(properties, dict)
    properties["dependencies"]["items"] = _mapping(DEPENDENCY)
    properties["resources_required"]["items"] = {
        "oneOf": [_resource(kind, keys) for kind, keys in RESOURCES.items()]
    }
    definition = _mapping(DEFINITION)
    top = definition["properties"]
    assert isinstance(top, dict)
    top["stages"]["items"] = stage
    top["schema_version"] = {
        "description": DEFINITION["schema_version"].about,
        "enum": [SCHEMA_VERSION, float(SCHEMA_VERSION)],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"SIP workflow definition {SCHEMA_VERSION}",
        **definition,
    }


def _mapping(keys: Mapping[str, Key]) -> Schema:
    return {
        "type": "object",
        "properties": {name: _key(key) for name, key in keys.items()},
        "required": [name for name, key in keys.items() if key.absent is Absent.REFUSED],
        "additionalProperties": False,
    }


def _resource(kind: str, keys: Mapping[str, Key]) -> Schema:
    schema = _mapping(keys)
    properties = schema["properties"]
    assert isinstance(properties, dict)
    properties["type"] = {"const": kind}
    return schema


def _key(key: Key) -> Schema:
    schema: Schema = {"description": key.about}
    if key.choices:
        return {**schema, "enum": list(key.choices)}
    return {**schema, **_TYPES[key.kind]}
