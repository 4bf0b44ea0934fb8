"""Lists the keys of a definition file: one table for the reader and the editors' schema.

To an editor templates are texts: in the schema every value may also be one with `{{ }}` in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from tidewheel.formats.sip.model import CONDITION_WORDS, PRESENT, StageType
from tidewheel.formats.sip.placeholders import Json
from tidewheel.quantities import DURATIONS_ACCEPTED, SIZES_ACCEPTED

SCHEMA_VERSION = "2.0"


class KeyKind(Enum):
    """Names the kinds of values that keys have."""

    TEXT = auto()
    VERSION = auto()
    DURATION = auto()
    SIZE = auto()
    NUMBER = auto()  # above zero
    COUNT = auto()  # a whole number from 1
    BOOLEAN = auto()
    LIST = auto()
    MAPPING = auto()


class Absent(Enum):
    """Names the ways to treat a key that is not there."""

    FINE = auto()
    WARNED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Key:
    """Describes one key of a mapping."""

    kind: KeyKind
    about: str
    absent: Absent = Absent.FINE
    choices: tuple[str, ...] = ()
    other_spelling: str = ""  # tolerated with a warning
    example: Json = None  # of a list or mapping; where it is required, it must not be empty
    read_apart: bool = False  # its choices depend on another key
    to: str = ""  # the field of the model that it fills; else it is read by its name


DEFINITION: Mapping[str, Key] = {
    "schema_version": Key(
        KeyKind.VERSION, "the version of this format", Absent.REFUSED, choices=(SCHEMA_VERSION,)
    ),
    "id": Key(KeyKind.TEXT, "the workflow's name; by default from the file's name"),
    "version": Key(KeyKind.VERSION, "the workflow's version; by default from the file's name"),
    "stages": Key(
        KeyKind.LIST,
        "the stages of the workflow, in any order",
        Absent.REFUSED,
        example=[{"id": "ingest", "version": "1.0.0", "type": "processing"}],
    ),
}
RESERVED_KEYS: Mapping[str, tuple[str, str]] = {
    "parameters": (
        "the key 'parameters' is reserved for a later version of the format",
        "give defaults in stages/<id>/<version>/parameters.yaml, and values with the request",
    )
}
# Keys of earlier versions of the format, which people bring along: a key that stands beside
# them, and what is there instead.
_IN_ITS_FOLDER = "in 2.0 it is a file of the stage's folder, stages/<id>/<version>/"
FORMER_KEYS: Mapping[str, tuple[str, str]] = {
    "ee_config": ("timeout", f"remove it; {_IN_ITS_FOLDER}docker_compose.yaml (or .yaml.j2)"),
    "app_config": ("timeout", f"remove it; {_IN_ITS_FOLDER}args.json (or .json.j2)"),
    "resources_required": (
        "workflow",
        "remove it; in 2.0 each stage of a workflow says what it needs",
    ),
}
STAGE: Mapping[str, Key] = {
    "id": Key(KeyKind.TEXT, "the stage's name", Absent.REFUSED),
    "version": Key(
        KeyKind.VERSION,
        "the stage's version: stages/<id>/<version> is its folder",
        Absent.REFUSED,
    ),
    "type": Key(
        KeyKind.TEXT,
        "what the stage is for",
        Absent.REFUSED,
        choices=tuple(one.value for one in StageType),
    ),
    "timeout": Key(
        KeyKind.DURATION,
        f"the longest time that the stage may run: {DURATIONS_ACCEPTED}",
        Absent.WARNED,
        other_spelling="timout",
    ),
    "resources_required": Key(
        KeyKind.LIST,
        "what must be available before the stage begins",
        Absent.WARNED,
        other_spelling="resources",
    ),
    "dependencies": Key(
        KeyKind.LIST,
        "what must have happened before: all of it",
        example=[{"type": "stage", "value": "ingest", "condition": "complete"}],
    ),
}
DEPENDENCY: Mapping[str, Key] = {
    "type": Key(
        KeyKind.TEXT, "what it depends on", Absent.REFUSED, choices=("stage", "buffer_object")
    ),
    "value": Key(KeyKind.TEXT, "the id of a stage or of an object", Absent.REFUSED),
    "condition": Key(
        KeyKind.TEXT,
        "what must have become of it",
        Absent.REFUSED,
        choices=(*CONDITION_WORDS, PRESENT),
        read_apart=True,
    ),
}
RESOURCE_TYPE = Key(
    KeyKind.TEXT, "what is needed", Absent.REFUSED, choices=("nodes", "cpu", "memory", "buffer")
)
RESOURCES: Mapping[str, Mapping[str, Key]] = {
    "nodes": {
        "type": RESOURCE_TYPE,
        "number": Key(KeyKind.COUNT, "how many machines", Absent.REFUSED, to="number"),
        "flavour": Key(KeyKind.TEXT, "their kind", Absent.WARNED, to="flavour"),
        "exclusive": Key(
            KeyKind.BOOLEAN,
            "whether nothing else may run on them",
            Absent.REFUSED,
            to="exclusive",
        ),
        "label": Key(KeyKind.TEXT, "the label of the machines in a Swarm", to="label"),
    },
    "cpu": {
        "type": RESOURCE_TYPE,
        "value": Key(KeyKind.NUMBER, "cores", Absent.REFUSED, to="cores"),
    },
    "memory": {
        "type": RESOURCE_TYPE,
        "value": Key(KeyKind.SIZE, SIZES_ACCEPTED, Absent.REFUSED, to="size"),
    },
    "buffer": {
        "type": RESOURCE_TYPE,
        "value": Key(KeyKind.SIZE, SIZES_ACCEPTED, Absent.REFUSED, to="size"),
        "label": Key(KeyKind.TEXT, "which buffer", to="label"),
    },
}
RESOURCE_TYPE_SPELLINGS: Mapping[str, str] = {"node": "nodes"}


def owners(name: str, keys: Mapping[str, Key]) -> list[str]:
    """Returns the other mappings that have a key of this name: it may be indented wrongly."""
    owned = {
        "the definition": (DEFINITION,),
        "a stage": (STAGE,),
        "a dependency": (DEPENDENCY,),
        "a resource": tuple(RESOURCES.values()),
    }
    if all(keys is not one for tables in owned.values() for one in tables):
        return []
    return [what for what, tables in owned.items() if any(name in one for one in tables)]


# The JSON Schema that editors use, from the same table.

Schema = dict[str, object]

_TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{.*\}\}"}
_TYPES: Mapping[KeyKind, Schema] = {
    KeyKind.TEXT: {"type": "string"},
    KeyKind.VERSION: {"type": ["string", "number"]},
    KeyKind.DURATION: {"type": ["string", "number"]},
    KeyKind.SIZE: {"type": ["string", "integer"]},
    KeyKind.NUMBER: {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEMPLATE]},
    KeyKind.COUNT: {"anyOf": [{"type": "integer", "minimum": 1}, _TEMPLATE]},
    KeyKind.BOOLEAN: {"anyOf": [{"type": "boolean"}, _TEMPLATE]},
    KeyKind.LIST: {"type": "array"},
    KeyKind.MAPPING: {"type": "object"},
}


def sip_json_schema() -> Schema:
    """Returns the schema of a definition file."""
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
