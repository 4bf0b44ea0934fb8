"""Reads a definition line by line, with the origin of each: files, includes, joined lines.

Only regular files inside of the definition's own folder are read, and only text. Every other
way to a file (a parent folder, an absolute path, a symbolic link that leads out, a device, a
pipe) is refused before anything is read: a definition may come from a stranger.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import stat
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass, pattern

# Files of the definition's folder.

# Beyond a limit there is a finding, never a hang.
SOURCE_BYTES_MAX = 8_000_000  # of all files together, and of what a template renders
# The first line of a text that a program wrote: no includes, no template, no continued lines.
PLAIN = "#!plain"
LINES_MAX = 200_000  # after includes and templates
LINE_LENGTH_MAX = 100_000
INCLUDE_DEPTH_MAX = 20
INCLUDES_MAX = 1_000
FILES_LOOKED_AT_MAX = 1000


class BadSource(Refused):
    """A file of the definition cannot be used."""

    code = "bad_source"

    def __init__(self, code: str, message: str, hint: str, position: Position) -> None:
        self.finding_code, self.hint, self.position = code, hint, position
        super().__init__(message)


@dataclass(slots=True)
class SourceFolder:
    """Holds the folder of one definition, and how many bytes of it may still be read."""

    path: Path  # resolved
    bytes_left: int = SOURCE_BYTES_MAX
    names: list[str] = field(default_factory=list)

    def read_lines(self, name: str, asked_at: Position) -> list[str]:
        """Returns the lines of a text file, given its path from the folder."""
        content = self._read(name, asked_at)
        self.names.append(name)
        return decoded(content, name).split("\n")

    def _read(self, name: str, asked_at: Position) -> bytes:
        target = self.resolve(name, asked_at)
        # Without blocking: opening a pipe must not wait for somebody to write into it.
        try:
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _unreadable(name, error, asked_at, target.parent) from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise BadSource(
                    "not-a-file", f"{name} is not a regular file", "name a text file", asked_at
                )
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(self.bytes_left + 1)
        except OSError as error:
            raise _unreadable(name, error, asked_at, target.parent) from None
        finally:
            os.close(descriptor)
        if len(content) > self.bytes_left:
            seen = f"with {name} the definition is larger than {SOURCE_BYTES_MAX} bytes"
            hint = "use parameters or families instead of repeated sections"
            raise BadSource("source-too-large", seen, hint, asked_at)
        self.bytes_left -= len(content)
        return content

    def resolve(self, name: str, asked_at: Position) -> Path:
        """Returns where a file really is; raises BadSource if that is outside of the folder."""
        if "\0" in name:
            raise BadSource("not-a-file", "a file name contains a NUL byte", "", asked_at)
        try:
            target = (self.path / name).resolve()
        except (OSError, RuntimeError):  # a loop of symbolic links
            raise BadSource(
                "not-a-file", f"the symbolic links of {name} lead to no file", "", asked_at
            ) from None
        if not target.is_relative_to(self.path):
            seen = f"{name} is outside of the workflow's folder"
            hint = "copy the file into the folder: files outside of it are not read"
            raise BadSource("outside-source", seen, hint, asked_at)
        return target


def _nearest(name: str, folder: Path) -> str:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        present = [entry.name for entry in itertools.islice(entries, FILES_LOOKED_AT_MAX)]
        near = difflib.get_close_matches(name, present, 1)
        return f"did you mean {near[0]}?" if near else ""
    return ""


def decoded(content: bytes, name: str) -> str:
    """Returns the text of a file, with one kind of line ends; BadSource if it is none."""
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise BadSource("not-text", f"{name} is not a text file", "", Position(name, line))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        place, hint = Position(name, line), "save the file as UTF-8"
        seen = f"{name} is not UTF-8 text: byte {content[error.start]:#04x} in line {line}"
        raise BadSource("not-text", seen, hint, place) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def _unreadable(name: str, error: OSError, asked_at: Position, folder: Path) -> BadSource:
    if isinstance(error, FileNotFoundError):
        seen = f"there is no file {name} in the workflow's folder"
        return BadSource("no-such-file", seen, _nearest(Path(name).name, folder), asked_at)
    reason = (error.strerror or "it cannot be opened").lower()
    return BadSource("unreadable", f"{name} cannot be read: {reason}", "", asked_at)


# The text of a definition, ready to be parsed; each line knows where it was written.

# An origin is one integer, file number and line number: a list of them is small and quick.
LINE_UNIT = 1 << 24


def origin(file_number: int, line: int) -> int:
    return file_number * LINE_UNIT + line


@dataclass(frozen=True, slots=True)
class SourceText:
    """Holds lines without trailing white space, and where each of them was written."""

    folder: Path
    files: tuple[str, ...]  # from the folder, the main one first
    lines: Sequence[str]
    origins: Sequence[int]
    templated: bool = False

    @classmethod
    def as_written(cls, folder: Path, files: tuple[str, ...], lines: list[str]) -> SourceText:
        """Returns a text whose lines are those of the first file, without includes."""
        return cls(folder, files, lines, [origin(0, one) for one in range(1, len(lines) + 1)])

    @property
    def is_plain(self) -> bool:
        return self.lines[:1] == [PLAIN]

    @property
    def text(self) -> str:
        """Returns the text as if it had been written without includes and templates."""
        return "\n".join(self.lines) + "\n"

    def position(self, index: int, column: int = 0) -> Position:
        """Returns where line ``index`` (from 0) was written; a template loses the column."""
        if not 0 <= index < len(self.origins):
            return Position(self.files[0] if self.files else "")
        file_number, line = divmod(self.origins[index], LINE_UNIT)
        # Made as the tuple that it is: one for each line, at a third of the cost.
        place = (self.files[file_number], line, 0 if self.templated else column)
        return tuple.__new__(Position, place)


# A backslash at the end of a line joins the next one to it.

# A backslash, then blanks, then the end: it looks like a continuation and is none.
_BLANKS_AFTER = pattern(r"[^#]*\\\s+\Z")


def join_continued(source: SourceText, findings: Findings) -> SourceText:
    """Returns the text with continued lines joined, and white space at their ends removed.

    A joined line has the origin of its first part.
    """
    text = "\n".join(source.lines)
    if "\\" not in text:
        return replace(source, lines=list(map(str.rstrip, source.lines)))
    lines: list[str] = []
    origins: list[int] = []
    pending: list[str] = []
    for index, line in enumerate(source.lines):
        if not pending:
            origins.append(source.origins[index])
        if line.endswith("\\"):
            _check_comment(source, index, bool(pending), findings)
            pending.append(line[:-1])
            continue
        if "\\" in line and _BLANKS_AFTER.match(line):
            seen = "there is white space after the backslash at the end of this line"
            hint = "remove it: a backslash continues a line only as its last character"
            place = source.position(index, len(line.rstrip()) + 1)
            findings.error("blanks-after-continuation", seen, hint, place)
            pending.append(line.rstrip()[:-1])
            continue
        lines.append("".join([*pending, line]).rstrip() if pending else line.rstrip())
        pending.clear()
    if pending:
        lines.append("".join(pending).rstrip())
    return replace(source, lines=lines, origins=origins)


def _check_comment(source: SourceText, index: int, continued: bool, findings: Findings) -> None:
    """Warns of a comment that ends in a backslash, because it swallows the next line."""
    if continued or not source.lines[index].lstrip().startswith("#"):
        return
    if index + 1 < len(source.lines) and source.lines[index + 1].lstrip()[:1] not in ("", "#"):
        seen = "this comment ends in a backslash, so the next line is part of the comment"
        hint = "remove the backslash"
        findings.warning("continued-comment", seen, hint, source.position(index))


# `%include 'file'`: the lines of another file take the place of this one.

_INCLUDE = pattern(r"\s*%include\s+(\S.*?)\s*\Z")
_QUOTES = ("'", '"')


@dataclass(slots=True)
class Inlined:
    """Collects lines and origins while files are put together."""

    folder: SourceFolder
    findings: Findings
    lines: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    includes: int = 0

    def add(self, name: str, asked_at: Position, within: tuple[str, ...] = ()) -> None:
        """Adds the lines of ``name`` and of its includes; files in ``within`` include it."""
        try:
            lines = self.folder.read_lines(name, asked_at)
        except BadSource as error:
            self.findings.error(error.finding_code, str(error), error.hint, error.position)
            return
        file_number = len(self.folder.names) - 1
        if lines[0] == PLAIN or "%include" not in "\n".join(lines):
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
        """Adds the lines of one file; returns False if a limit says not to read on."""
        wanted = self._unquoted(argument, position)
        if wanted is None:
            return True
        if wanted in within:
            circle = " -> ".join([*within[within.index(wanted) :], wanted])
            seen, hint = f"files include each other: {circle}", "remove one %include"
            self.findings.error("include-loop", seen, hint, position)
            return True
        self.includes += 1
        if self.includes > INCLUDES_MAX or len(within) > INCLUDE_DEPTH_MAX:
            seen = f"there are more than {INCLUDES_MAX} includes"
            if self.includes <= INCLUDES_MAX:
                seen = f"includes are nested more than {INCLUDE_DEPTH_MAX} deep"
            self.findings.error("too-many-includes", seen, position=position)
            return False
        self.add(wanted, position, within)
        return len(self.lines) <= LINES_MAX

    def _unquoted(self, argument: str, position: Position) -> str | None:
        first, last = argument[0], argument[-1]
        if first not in _QUOTES and last not in _QUOTES:
            return argument
        if first == last and len(argument) > 2:  # noqa: PLR2004 - two quotes and a name
            return argument[1:-1]
        seen = f"the quotes around {argument} do not match"
        self.findings.error("bad-include", seen, "write: %include 'file'", position)
        return None
