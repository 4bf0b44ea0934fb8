"""The keys of a definition file: one table for the reader and for the editors' schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from tidewheel.formats.sip.model import CONDITION_WORDS, PRESENT, StageType
from tidewheel.formats.sip.places import Json
from tidewheel.quantities import DURATIONS_ACCEPTED, SIZES_ACCEPTED

SCHEMA_VERSION = "2.0"


class Kind(Enum):
    """What a value is."""

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
    """What it means that a key is not there."""

    FINE = auto()
    WARNED = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a mapping."""

    kind: Kind
    about: str
    absent: Absent = Absent.FINE
    choices: tuple[str, ...] = ()
    other_spelling: str = ""  # tolerated with a warning
    example: Json = None  # of a list or mapping; where it is required, it must not be empty
    read_apart: bool = False  # its choices depend on another key


DEFINITION: Mapping[str, Key] = {
    "schema_version": Key(
        kind=Kind.VERSION,
        about="the version of this format",
        absent=Absent.REFUSED,
        choices=(SCHEMA_VERSION,),
    ),
    "id": Key(kind=Kind.TEXT, about="the workflow's name; by default from the file's name"),
    "version": Key(
        kind=Kind.VERSION, about="the workflow's version; by default from the file's name"
    ),
    "stages": Key(
        kind=Kind.LIST,
        about="the stages of the workflow, in any order",
        absent=Absent.REFUSED,
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
    "id": Key(kind=Kind.TEXT, about="the stage's name", absent=Absent.REFUSED),
    "version": Key(
        kind=Kind.VERSION,
        about="the stage's version: stages/<id>/<version> is its folder",
        absent=Absent.REFUSED,
    ),
    "type": Key(
        kind=Kind.TEXT,
        about="what the stage is for",
        absent=Absent.REFUSED,
        choices=tuple(one.value for one in StageType),
    ),
    "timeout": Key(
        kind=Kind.DURATION,
        about=f"the longest time that the stage may run: {DURATIONS_ACCEPTED}",
        absent=Absent.WARNED,
        other_spelling="timout",
    ),
    "resources_required": Key(
        kind=Kind.LIST,
        about="what must be available before the stage begins",
        absent=Absent.WARNED,
        other_spelling="resources",
    ),
    "dependencies": Key(
        kind=Kind.LIST,
        about="what must have happened before: all of it",
        example=[{"type": "stage", "value": "ingest", "condition": "complete"}],
    ),
}
DEPENDENCY: Mapping[str, Key] = {
    "type": Key(
        kind=Kind.TEXT,
        about="what it depends on",
        absent=Absent.REFUSED,
        choices=("stage", "buffer_object"),
    ),
    "value": Key(
        kind=Kind.TEXT, about="the id of a stage or of an object", absent=Absent.REFUSED
    ),
    "condition": Key(
        kind=Kind.TEXT,
        about="what must have become of it",
        absent=Absent.REFUSED,
        choices=(*CONDITION_WORDS, PRESENT),
        read_apart=True,
    ),
}
RESOURCE_TYPE = Key(
    kind=Kind.TEXT,
    about="what is needed",
    absent=Absent.REFUSED,
    choices=("nodes", "cpu", "memory", "buffer"),
)
RESOURCES: Mapping[str, Mapping[str, Key]] = {
    "nodes": {
        "type": RESOURCE_TYPE,
        "number": Key(kind=Kind.COUNT, about="how many machines", absent=Absent.REFUSED),
        "flavour": Key(kind=Kind.TEXT, about="their kind", absent=Absent.WARNED),
        "exclusive": Key(
            kind=Kind.BOOLEAN,
            about="whether nothing else may run on them",
            absent=Absent.REFUSED,
        ),
        "label": Key(kind=Kind.TEXT, about="the label of the machines in a Swarm"),
    },
    "cpu": {
        "type": RESOURCE_TYPE,
        "value": Key(kind=Kind.NUMBER, about="cores", absent=Absent.REFUSED),
    },
    "memory": {
        "type": RESOURCE_TYPE,
        "value": Key(kind=Kind.SIZE, about=SIZES_ACCEPTED, absent=Absent.REFUSED),
    },
    "buffer": {
        "type": RESOURCE_TYPE,
        "value": Key(kind=Kind.SIZE, about=SIZES_ACCEPTED, absent=Absent.REFUSED),
        "label": Key(kind=Kind.TEXT, about="which buffer"),
    },
}
RESOURCE_TYPE_SPELLINGS: Mapping[str, str] = {"node": "nodes"}


def owners(name: str, keys: Mapping[str, Key]) -> list[str]:
    """What else in a definition has a key of this name: it may be indented wrongly."""
    owned = {
        "the definition": (DEFINITION,),
        "a stage": (STAGE,),
        "a dependency": (DEPENDENCY,),
        "a resource": tuple(RESOURCES.values()),
    }
    if all(keys is not one for tables in owned.values() for one in tables):
        return []
    return [what for what, tables in owned.items() if any(name in one for one in tables)]
