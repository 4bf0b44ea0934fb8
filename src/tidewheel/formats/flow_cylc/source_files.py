"""Reading the files of a definition: only regular files inside its own folder, only text.

Every other way to a file (a parent folder, an absolute path, a symbolic link that leads out, a
device, a pipe) is refused before anything is read: a definition may come from a stranger.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from tidewheel.core.graph.findings import Position
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.limits import SOURCE_BYTES_MAX

FILES_LOOKED_AT_MAX = 1000


class BadSource(Refused):
    """A file of the definition cannot be used."""

    code = "bad_source"

    def __init__(self, code: str, message: str, hint: str, position: Position) -> None:
        self.finding_code, self.hint, self.position = code, hint, position
        super().__init__(message)


@dataclass(slots=True)
class SourceFolder:
    """The folder of one definition, and how much of it has been read."""

    path: Path  # resolved
    bytes_left: int = SOURCE_BYTES_MAX
    names: list[str] = field(default_factory=list)

    def read_lines(self, name: str, asked_at: Position) -> list[str]:
        """Returns the lines of a text file, given its path from the folder."""
        content = self._read(name, asked_at)
        self.names.append(name)
        return _decode(content, name).split("\n")

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
            raise BadSource(
                "source-too-large",
                f"with {name} the definition is larger than {SOURCE_BYTES_MAX} bytes",
                "use parameters or families instead of repeated sections",
                asked_at,
            )
        self.bytes_left -= len(content)
        return content

    def resolve(self, name: str, asked_at: Position) -> Path:
        """Returns where the file really is; refuses it if that is outside of the folder."""
        if "\0" in name:
            raise BadSource("not-a-file", "a file name contains a NUL byte", "", asked_at)
        try:
            target = (self.path / name).resolve()
        except (OSError, RuntimeError):  # a loop of symbolic links
            raise BadSource(
                "not-a-file", f"{name} cannot be followed to a file", "", asked_at
            ) from None
        if not target.is_relative_to(self.path):
            raise BadSource(
                "outside-source",
                f"{name} is outside of the workflow's folder",
                "copy the file into the folder: only what is in it is read",
                asked_at,
            )
        return target


def _nearest(name: str, folder: Path) -> str:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        present = [entry.name for entry in itertools.islice(entries, FILES_LOOKED_AT_MAX)]
        near = difflib.get_close_matches(name, present, 1)
        return f"did you mean {near[0]}?" if near else ""
    return ""


def _decode(content: bytes, name: str) -> str:
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise BadSource("not-text", f"{name} is not a text file", "", Position(name, line))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadSource(
            "not-text",
            f"{name} is not UTF-8 text: byte {content[error.start]:#04x} in line {line}",
            "save the file as UTF-8",
            Position(name, line),
        ) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def _unreadable(name: str, error: OSError, asked_at: Position, folder: Path) -> BadSource:
    if isinstance(error, FileNotFoundError):
        return BadSource(
            "no-such-file",
            f"there is no file {name} in the workflow's folder",
            _nearest(Path(name).name, folder),
            asked_at,
        )
    reason = (error.strerror or "it cannot be opened").lower()
    return BadSource("unreadable", f"{name} cannot be read: {reason}", "", asked_at)
