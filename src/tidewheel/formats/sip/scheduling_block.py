"""Reads a scheduling block instance into a typed request (seed 004, configure_sbi 2.0).

Nothing here knows which workflows or blocks there are: that is for the registry and the store
to say. Whatever can be seen in the text alone is found, all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tidewheel.core.graph.findings import NOWHERE, Findings, Position
from tidewheel.core.operator.blocks import (
    BLOCKS_MAX,
    NEEDS_MAX,
    PRIORITY_MAX,
    PRIORITY_MIN,
    BlockCondition,
    BlockNeed,
)
from tidewheel.core.operator.definition import is_run_name
from tidewheel.formats.sip import version_1
from tidewheel.formats.sip.document import (
    KINDS,
    Fields,
    Items,
    Node,
    Scalar,
    number,
    plain_value,
)
from tidewheel.formats.sip.field_reader import (
    FieldReader,
    refuse_entry,
    report_second,
    shown_as,
)
from tidewheel.formats.sip.keys import COUNT, LIST, MAPPING, REFUSED, TEXT, VERSION, WARNED, Key
from tidewheel.formats.sip.model import CONDITION_WORDS, StageCondition
from tidewheel.formats.sip.placeholders import Json
from tidewheel.formats.sip.text_files import SUFFIXES, decoded, file_name, read_plain
from tidewheel.lazy_dataclasses import dataclass

# The keys of a scheduling block instance, version 2.0.

SBI_VERSION = "2.0"
BLOCK = "processing_block"
_SPELLINGS = dict.fromkeys(("pb", "processing-block", "block"), BLOCK)
_WORKFLOW: Json = {"id": "vis-ingest", "version": "1.0.0"}

SBI: Mapping[str, Key] = {
    "id": Key(TEXT, "SBI-<date>-<project>-<anything>", REFUSED),
    "version": Key(VERSION, "the version of this format", REFUSED, choices=(SBI_VERSION,)),
    "scheduling_block": Key(
        MAPPING, "the block of which this is an instance", WARNED, example={"id": "SB-1"}
    ),
    "subarray_id": Key(TEXT, "stored unchanged"),
    "processing_blocks": Key(
        LIST,
        "the processing blocks to run",
        REFUSED,
        example=[{"id": "PB-20261115-sip-0001", "type": "offline", "workflow": _WORKFLOW}],
    ),
    "scans": Key(LIST, "stored unchanged"),
}
SCHEDULING_BLOCK: Mapping[str, Key] = {
    "id": Key(TEXT, "its id", WARNED),
    "project": Key(TEXT, "stored unchanged"),
    "telescope": Key(TEXT, "stored unchanged"),
    "programme_block": Key(TEXT, "stored unchanged"),
}
PROCESSING_BLOCK: Mapping[str, Key] = {
    "id": Key(TEXT, "PB-<date>-<project>-<anything>", REFUSED),
    "version": Key(VERSION, "the version of the block"),
    "type": Key(
        TEXT,
        "the type of the block, stored unchanged",
        REFUSED,
        choices=("realtime", "offline"),
    ),
    "workflow": Key(MAPPING, "the workflow that it runs", REFUSED, example=_WORKFLOW),
    "priority": Key(
        COUNT, f"a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}; higher is earlier"
    ),
    "dependencies": Key(LIST, "the blocks that must meet a condition before this block begins"),
}
WORKFLOW: Mapping[str, Key] = {
    "id": Key(TEXT, "the name of a registered workflow", REFUSED),
    "version": Key(VERSION, "its version; by default the highest", WARNED),
    "parameters": Key(MAPPING, "values of its parameters", other_spelling="configuration"),
}
DEPENDENCY: Mapping[str, Key] = {
    "type": Key(TEXT, "what it depends on", REFUSED, choices=(BLOCK,), spellings=_SPELLINGS),
    "value": Key(TEXT, "the id of a block", REFUSED),
    "condition": Key(
        TEXT, "the state that it must have reached", REFUSED, choices=tuple(CONDITION_WORDS)
    ),
    "parameters": Key(MAPPING, "stored unchanged"),
}

_BLOCK_EXAMPLE: dict[str, Json] = {"id": "PB-…", "type": "offline", "workflow": {"id": "…"}}
_SBI_ID = re.compile(r"SBI-[0-9]{8}-[A-Za-z]+-\S+", re.ASCII)
_BLOCK_ID = re.compile(r"PB-[0-9]{8}-[A-Za-z]+-\S+", re.ASCII)
_FINISHED = {StageCondition.ENDED: BlockCondition.FINISHED}  # the others have the same names


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlaces:
    """Holds the positions of a block's values, for findings of the registry and the store."""

    block: Position = NOWHERE
    id: Position = NOWHERE
    workflow: Position = NOWHERE
    parameters: Position = NOWHERE
    needs: Mapping[str, Position] = field(default_factory=dict)  # by the block that is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRequest:
    """Holds one processing block as it was asked for.

    ``workflow`` is empty where it cannot be read: then there is nothing to ask the registry.
    """

    id: str
    type: str
    workflow: str
    version: str = ""  # "": the highest
    parameters: Mapping[str, Json] = field(default_factory=dict)
    priority: int = 0
    needs: tuple[BlockNeed, ...] = ()
    body: Json = None
    places: BlockPlaces = field(default_factory=BlockPlaces, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SbiRequest:
    """Holds a scheduling block instance; `body` is all that was written, as JSON has it."""

    id: str
    blocks: tuple[BlockRequest, ...]
    body: Json = None


def read_sbi(file: str, content: bytes, findings: Findings) -> SbiRequest | None:
    """Returns the request in a JSON or YAML text, as far as it can be read; else None."""
    if not file_name(file).is_known or file_name(file).is_template:
        seen = f"{file} is not a scheduling block instance"
        hint = f"give a file that ends in {', '.join(SUFFIXES)} and is not a template"
        findings.error("sbi-file-kind", seen, hint, Position(file))
        return None
    text = decoded(file, content, findings)
    root = None if text is None else read_plain(file, text, findings)
    if root is None:
        return None
    if not isinstance(root, Fields):
        names = "id, version, scheduling_block and processing_blocks"
        hint = f"a scheduling block instance is a mapping with {names}"
        findings.error("sbi-kind", f"the file is {KINDS[type(root)]}", hint, root.position)
        return None
    if root.get("stages") is not None and root.get("processing_blocks") is None:
        seen = "this is a workflow definition, not a scheduling block instance"
        hint = f"register it, then name it in an instance: tidewheel register {file}"
        findings.error("sbi-kind", seen, hint, root.position)
        return None
    if version_1.is_request_1(root):
        carried = _as_version_2(root, findings)
        if carried is None:
            return None
        root = carried
    return _Reading(findings).read(root)


def _as_version_2(root: Fields, findings: Findings) -> Fields | None:
    """Returns a request of version 1 as one of 2.0; None, with one finding, if what it says
    is not certain there."""
    from tidewheel.formats.sip.version_1_request import request_2  # noqa: PLC0415 - it knows this

    changes, lost = Findings(), Findings()
    made = request_2(root, changes, lost)
    if (first := next(iter(lost.sorted()), None)) is not None:
        seen = f"this version 1 request cannot be read without loss: {first.message}"
        hint = f"convert it, and check the result: {version_1.convert_command(root)}"
        findings.error(version_1.CODE, seen, hint, first.position)
        return None
    for one in changes:
        findings.add(one)
    return made


def is_block_id(name: str) -> bool:
    """Says whether a text can be the id of a block, which names a run and a folder, too."""
    return _is_id(name, _BLOCK_ID)


def _is_id(name: str, pattern: re.Pattern[str]) -> bool:
    return bool(pattern.fullmatch(name)) and is_run_name(name) and "/" not in name


@dataclass(slots=True)
class _Reading:
    """Reads one instance, and remembers the names of its blocks."""

    findings: Findings
    _positions: dict[str, Position] = field(default_factory=dict)

    def read(self, root: Fields) -> SbiRequest:
        reader = FieldReader(root, SBI, "the instance", self.findings)
        name = self._id(reader, _SBI_ID, "SBI-20261115-sip-0001")
        version = reader.text("version")
        reader.text("subarray_id")
        reader.items("scans")
        self._scheduling_block(reader)
        items = reader.items("processing_blocks")
        if len(items) > BLOCKS_MAX:
            self._too_many("processing blocks", len(items), BLOCKS_MAX, reader.position)
            items = ()
        found = [self._block(item, number) for number, item in enumerate(items, 1)]
        blocks = tuple(one for one in found if one is not None)
        if root.get("processing_blocks") == Items((), reader.position):
            seen = "the instance has no processing blocks"
            hint = "name at least one in processing_blocks"
            place = reader.position_of("processing_blocks")
            self.findings.error("no-blocks", seen, hint, place)
        _check_circles(blocks, self.findings)
        body = _body(root, version)
        body["processing_blocks"] = [one.body for one in blocks]
        return SbiRequest(id=name, blocks=blocks, body=body)

    def _scheduling_block(self, reader: FieldReader) -> None:
        there = reader.fields("scheduling_block")
        if there is not None:
            inner = FieldReader(there, SCHEDULING_BLOCK, "scheduling_block", self.findings)
            for name in SCHEDULING_BLOCK:
                inner.text(name)

    def _block(self, item: Node, number: int) -> BlockRequest | None:
        if not isinstance(item, Fields):
            refuse_entry(item, f"processing block {number}", _BLOCK_EXAMPLE, self.findings)
            return None
        what = shown_as("block", item, f"processing block {number}")
        reader = FieldReader(item, PROCESSING_BLOCK, what, self.findings)
        name = self._id(reader, _BLOCK_ID, "PB-20261115-sip-0001")
        here = reader.position_of("id")
        if name in self._positions:
            report_second("block", name, self._positions[name], here, self.findings)
        elif name:
            self._positions[name] = here
        body = _body(item, reader.text("version"))
        kind = reader.text("type")
        workflow = body["workflow"] = self._workflow(reader)
        return BlockRequest(
            id=name,
            type=kind or "",
            workflow=workflow["id"],
            version=workflow["version"],
            parameters=workflow["parameters"],
            priority=self._priority(reader),
            needs=tuple(dict.fromkeys(self._needs(reader, name))),
            body=body,
            places=_places(item),
        )

    def _id(self, reader: FieldReader, pattern: re.Pattern[str], example: str) -> str:
        name = reader.text("id") or ""
        if name and not _is_id(name, pattern):
            kind = example.partition("-")[0]
            form = f"{kind}-<eight digits>-<letters>-<anything but blanks and />"
            hint = f"expected {form}, such as {example}"
            self.findings.error(
                "bad-id", f"{name!r} is not a valid id", hint, reader.position_of("id")
            )
        return name

    def _workflow(self, reader: FieldReader) -> dict[str, Any]:
        """Returns id, version and parameters of a block's workflow; all empty on an error."""
        unreadable = {"id": "", "version": "", "parameters": {}}
        there = reader.fields("workflow")
        if there is None:
            return unreadable
        before = self.findings.error_count
        inner = FieldReader(there, WORKFLOW, f"workflow of {reader.what}", self.findings)
        name, version = inner.text("id") or "", inner.text("version") or ""
        given = inner.fields("parameters")
        parameters = {} if given is None else plain_value(given)
        if self.findings.error_count > before:
            return unreadable
        return {"id": name, "version": version, "parameters": parameters}

    def _priority(self, reader: FieldReader) -> int:
        node = reader.node("priority")
        if node is None:
            return 0
        value = number(node.text) if isinstance(node, Scalar) else None
        if value is None or value != int(value) or not PRIORITY_MIN <= value <= PRIORITY_MAX:
            seen = repr(node.text) if isinstance(node, Scalar) else KINDS[type(node)]
            message = f"priority of {reader.what} is {seen}"
            hint = f"expected {PROCESSING_BLOCK['priority'].about}"
            self.findings.error("bad-priority", message, hint, node.position)
            return 0
        return int(value)

    def _needs(self, reader: FieldReader, name: str) -> Iterator[BlockNeed]:
        items, what = reader.items("dependencies"), reader.what
        if len(items) > NEEDS_MAX:
            here = reader.position_of("dependencies")
            self._too_many(f"dependencies of {what}", len(items), NEEDS_MAX, here)
            return
        for count, item in enumerate(items, 1):
            found = self._need(item, f"dependency {count} of {what}")
            if found is not None and found.parent == name:
                seen = f"{what} waits for itself"
                hint = "remove this dependency"
                self.findings.error("waits-for-itself", seen, hint, item.position)
            elif found is not None:
                yield found

    def _need(self, item: Node, what: str) -> BlockNeed | None:
        if not isinstance(item, Fields):
            example = {"type": BLOCK, "value": "PB-…", "condition": "complete"}
            refuse_entry(item, what, example, self.findings)
            return None
        kind = item.get("type")
        if isinstance(kind, Scalar) and kind.text == "buffer_object":
            seen = f"{what} is on a buffer object"
            hint = "a block can only wait for blocks; let a stage wait for the object"
            self.findings.error("block-waits-for-object", seen, hint, kind.position)
            return None
        reader = FieldReader(item, DEPENDENCY, what, self.findings)
        reader.text("type")
        parent, condition = reader.text("value"), reader.text("condition")
        reader.fields("parameters")
        if parent is None or condition is None:
            return None
        of_stage = CONDITION_WORDS[condition]
        return BlockNeed(parent, _FINISHED.get(of_stage) or BlockCondition[of_stage.name])

    def _too_many(self, what: str, count: int, most: int, position: Position) -> None:
        message = f"{count} {what}; at most {most} are accepted"
        hint = "split the instance or the block into several"
        self.findings.error("too-many", message, hint, position)


def _body(fields: Fields, version: str | None) -> dict[str, Any]:
    """Returns a mapping as JSON has it, with its version as a text if there is one."""
    body = plain_value(fields)
    assert isinstance(body, dict)
    return body if version is None else {**body, "version": version}


def _places(block: Fields) -> BlockPlaces:
    """Returns the positions of a block's parts; of a missing one, the nearest around it."""

    def place(*way: str) -> Position:
        node: Node | None = block
        for name in way:
            inner = node.get(name) if isinstance(node, Fields) else None
            node = inner if inner is not None else node
        assert node is not None
        return node.position

    needs = block.get("dependencies")
    values = (
        one.get("value")
        for one in (needs.items if isinstance(needs, Items) else ())
        if isinstance(one, Fields)
    )
    return BlockPlaces(
        block=block.position,
        id=place("id"),
        workflow=place("workflow", "id"),
        parameters=place("workflow", "parameters"),
        needs={one.text: one.position for one in values if isinstance(one, Scalar)},
    )


def _check_circles(blocks: tuple[BlockRequest, ...], findings: Findings) -> None:
    """Reports blocks that wait for each other, because they would wait for ever."""
    positions = {one.id: one.places.block for one in blocks}
    waits = {
        one.id: [need.parent for need in one.needs if need.parent in positions]
        for one in blocks
    }
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        seen = f"blocks wait for each other: {' => '.join(circle)}"
        findings.error("circle", seen, "remove one of these dependencies", positions[circle[0]])
