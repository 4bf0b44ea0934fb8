"""`%include 'file'`: the lines of another file take the place of this one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.flow_cylc.limits import INCLUDE_DEPTH_MAX, INCLUDES_MAX, LINES_MAX
from tidewheel.formats.flow_cylc.source_files import BadSource, SourceFolder
from tidewheel.formats.flow_cylc.source_text import origin

_INCLUDE = re.compile(r"\s*%include\s+(\S.*?)\s*\Z")
_QUOTES = ("'", '"')


@dataclass(slots=True)
class Inlined:
    """Lines and origins while files are put together."""

    folder: SourceFolder
    findings: Findings
    lines: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    includes: int = 0

    def add(self, name: str, asked_at: Position, within: tuple[str, ...] = ()) -> None:
        """The lines of ``name`` and of what it includes; ``within`` is who includes it."""
        try:
            lines = self.folder.read_lines(name, asked_at)
        except BadSource as error:
            self.findings.error(error.finding_code, str(error), error.hint, error.position)
            return
        file_number = len(self.folder.names) - 1
        if not any("%include" in line for line in lines):
            self.lines += lines
            self.origins += range(origin(file_number, 1), origin(file_number, len(lines) + 1))
            return
        for number, line in enumerate(lines, 1):
            match = _INCLUDE.match(line)
            if match is None:
                self.lines.append(line)
                self.origins.append(origin(file_number, number))
            elif not self._include(match[1], Position(name, number), (*within, name)):
                return

    def _include(self, argument: str, position: Position, within: tuple[str, ...]) -> bool:
        """Whether it makes sense to read on."""
        wanted = self._unquoted(argument, position)
        if wanted is None:
            return True
        if wanted in within:
            circle = " -> ".join([*within[within.index(wanted) :], wanted])
            self.findings.error(
                "include-loop", f"files include each other: {circle}", "remove one", position
            )
            return True
        self.includes += 1
        if self.includes > INCLUDES_MAX or len(within) > INCLUDE_DEPTH_MAX:
            self.findings.error(
                "too-many-includes",
                f"more than {INCLUDES_MAX} includes, or more than {INCLUDE_DEPTH_MAX} within "
                "each other",
                position=position,
            )
            return False
        self.add(wanted, position, within)
        return len(self.lines) <= LINES_MAX

    def _unquoted(self, argument: str, position: Position) -> str | None:
        first, last = argument[0], argument[-1]
        if first not in _QUOTES and last not in _QUOTES:
            return argument
        if first == last and len(argument) > 2:  # noqa: PLR2004 - two quotes and a name
            return argument[1:-1]
        self.findings.error(
            "bad-include",
            f"the quotes around {argument} do not match",
            "write: %include 'file'",
            position,
        )
        return None
