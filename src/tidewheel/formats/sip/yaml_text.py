"""YAML as SIP files use it: one document of plain texts, lists and mappings.

Read from the parser's events, so that an alias is refused before it could stand for a billion
nodes and a tag before it could name anything. Scalars are texts; the schema types them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, Node, TooMuch

EMPTY = (
    "empty-file",
    "the file says nothing",
    "write into it what belongs there, or remove it",
)
PositionOf = Callable[[int, int], Position]  # line and column, both from 0


class _Refused(Exception):
    """What follows cannot be read; a finding says why."""


def read_yaml(
    text: str, position_of: PositionOf, builder: Builder, findings: Findings
) -> Node | None:
    """The only document of a file; None, with a finding, if there is none."""
    reader = _Reader(position_of, builder, findings)
    try:
        return reader.read(text)
    except (_Refused, TooMuch):
        return None
    except yaml.MarkedYAMLError as error:
        _report(error, text, position_of, findings)
    except yaml.reader.ReaderError as error:
        _report_character(error, text, position_of, findings)
    return None


class _Reader:
    """Builds nodes from events, without recursion."""

    def __init__(self, position_of: PositionOf, builder: Builder, findings: Findings) -> None:
        self._position_of = position_of
        self._builder = builder
        self._findings = findings

    def read(self, text: str) -> Node | None:
        documents = 0
        # Open lists and mappings, the innermost last: (is it a mapping, where, nodes so far).
        opened: list[tuple[bool, Position, list[Node]]] = [(False, Position(""), [])]
        for event in self._events(text):
            match event:
                case DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        self._refuse(event, "several-documents", *_SEVERAL_DOCUMENTS)
                case ScalarEvent():
                    quoted = event.style not in (None, "")
                    here = self._position(event)
                    opened[-1][2].append(self._builder.scalar(event.value, quoted, here))
                case SequenceStartEvent() | MappingStartEvent():
                    here = self._position(event)
                    self._builder.check_depth(len(opened), here)
                    opened.append((isinstance(event, MappingStartEvent), here, []))
                case SequenceEndEvent() | MappingEndEvent():
                    is_mapping, here, nodes = opened.pop()
                    opened[-1][2].append(self._closed(is_mapping, here, nodes))
                case _:
                    pass  # beginnings and ends of streams and documents
        found = opened[0][2]
        if not found:
            self._findings.error(*EMPTY, self._position_of(0, 0))
        return found[0] if found else None

    def _closed(self, is_mapping: bool, here: Position, nodes: list[Node]) -> Node:
        if not is_mapping:
            return self._builder.items(nodes, here)
        return self._builder.fields(list(zip(nodes[::2], nodes[1::2], strict=True)), here)

    def _events(self, text: str) -> Iterator[Event]:
        parsed: Any = yaml.parse(text, Loader=yaml.CSafeLoader)
        for event in parsed:
            if isinstance(event, AliasEvent):
                self._refuse(event, "yaml-alias", *_ALIAS)
            if isinstance(event, NodeEvent) and event.anchor is not None:
                self._refuse(event, "yaml-alias", *_ALIAS)
            if getattr(event, "tag", None) is not None:
                self._refuse(event, "yaml-tag", f"the tag {event.tag} is not accepted", _TAG)
            yield event

    def _position(self, event: Event) -> Position:
        mark: Any = event.start_mark
        return self._position_of(mark.line, mark.column)

    def _refuse(self, event: Event, code: str, message: str, hint: str) -> None:
        self._findings.error(code, message, hint, self._position(event))
        raise _Refused


_ALIAS = (
    "anchors and aliases (&name, *name) are not accepted",
    "write the value out; a text that begins with & or * needs quotes",
)
_TAG = "remove it: what a value means is known from its key; a text with ! needs quotes"
_SEVERAL_DOCUMENTS = (
    "a second document begins here",
    "write one definition in each file, without ---",
)


def _report(
    error: yaml.MarkedYAMLError, text: str, position_of: PositionOf, findings: Findings
) -> None:
    if error.context_mark is not None and "quoted scalar" in (error.context or ""):
        # The parser stops where the text ends; whoever mends it looks for where the quote is.
        opened = error.context_mark
        findings.error(
            "yaml-syntax",
            "this is no YAML: a quote is opened here and not closed",
            "close it; a quote within a text in quotes is written twice ('') or, in double "
            'quotes, as \\"',
            position_of(opened.line, opened.column),
        )
        return
    if error.context_mark is not None and error.context in _OPENED:
        # The parser goes on as long as it can; what is wrong stands where it began.
        message, hint = _OPENED[error.context]
        opened, problem = error.context_mark, error.problem_mark or error.context_mark
        if problem.line > opened.line + 1:
            met = position_of(problem.line, problem.column).line
            message = f"{message}: {error.problem} in line {met}"
        findings.error("yaml-syntax", message, hint, position_of(opened.line, opened.column))
        return
    mark: Any = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    around = f" {error.context}" if error.context else ""
    findings.error(
        "yaml-syntax",
        f"this is no YAML: {error.problem or 'it ends too early'}{around}",
        _FLOW_ADVICE if error.context == "while parsing a flow node" else _advice(text, line),
        position_of(line, column),
    )


_FLOW_ADVICE = "write a value there, or close the [ or { that was opened before"
_OPENED = {
    "while scanning a simple key": (
        "this is no YAML: a key has no ': ' behind it",
        "write key: value, with a blank behind the colon, or indent the line as a part of the "
        "text before it",
    ),
    "while parsing a flow mapping": (
        "this is no YAML: the { that begins here does not end as it should",
        "write {name: value, name: value}, and close it with }; a text with { needs quotes",
    ),
    "while parsing a flow sequence": (
        "this is no YAML: the [ that begins here does not end as it should",
        "write [value, value], and close it with ]; a text with [ needs quotes",
    ),
}


def _advice(text: str, line: int) -> str:
    lines = text.split("\n")
    written = lines[line] if line < len(lines) else ""
    if "\t" in written[: _indent(written)]:
        return "indent with blanks: YAML accepts no tabs there"
    before = next((one for one in reversed(lines[:line]) if one.strip()), "")
    if written.strip() and _key_column(written) != _key_column(before):
        return (
            f"its key begins in column {_key_column(written) + 1}, that of the line before in "
            f"column {_key_column(before) + 1}: keys of one mapping stand exactly below each "
            "other"
        )
    return "check indentation, colons and quotes of this line and of the one before it"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _key_column(line: str) -> int:
    """Where the first key of a line begins: behind the signs of lists."""
    return len(line) - len(line.lstrip(" -"))


def _report_character(
    error: yaml.reader.ReaderError, text: str, position_of: PositionOf, findings: Findings
) -> None:
    before = text[: error.position]
    line = before.count("\n")
    findings.error(
        "yaml-syntax",
        f"a character is not accepted in YAML: {error.reason}",
        "remove it, or write it as an escape in double quotes",
        position_of(line, len(before) - before.rfind("\n") - 1),
    )
