"""Keeps a YAML or JSON file as it was written: texts, lists and mappings with positions.

Scalars stay texts; what they mean is for the schema to say, so that `1.10` is a version and no
number. A file that was rendered from a template holds *places* instead of the values that the
template printed: `Builder` puts the values in after the structure is known, so that no value
can ever be read as structure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.growth import grow
from tidewheel.formats.sip.model import DEPTH_MAX, NODES_MAX, NUMBER_LENGTH_MAX
from tidewheel.formats.sip.placeholders import (
    PLACE,
    RESERVED,
    Json,
    PrintedValue,
    text_of_value,
)
from tidewheel.lazy_dataclasses import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class Scalar:
    """Holds one value as it was written; ``unknown`` says which value is still to come.

    ``printed`` if a template printed it, or a part of it.
    """

    text: str
    quoted: bool
    position: Position = field(compare=False)
    unknown: str = ""
    printed: bool = field(default=False, compare=False)
    # What a template printed in quotes, and nothing else, if that is a list or mapping.
    structure: list[Json] | dict[str, Json] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Items:
    """Holds a list; ``printed`` if a template printed it, and nothing else, in this place."""

    items: tuple[Node, ...]
    position: Position = field(compare=False)
    printed: bool = field(default=False, compare=False)


class Entry(NamedTuple):
    """Holds a key and its value."""

    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True)
class Fields:
    """Holds a mapping; keys are texts and occur once.

    ``printed`` means the same as for a list.
    """

    entries: tuple[Entry, ...]
    position: Position = field(compare=False)
    printed: bool = field(default=False, compare=False)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def get(self, name: str) -> Node | None:
        return next((entry.value for entry in self.entries if entry.key.text == name), None)


Node = Scalar | Items | Fields


def unknown_scalars(node: Node) -> Iterator[Scalar]:
    """Yields the values of a node that are still to come."""
    if isinstance(node, Scalar):
        if node.unknown:
            yield node
    else:
        inner = node.items if isinstance(node, Items) else (one.value for one in node)
        for one in inner:
            yield from unknown_scalars(one)


def key_places(
    node: Node, lead: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Position]]:
    """Yields the path of each key of a mapping, and of those in it, with its place."""
    for key, value in node if isinstance(node, Fields) else ():
        path = (*lead, key.text)
        yield path, key.position
        yield from key_places(value, path)


KINDS: Mapping[type, str] = {Scalar: "a string", Items: "a list", Fields: "a mapping"}


class Unreadable(Exception):
    """A file cannot be read on, because it is too much or not accepted; a finding says why."""


class Builder:
    """Makes the nodes of one file, within the limits, and puts values into its places."""

    def __init__(self, findings: Findings, values: Sequence[PrintedValue] = ()) -> None:
        self._findings = findings
        self._values = values
        self._count = 0

    def anew(self) -> Builder:
        """Returns a builder for the same file, read from its beginning."""
        return Builder(self._findings, self._values)

    def scalar(self, text: str, quoted: bool, position: Position) -> Node:
        """Returns a string; or a structure, where a template printed one and nothing else."""
        self._counted(position)
        if RESERVED.search(text) is None:
            return Scalar(text, quoted, position)
        if not self._has_places(text, position):
            return Scalar("", quoted, position)
        alone = PLACE.fullmatch(text)
        value = self._values[int(alone[1])].value if alone is not None else None
        structure = value if isinstance(value, dict | list) else None
        if structure is not None and not quoted:
            node = self._structure(structure, position)
            return node if isinstance(node, Scalar) else replace(node, printed=True)
        used = [self._values[int(place[1])] for place in PLACE.finditer(text)]
        unknown = next((value.unknown for value in used if value.unknown), "")
        filled = filled_text(text, self._values)
        return Scalar(filled, quoted, position, unknown, printed=True, structure=structure)

    def items(self, items: list[Node], position: Position) -> Node:
        self._counted(position)
        return Items(tuple(items), position)

    def fields(self, entries: list[tuple[Node, Node]], position: Position) -> Node:
        self._counted(position)
        known: dict[str, Entry] = {}
        for key, value in entries:
            if not isinstance(key, Scalar):
                seen = f"{KINDS[type(key)]} is used as a key"
                self._findings.error("key-kind", seen, "keys are strings", key.position)
            elif key.text in known:
                first = known[key.text].key.position
                seen = f"the key {key.text!r} appears here a second time"
                hint = f"remove one of the two; the first is in line {first.line}"
                self._findings.error("duplicate-key", seen, hint, key.position)
            else:
                known[key.text] = Entry(key, value)
        return Fields(tuple(known.values()), position)

    def collection(self, is_mapping: bool, nodes: list[Node], position: Position) -> Node:
        """Returns a list of nodes, or a mapping in which they are keys and values in turn."""
        if not is_mapping:
            return self.items(nodes, position)
        return self.fields(list(zip(nodes[::2], nodes[1::2], strict=True)), position)

    def check_depth(self, depth: int, position: Position) -> None:
        if depth > DEPTH_MAX:
            seen = f"lists and mappings are nested more than {DEPTH_MAX} deep here"
            self._findings.error("nested-too-deeply", seen, "nest it less deeply", position)
            raise Unreadable

    def _counted(self, position: Position) -> None:
        self._count += 1
        grow(1)
        if self._count > NODES_MAX:
            seen = f"the file has more than {NODES_MAX} values"
            hint = "split it, or make it shorter"
            self._findings.error("file-too-large", seen, hint, position)
            raise Unreadable

    def _structure(self, value: Json, position: Position, depth: int = 0) -> Node:
        self.check_depth(depth, position)
        if isinstance(value, dict):
            entries: list[tuple[Node, Node]] = [
                (Scalar(str(key), True, position), self._structure(one, position, depth + 1))
                for key, one in value.items()
            ]
            return self.fields(entries, position)
        if isinstance(value, list):
            return self.items(
                [self._structure(one, position, depth + 1) for one in value], position
            )
        self._counted(position)
        return Scalar(text_of_value(value), isinstance(value, str), position, printed=True)

    def _has_places(self, text: str, position: Position) -> bool:
        """Says whether the reserved signs in a text are places, and reports others. Others can
        only have been written by a person."""
        numbers = [int(place[1]) for place in PLACE.finditer(text)]
        others = RESERVED.search(PLACE.sub("", text))
        if others is None and all(number < len(self._values) for number in numbers):
            return True
        seen = "a string has the character U+F5EE0 or U+F5EE1, which are reserved"
        self._findings.error("reserved-character", seen, "remove it", position)
        return False


def filled_text(text: str, values: Sequence[PrintedValue]) -> str:
    """Returns a rendered text with the values in its places, for people to read."""
    return PLACE.sub(lambda place: values[int(place[1])].text, text)


# Plain values: a scalar without a schema has one of YAML 1.2's core types, as in JSON.

_NULL = re.compile(r"null|Null|NULL|~|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


def plain_value(node: Node) -> Json:
    """Returns a node as the value that JSON would have; quoted scalars are texts."""
    if isinstance(node, Items):
        return [plain_value(one) for one in node.items]
    if isinstance(node, Fields):
        return {entry.key.text: plain_value(entry.value) for entry in node}
    if node.quoted:
        return node.text
    if _NULL.fullmatch(node.text):
        return None
    flag = boolean(node)
    found = number(node.text) if flag is None else flag
    return node.text if found is None else found


def is_null(node: Node) -> bool:
    """Says whether nothing was written: `key:`, `key: ~` and `key: null`."""
    return isinstance(node, Scalar) and not node.quoted and bool(_NULL.fullmatch(node.text))


def boolean(node: Node) -> bool | None:
    """Returns true or false as YAML writes them; None for everything else."""
    text = node.text if isinstance(node, Scalar) else ""
    if _TRUE.fullmatch(text):
        return True
    return False if _FALSE.fullmatch(text) else None


def number(text: str) -> int | float | None:
    """Returns a number of a reasonable length; None for everything else."""
    if len(text) > NUMBER_LENGTH_MAX:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        found = float(text)
        return found if math.isfinite(found) else None
    return None
