"""Reads a request of version 1 as one of 2.0: an instance, or a processing block alone.

The nodes keep their positions, so that whatever is found in them later is found in the file as
it was written. What has the same meaning in 2.0 is carried over, each change with a warning;
what has no place there is lost, and told apart: then only a person can say what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip import version_1
from tidewheel.formats.sip.document import (
    KINDS,
    Entry,
    Fields,
    Items,
    Node,
    Scalar,
    is_null,
    plain_value,
)
from tidewheel.formats.sip.scheduling_block import SBI_VERSION
from tidewheel.formats.sip.version_1_templates import LOST
from tidewheel.lazy_dataclasses import dataclass

# What the prototype's database added to a request, and remarks that change nothing.
_REMARKS = frozenset(
    {"status", "created", "updated", "processing_block_ids", "resources_assigned"}
    | {"assigned_resources", "sbi_id", "date", "date_time", "name", "description"}
)
_REGISTER = "register the workflow (tidewheel register); the request gives its id and version"
_RESOURCES = ("resources_required", "resources_requirement")
_TYPES = {"real-time": "realtime", "real_time": "realtime", "real time": "realtime"}
_SCHEDULING_BLOCK = ("id", "project", "telescope", "programme_block")


def request_2(root: Fields, changes: Findings, lost: Findings) -> Fields:
    """Returns a request of version 1 as one of 2.0; see the head of this module."""
    return _Request(changes, lost).read(root)


@dataclass(slots=True)
class _Part:
    """Holds one mapping of a request while its entries are taken, each once."""

    fields: Fields
    left: dict[str, Entry] = field(init=False)

    def __post_init__(self) -> None:
        self.left = {one.key.text: one for one in self.fields}

    def take(self, *names: str) -> Entry | None:
        """Returns the first of these entries that says something, and takes all of them."""
        found = [self.left.pop(name) for name in names if name in self.left]
        return next((one for one in found if not is_null(one.value)), None)


@dataclass(frozen=True, slots=True)
class _Request:
    """Reads one request, part by part."""

    changes: Findings
    lost: Findings

    def read(self, root: Fields) -> Fields:
        if version_1.is_block_alone(root):
            return self._around(root)
        part = _Part(root)
        made: dict[str, Entry | None] = {
            "id": self._renamed(part.take("id", *version_1.OTHER_IDS), "id"),
            "version": self._version(part, root),
            "scheduling_block": self._scheduling_block(part),
            "subarray_id": self._renamed(
                part.take("subarray_id", *version_1.OTHER_SUBARRAYS), "subarray_id"
            ),
            version_1.BLOCKS: self._blocks(part),
            "scans": self._scans(part),
        }
        part.take("type", "project", "telescope")  # of its scheduling block, or a remark
        self._rest(part, "the instance")
        return _fields(made, root.position)

    def _version(self, part: _Part, root: Fields) -> Entry:
        found = part.take("version")
        here = root.position if found is None else found.value.position
        shown = plain_value(found.value) if found is not None else 1
        seen = f"this is a version {shown} request: it is read as {SBI_VERSION}"
        hint = f"write it as {SBI_VERSION}: {version_1.convert_command(root)}"
        self.changes.warning(version_1.CODE, seen, hint, here)
        return _entry("version", Scalar(SBI_VERSION, True, here), here)

    def _around(self, block: Fields) -> Fields:
        """Returns an instance around a block that stands alone in its file."""
        here, part = block.position, _Part(block)
        named = part.take("sbi_id")
        own = block.get("id")
        assert isinstance(own, Scalar)
        name = Scalar("SBI-" + own.text.removeprefix("PB-"), True, own.position)
        if named is not None and isinstance(named.value, Scalar):
            name = named.value
        seen = f"this is a block without an instance: it is submitted as {name.text}"
        hint = f"write it as {SBI_VERSION}: {version_1.convert_command(block)}"
        self.changes.warning(version_1.CODE, seen, hint, here)
        given = name.text.removeprefix("SBI-")
        scheduling = Scalar(f"SB-{given}", True, here)
        made = {
            "id": _entry("id", name, here),
            "version": _entry("version", Scalar(SBI_VERSION, True, here), here),
            "scheduling_block": _entry(
                "scheduling_block",
                _fields({"id": _entry("id", scheduling, here)}, here),
                here,
            ),
            version_1.BLOCKS: _entry(
                version_1.BLOCKS, Items((self._block(block),), here), here
            ),
        }
        return _fields(made, here)

    def _scheduling_block(self, part: _Part) -> Entry | None:
        found = part.take("scheduling_block")
        if found is not None and not isinstance(found.value, Fields):
            return found  # the reader says what is wrong
        inner = _Part(found.value if found is not None else Fields((), part.fields.position))  # type: ignore[arg-type]
        own = inner.take("id") or self._renamed(
            part.take(*version_1.OTHER_SCHEDULING_BLOCKS), "id", "scheduling_block: {id: …}"
        )
        part.take(*version_1.OTHER_SCHEDULING_BLOCKS)
        made: dict[str, Entry | None] = {"id": own}
        for name in _SCHEDULING_BLOCK[1:]:
            others = ("program_block",) if name == "programme_block" else ()
            made[name] = self._renamed(inner.take(name, *others), name) or self._renamed(
                part.take(name, *others), name, f"scheduling_block: {{{name}: …}}"
            )
        self._rest(inner, "scheduling_block")
        if not any(made.values()):
            return found
        here = part.fields.position if found is None else found.value.position
        return _entry("scheduling_block", _fields(made, here), here)

    def _scans(self, part: _Part) -> Entry | None:
        found = part.take("scans")
        if found is None or not isinstance(found.value, Fields):
            return found
        self._change(found, "scans is a mapping", "it is read as a list with one element")
        return Entry(found.key, Items((found.value,), found.value.position))

    def _blocks(self, part: _Part) -> Entry | None:
        found = part.take(version_1.BLOCKS)
        if found is None or not isinstance(found.value, Items):
            return found
        items = tuple(
            self._block(one) if isinstance(one, Fields) else one for one in found.value.items
        )
        return Entry(found.key, Items(items, found.value.position))

    def _block(self, block: Fields) -> Fields:
        part = _Part(block)
        named = block.get("id")
        what = f"block {named.text}" if isinstance(named, Scalar) else "a block"
        made: dict[str, Entry | None] = {
            "id": part.take("id"),
            "version": part.take("version"),
            "type": self._type(part, what),
            "priority": part.take("priority"),
            "workflow": self._workflow(part, what),
            "dependencies": part.take("dependencies"),
        }
        for word in _RESOURCES:
            found = part.take(word)
            if found is None:
                continue
            hint = "in 2.0 each stage of the definition has its own resources_required"
            if plain_value(found.value) in ([], {}):
                self._change(found, f"{what} has an empty {word}", hint)
            else:
                self._lose(found, f"{what} asks for resources", hint)
        self._rest(part, what)
        return _fields(made, block.position)

    def _type(self, part: _Part, what: str) -> Entry | None:
        found = part.take("type")
        if found is None or not isinstance(found.value, Scalar):
            return found
        right = _TYPES.get(found.value.text.lower())
        if right is None:
            return found
        seen = f"type of {what} is {found.value.text!r}"
        self._change(found, seen, f"it is read as {right}")
        return Entry(found.key, Scalar(right, True, found.value.position))

    def _workflow(self, part: _Part, what: str) -> Entry | None:
        found = part.take("workflow")
        words = (
            version_1.WORKFLOW_ID,
            version_1.WORKFLOW_VERSION,
            version_1.WORKFLOW_PARAMETERS,
        )
        apart = dict(zip(("id", "version", "parameters"), map(part.take, words), strict=True))
        if stages := part.take("workflow_stages"):
            self._lose(stages, f"{what} contains the stages of its workflow", _REGISTER)
        if found is None and not any(apart.values()):
            return None
        if found is not None and not isinstance(found.value, Fields):
            kind = KINDS[type(found.value)]
            self._lose(found, f"the workflow of {what} is {kind}, not a mapping", _REGISTER)
            return found
        inner = _Part(found.value if found is not None else Fields((), part.fields.position))  # type: ignore[arg-type]
        made: dict[str, Entry | None] = {
            "id": inner.take("id", "name") or apart["id"],
            "version": inner.take("version") or apart["version"],
            "parameters": inner.take("parameters", "configuration") or apart["parameters"],
        }
        made = {name: self._renamed(one, name) for name, one in made.items()}
        for entry in inner.left.values():
            if plain_value(entry.value) not in ({}, [], ""):
                seen = f"the workflow of {what} has the key {entry.key.text!r}"
                self._lose(entry, seen, _REGISTER)
        here = part.fields.position if found is None else found.value.position
        return _entry("workflow", _fields(made, here), here)

    def _rest(self, part: _Part, what: str) -> None:
        """Tells what is left of a part: remarks are dropped, everything else is lost."""
        for name, entry in part.left.items():
            if is_null(entry.value) or plain_value(entry.value) in ({}, [], ""):
                continue
            if name in _REMARKS:
                self._change(entry, f"{what} has {name!r}", "it has no effect in a request")
            else:
                self._lose(entry, f"{what} has the key {name!r}", "2.0 has no such key")

    def _renamed(self, entry: Entry | None, name: str, shown: str = "") -> Entry | None:
        if entry is None or entry.key.text == name:
            return entry
        seen = f"{entry.key.text!r} is not the name of this key in 2.0"
        self._change(entry, seen, f"write {shown or name}")
        return _entry(name, entry.value, entry.key.position)

    def _change(self, entry: Entry, seen: str, hint: str) -> None:
        self.changes.warning("other-spelling", seen, hint, entry.key.position)

    def _lose(self, entry: Entry, seen: str, hint: str) -> None:
        self.lost.warning(LOST, f"{seen}, which is not carried over", hint, entry.key.position)


def _entry(name: str, value: Node, here: Position) -> Entry:
    return Entry(Scalar(name, True, here), value)


def _fields(made: Mapping[str, Entry | None], here: Position) -> Fields:
    return Fields(tuple(one for one in made.values() if one is not None), here)
