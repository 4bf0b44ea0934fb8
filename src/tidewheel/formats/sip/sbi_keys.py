"""The keys of a scheduling block instance, version 2.0."""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.core.operator.blocks import PRIORITY_MAX, PRIORITY_MIN
from tidewheel.formats.sip.keys import Absent, Key, Kind
from tidewheel.formats.sip.model import CONDITION_WORDS
from tidewheel.formats.sip.places import Json

SBI_VERSION = "2.0"
BLOCK = "processing_block"
BLOCK_SPELLINGS = ("pb", "processing-block", "block")  # tolerated with a warning
_WORKFLOW: Json = {"id": "vis-ingest", "version": "1.0.0"}

SBI: Mapping[str, Key] = {
    "id": Key(kind=Kind.TEXT, about="SBI-<date>-<project>-<anything>", absent=Absent.REFUSED),
    "version": Key(
        kind=Kind.VERSION,
        about="the version of this format",
        absent=Absent.REFUSED,
        choices=(SBI_VERSION,),
    ),
    "scheduling_block": Key(
        kind=Kind.MAPPING,
        about="what it is an instance of",
        absent=Absent.WARNED,
        example={"id": "SB-1"},
    ),
    "subarray_id": Key(kind=Kind.TEXT, about="kept as it is"),
    "processing_blocks": Key(
        kind=Kind.LIST,
        about="what is to be done",
        absent=Absent.REFUSED,
        example=[{"id": "PB-20261115-sip-0001", "type": "offline", "workflow": _WORKFLOW}],
    ),
    "scans": Key(kind=Kind.LIST, about="kept as they are"),
}
SCHEDULING_BLOCK: Mapping[str, Key] = {
    "id": Key(kind=Kind.TEXT, about="its id", absent=Absent.WARNED),
    "project": Key(kind=Kind.TEXT, about="kept as it is"),
    "telescope": Key(kind=Kind.TEXT, about="kept as it is"),
    "programme_block": Key(kind=Kind.TEXT, about="kept as it is"),
}
PROCESSING_BLOCK: Mapping[str, Key] = {
    "id": Key(kind=Kind.TEXT, about="PB-<date>-<project>-<anything>", absent=Absent.REFUSED),
    "version": Key(kind=Kind.VERSION, about="the version of the block"),
    "type": Key(
        kind=Kind.TEXT,
        about="when it is done",
        absent=Absent.REFUSED,
        choices=("realtime", "offline"),
    ),
    "workflow": Key(
        kind=Kind.MAPPING, about="which workflow", absent=Absent.REFUSED, example=_WORKFLOW
    ),
    "priority": Key(
        kind=Kind.COUNT,
        about=f"a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}; higher is earlier",
    ),
    "dependencies": Key(kind=Kind.LIST, about="other blocks that come before: all of them"),
}
WORKFLOW: Mapping[str, Key] = {
    "id": Key(kind=Kind.TEXT, about="the name of a registered workflow", absent=Absent.REFUSED),
    "version": Key(
        kind=Kind.VERSION, about="its version; else the highest", absent=Absent.WARNED
    ),
    "parameters": Key(
        kind=Kind.MAPPING, about="values of its parameters", other_spelling="configuration"
    ),
}
DEPENDENCY: Mapping[str, Key] = {
    "type": Key(
        kind=Kind.TEXT, about="what it depends on", absent=Absent.REFUSED, choices=(BLOCK,)
    ),
    "value": Key(kind=Kind.TEXT, about="the id of a block", absent=Absent.REFUSED),
    "condition": Key(
        kind=Kind.TEXT,
        about="what must have become of it",
        absent=Absent.REFUSED,
        choices=tuple(CONDITION_WORDS),
    ),
    "parameters": Key(kind=Kind.MAPPING, about="kept as they are"),
}
