"""The text of a definition, ready to be parsed; each line knows where it was written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.graph.findings import Position

# An origin is one integer, file number and line number: a list of them is small and quick.
LINE_UNIT = 1 << 24


def origin(file_number: int, line: int) -> int:
    return file_number * LINE_UNIT + line


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines without trailing white space, and where each of them was written."""

    folder: Path
    files: tuple[str, ...]  # from the folder, the main one first
    lines: Sequence[str]
    origins: Sequence[int]
    templated: bool = False

    @classmethod
    def as_written(cls, folder: Path, files: tuple[str, ...], lines: list[str]) -> SourceText:
        """Lines that stand in the first file as they are here."""
        return cls(folder, files, lines, [origin(0, one) for one in range(1, len(lines) + 1)])

    @property
    def text(self) -> str:
        """What a person would see who had written it without includes and templates."""
        return "\n".join(self.lines) + "\n"

    def position(self, index: int, column: int = 0) -> Position:
        """Where line ``index`` (from 0) was written; a template moves columns, so they go."""
        if not 0 <= index < len(self.origins):
            return Position(self.files[0] if self.files else "")
        file_number, line = divmod(self.origins[index], LINE_UNIT)
        return Position(self.files[file_number], line, 0 if self.templated else column)
