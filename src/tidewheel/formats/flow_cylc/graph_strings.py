"""The texts under `[scheduling] [[graph]]`, line by line, each with its place in the source."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.checking import position_of
from tidewheel.formats.flow_cylc.sections import Item, Section
from tidewheel.formats.flow_cylc.source_text import SourceText
from tidewheel.formats.flow_cylc.value_text import BadValue, unquoted


@dataclass(frozen=True, slots=True)
class GraphLine:
    """One line as written; its column is that of the first character, 0 if it is not known."""

    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class GraphString:
    """Everything under one recurrence, in order; several texts under it add up."""

    recurrence: str
    lines: tuple[GraphLine, ...]
    position: Position  # of the recurrence

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


def read_graph(
    graph: Section, source: SourceText, findings: Findings
) -> tuple[GraphString, ...]:
    strings = []
    for item in graph.items():
        parts: list[Item] = []
        part: Item | None = item
        while part is not None:
            parts.append(part)
            part = part.earlier
        lines: list[GraphLine] = []
        for one in reversed(parts):
            try:
                lines += _lines(one, source)
            except BadValue as error:
                findings.error(
                    "bad-value",
                    f"[scheduling][graph]{item.name}: {error}",
                    error.hint,
                    position_of(one, source),
                )
        strings.append(GraphString(item.name, tuple(lines), position_of(parts[-1], source)))
    return tuple(strings)


def _lines(item: Item, source: SourceText) -> list[GraphLine]:
    raw = item.text
    quoted = raw[:1] in "\"'" and bool(raw)
    text = unquoted(raw) if quoted else raw.split("#", 1)[0].rstrip()
    first_line = source.lines[item.line]
    start = first_line.find(raw.split("\n", 1)[0], first_line.find("="))
    if quoted:
        start += 3 if raw[:3] in ('"""', "'''") else 1
    lines = []
    for number, line in enumerate(text.split("\n")):
        column = start + 1 if number == 0 else 1
        lines.append(GraphLine(line, source.position(item.line + number, column)))
    return lines
