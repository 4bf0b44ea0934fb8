"""Lists the keys of a definition file: one table for the reader and the editors' schema.

To an editor templates are texts: in the schema a number or a flag may also be a text with `{{
}}` in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum, auto

from tidewheel.core.graph.definition import ELEMENTS_DEFAULT, ELEMENTS_MAX
from tidewheel.formats.sip.model import (
    BLOCK_NETWORK,
    CONDITION_WORDS,
    NAME_LENGTH_MAX,
    NUMBER_MAX,
    PRESENT,
    SIZE_BYTES_MAX,
    StageType,
)
from tidewheel.formats.sip.placeholders import Json
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.quantities import DURATIONS_ACCEPTED, SIZES_ACCEPTED

SCHEMA_VERSION = "2.0"


Schema = dict[str, object]

_TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{.*\}\}"}


class KeyKind(Enum):
    """Names the kinds of values: each with its schema, an example, and what is accepted."""

    TEXT = {"type": "string"}, "…", f"a string of up to {NAME_LENGTH_MAX} characters"
    VERSION = {"type": ["string", "number"]}, "1.0.0", "a version such as 1.0.0"
    DURATION = (
        {"type": ["string", "number"]},
        "60s",
        f"a time above zero, up to 100 years: {DURATIONS_ACCEPTED}",
    )
    SIZE = (
        {"type": ["string", "integer"]},
        "512MiB",
        f"a size of up to {SIZE_BYTES_MAX // 1000**4} TB: {SIZES_ACCEPTED}",
    )
    NUMBER = (
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEMPLATE]},
        0.5,
        f"a number above zero, up to {NUMBER_MAX}",
    )
    COUNT = (
        {"anyOf": [{"type": "integer", "minimum": 1}, _TEMPLATE]},
        1,
        f"a whole number from 1 to {NUMBER_MAX}",
    )
    BOOLEAN = {"anyOf": [{"type": "boolean"}, _TEMPLATE]}, True, "true or false"
    LIST = {"type": "array"}, list[Json](), "a list"
    ELEMENTS = (
        {"type": ["array", "string"]},
        "find.beams",
        "a list, or STAGE.OUTPUT for the list that an earlier stage returns, or STAGE to run "
        "once after each element of a stage that has for_each itself",
    )
    STAGES = (
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "image",
        "the id of a stage, or a list of up to 1000 ids, without templates",
    )
    MAPPING = {"type": "object"}, dict[str, Json](), "a mapping"

    def __init__(self, schema: Schema, example: Json, accepted: str) -> None:
        self.schema, self.example, self.accepted = schema, example, accepted


class Absent(Enum):
    """Names the ways to treat a key that is not there."""

    FINE = auto()
    WARNED = auto()
    REFUSED = auto()


TEXT, VERSION, DURATION, SIZE, NUMBER, COUNT, BOOLEAN, LIST, ELEMENTS, STAGES, MAPPING = KeyKind
FINE, WARNED, REFUSED = Absent


@dataclass(frozen=True, slots=True)
class Key:
    """Describes one key of a mapping."""

    kind: KeyKind
    about: str
    absent: Absent = FINE
    choices: tuple[str, ...] = ()
    other_spelling: str = ""  # tolerated with a warning
    example: Json = None  # of a list or mapping; where it is required, it must not be empty
    read_apart: bool = False  # its choices depend on another key
    spellings: Mapping[str, str] = field(default_factory=dict)  # of choices, likewise
    to: str = ""  # the field of the model that it fills; else it is read by its name


# A stage of which nothing is to be said; its folder is another matter.
STAGE_EXAMPLE: Json = {
    **{"id": "ingest", "version": "1.0.0", "type": "processing", "timeout": "60s"},
    "resources_required": [],
}
DEFINITION: Mapping[str, Key] = {
    "schema_version": Key(
        VERSION, "the version of this format", REFUSED, choices=(SCHEMA_VERSION,)
    ),
    "id": Key(TEXT, "the workflow's name; by default from the file's name"),
    "version": Key(VERSION, "the workflow's version; by default from the file's name"),
    "stages": Key(
        LIST,
        "the stages of the workflow, in any order",
        REFUSED,
        example=[STAGE_EXAMPLE],
    ),
    "network": Key(
        TEXT,
        "block: the containers of all stages share a network; they do so anyway if a stage "
        "that is switched on has `until`",
        choices=(BLOCK_NETWORK,),
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
        "remove it; in 2.0 each stage of the definition has its own resources_required",
    ),
}
STAGE: Mapping[str, Key] = {
    "id": Key(TEXT, "the stage's name", REFUSED),
    "version": Key(
        VERSION, "the stage's version: stages/<id>/<version> is its folder", REFUSED
    ),
    "type": Key(
        TEXT, "what the stage is for", REFUSED, choices=tuple(one.value for one in StageType)
    ),
    "timeout": Key(
        DURATION,
        f"the longest time that the stage may run: {DURATIONS_ACCEPTED}",
        WARNED,
        other_spelling="timout",
    ),
    "resources_required": Key(
        LIST,
        "what must be available before the stage begins",
        WARNED,
        other_spelling="resources",
    ),
    "dependencies": Key(
        LIST,
        "the conditions that must all be met before the stage begins",
        example=[{"type": "stage", "value": "ingest", "condition": "complete"}],
    ),
    "when": Key(
        BOOLEAN,
        "whether the stage runs; if not, later stages continue as if it were complete",
    ),
    "for_each": Key(
        ELEMENTS, "a list; the stage runs once for each element, which it sees as `item`"
    ),
    "for_each_max": Key(
        COUNT,
        f"how many elements the list may have; {ELEMENTS_DEFAULT} by default, "
        f"up to {ELEMENTS_MAX}",
    ),
    "until": Key(
        STAGES,
        "makes the stage a service, which runs until these stages have ended",
    ),
}
DEPENDENCY: Mapping[str, Key] = {
    "type": Key(TEXT, "what it depends on", REFUSED, choices=("stage", "buffer_object")),
    "value": Key(TEXT, "the id of a stage or of an object", REFUSED),
    "condition": Key(
        TEXT,
        "the state that this stage or object must have reached",
        REFUSED,
        choices=(*CONDITION_WORDS, PRESENT),
        read_apart=True,
    ),
}
RESOURCE_TYPE = Key(
    TEXT,
    "what is needed",
    REFUSED,
    choices=("nodes", "cpu", "memory", "buffer"),
    spellings={"node": "nodes"},
)
RESOURCES: Mapping[str, Mapping[str, Key]] = {
    "nodes": {
        "type": RESOURCE_TYPE,
        "number": Key(COUNT, "how many nodes", REFUSED, to="number"),
        "flavour": Key(TEXT, "the kind of these nodes", WARNED, to="flavour"),
        "exclusive": Key(
            BOOLEAN, "whether nothing else may run on these nodes", REFUSED, to="exclusive"
        ),
        "label": Key(
            TEXT,
            "a label that the worker must offer; for containers in a Swarm, a label of the "
            "nodes, as NAME or NAME=VALUE",
            to="label",
        ),
    },
    "cpu": {"type": RESOURCE_TYPE, "value": Key(NUMBER, "cores", REFUSED, to="cores")},
    "memory": {"type": RESOURCE_TYPE, "value": Key(SIZE, SIZES_ACCEPTED, REFUSED, to="size")},
    "buffer": {
        "type": RESOURCE_TYPE,
        "value": Key(SIZE, SIZES_ACCEPTED, REFUSED, to="size"),
        "label": Key(TEXT, "the label of the buffer, which the worker must offer", to="label"),
    },
}


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


def sip_json_schema() -> Schema:
    """Returns the schema of a definition file."""
    resources = [_mapping(keys, type={"const": kind}) for kind, keys in RESOURCES.items()]
    stage = _mapping(
        STAGE,
        dependencies=_key(STAGE["dependencies"], items=_mapping(DEPENDENCY)),
        resources_required=_key(STAGE["resources_required"], items={"oneOf": resources}),
    )
    versions = [SCHEMA_VERSION, float(SCHEMA_VERSION)]
    definition = _mapping(
        DEFINITION,
        schema_version=_key(DEFINITION["schema_version"], enum=versions),
        stages=_key(DEFINITION["stages"], items=stage),
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"SIP workflow definition {SCHEMA_VERSION}",
        **definition,
    }


def _mapping(keys: Mapping[str, Key], **others: Schema) -> Schema:
    """Returns the schema of a mapping; ``others`` replace those that rows of ``keys`` give."""
    return {
        "type": "object",
        "properties": {name: others.get(name) or _key(key) for name, key in keys.items()},
        "required": [name for name, key in keys.items() if key.absent is REFUSED],
        "additionalProperties": False,
    }


def _key(key: Key, **more: object) -> Schema:
    schema = {"enum": list(key.choices)} if key.choices else key.kind.schema
    return {"description": key.about, **schema, **more}
