"""Finds definitions and the files of their stages: in a bundle that was sent, or in a folder.

Files of a bundle are not written to a disk here, so that no path in it can lead anywhere; what
could lead out of a folder later is refused all the same. (RELIABILITY S13)

In a folder, a link, a device or a pipe is refused before anything is read from it, and so is
whatever is too large, too deep or too much: a definition may come from a stranger. (RELIABILITY
S13)
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NoReturn

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.definition import first_look
from tidewheel.formats.sip.document import Unreadable
from tidewheel.formats.sip.model import (
    FOLDER_DEPTH_MAX,
    NAME_LENGTH_MAX,
    SOURCE_BYTES_MAX,
    STAGE_FILE_BYTES_MAX,
    STAGE_FILES_MAX,
)
from tidewheel.formats.sip.text_files import (
    BYTES_MAX,
    STAGES_FOLDER,
    SUFFIXES,
    SipSource,
    file_name,
    folders_for,
)
from tidewheel.lazy_dataclasses import dataclass

# Definitions and stage files that come as one bundle of paths and contents, from anywhere.

_DEPTH_MAX = FOLDER_DEPTH_MAX + len(("stages", "id", "version"))


def sources_in(
    files: Mapping[str, bytes], findings: Findings, executable: frozenset[str] = frozenset()
) -> list[SipSource]:
    """Returns each definition of a bundle with the files of its stages; none after an error."""
    _check_size(files, findings)
    for path in files:
        if problem := path_problem(path):
            findings.error("bad-path", f"{path[:100]!r} cannot be stored: {problem}", _PATHS)
    if findings.has_errors:
        return []
    definitions = [path for path in sorted(files) if is_definition(path)]
    if not definitions:
        hint = (
            f"put a file that ends in {', '.join(SUFFIXES)} (each also with .j2) beside "
            "the folder stages"
        )
        findings.error("no-definitions", "there is no definition", hint)
    everything = SipSource(file="", files=files)
    return [_source(one, everything, executable) for one in definitions]


_PATHS = "paths are relative, as in stages/<id>/<version>/docker_compose.yaml"
_ELSEWHERE = "store data elsewhere, and give its path in a parameter"
_KINDS = (
    f"a SIP definition ends in {', '.join(SUFFIXES)} (each also with .j2); other definitions "
    "are a Python file (.py) or a folder with a flow.cylc"
)


def is_definition(path: str) -> bool:
    """Says whether a path is a definition: a YAML or JSON file at the top of the bundle."""
    return "/" not in path and file_name(path).is_known and not path.startswith(".")


def path_problem(path: str) -> str:
    """Says why a file cannot have this path; empty if it can."""
    parts = path.split("/")
    if not path or not path.isprintable() or "\\" in path:
        return "it is empty, or has a backslash or a character that cannot be printed"
    if path.startswith("/"):
        return "it is absolute"
    if any(part in ("", ".", "..") for part in parts):
        return "it has an empty part, '.' or '..'"
    if len(parts) > _DEPTH_MAX or any(len(part) > NAME_LENGTH_MAX for part in parts):
        most = f"{_DEPTH_MAX} parts, and {NAME_LENGTH_MAX} characters in each part"
        return f"it is too long: at most {most} are accepted"
    return ""


def _source(file: str, everything: SipSource, executable: frozenset[str]) -> SipSource:
    leads = tuple(
        f"{folder}/"
        for stage, version in first_look(file, everything.files[file], everything.folders)
        for folder in folders_for(stage, version)
    )
    kept = {
        path: content
        for path, content in everything.files.items()
        if path == file or path.startswith(leads)
    }
    return SipSource(
        file=file, files=kept, executable=executable & kept.keys(), folders=everything.folders
    )


def _check_size(files: Mapping[str, bytes], findings: Findings) -> None:
    if len(files) > STAGE_FILES_MAX:
        seen = f"the bundle has {len(files)} files; at most {STAGE_FILES_MAX} are accepted"
        findings.error("too-many-files", seen, "leave out what the stages do not need")
        return
    total = sum(map(len, files.values()))
    if total > SOURCE_BYTES_MAX:
        seen = f"the bundle has {total} bytes; at most {SOURCE_BYTES_MAX} are accepted"
        findings.error("file-too-large", seen, _ELSEWHERE)
    for path, content in files.items():
        limit = BYTES_MAX if is_definition(path) else STAGE_FILE_BYTES_MAX
        if len(content) > limit:
            seen = f"the file has {len(content)} bytes; at most {limit} are accepted"
            findings.error("file-too-large", seen, _ELSEWHERE, Position(path))


# Reading the files of a definition from a disk: regular files inside its own folder only.

_LISTED_MAX = 1_000  # folders that are looked at for advice


def read_folder(path: Path, findings: Findings) -> SipSource | None:
    """Returns a definition file with the folders of its stages; None after a finding.

    A file of a stage that cannot be kept, such as a link, is a finding and left out.
    """
    name = path.name
    if not file_name(name).is_known:
        ending = f"ends in {path.suffix}" if path.suffix else "has no suffix"
        seen = f"{name} is not a definition: it {ending}"
        findings.error("definition-file-kind", seen, _KINDS, Position(name))
        return None
    reading = _Reading(path.parent, findings)
    beside = [*_stage_folders(path.parent)]
    try:
        reading.read(name, BYTES_MAX, follow=True)
        for stage, version in first_look(name, reading.files[name], beside):
            for folder in folders_for(stage, version):
                reading.read_folder(folder)
    except (Unreadable, _Refused):
        return None
    return SipSource(
        file=name,
        files=reading.files,
        executable=frozenset(reading.executable),
        folders=frozenset([*reading.folders, *beside]),
        refused=frozenset(reading.refused),
    )


def find_definitions(path: Path, findings: Findings) -> list[Path]:
    """Returns the given file, or every definition directly in a folder, sorted by name."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        findings.error("no-such-file", f"there is no file or folder {path}")
        return []
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file())
    found = [path / name for name in names if is_definition(name)]
    if not found:
        hint = f"{_KINDS}; subfolders are not searched"
        findings.error("no-definitions", f"there is no definition in {path}", hint)
    return found


class _Refused(Exception):
    """A file or folder is not kept; a finding says why, and the others are still read."""


def read_beside(root: Path, path: str, findings: Findings) -> bytes | None:
    """Returns a file of a folder by its path in it; None if there is none, or after a
    finding."""
    reading = _Reading(root, findings)
    try:
        reading.check_way(path)
        if not (root / path).is_file():
            return None
        reading.read(path, STAGE_FILE_BYTES_MAX)
    except (Unreadable, _Refused):
        return None
    return reading.files[path]


@dataclass(slots=True)
class _Reading:
    """Reads files within one folder and keeps their contents; stops at the limits."""

    root: Path
    findings: Findings
    files: dict[str, bytes] = field(default_factory=dict)
    executable: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _bytes: int = 0

    def read_folder(self, folder: str, depth: int = 0) -> None:
        """Reads everything in a folder that can be kept, and remembers what cannot."""
        self._attempt(folder, lambda: self._read_all(folder, depth))

    def _read_all(self, folder: str, depth: int) -> None:
        """Reads everything in a folder; nothing, if there is no such folder."""
        if depth > FOLDER_DEPTH_MAX:
            hint = f"a stage has at most {FOLDER_DEPTH_MAX} levels of folders"
            self._refuse(folder, "folder-too-deep", f"{folder} is nested too deeply", hint)
        self.check_way(folder)
        try:
            entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            seen = f"{folder} cannot be read: {error.strerror}"
            self._refuse(folder, "unreadable", seen, "give your user permission to read it")
        self.folders.append(folder)
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                self.read_folder(path, depth + 1)
            else:
                self._attempt(path, partial(self.read, path, STAGE_FILE_BYTES_MAX))

    def _attempt(self, path: str, read: Callable[[], None]) -> None:
        try:
            read()
        except _Refused:
            self.refused.append(path)

    def read(self, path: str, limit: int, *, follow: bool = False) -> None:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        if len(self.files) + len(self.refused) > STAGE_FILES_MAX:
            seen = f"there are more than {STAGE_FILES_MAX} files"
            hint = "leave out what the stages do not need"
            self.findings.error("too-many-files", seen, hint, Position(path))
            raise Unreadable
        if (self.root / path).is_symlink() and not follow:
            self._refuse(path, "link", f"{path} is a link", _COPY)
        try:
            descriptor = os.open(self.root / path, flags)
        except OSError as error:
            reason = (error.strerror or "it cannot be opened").lower()
            seen = f"{path} cannot be read: {reason}"
            self._refuse(path, "unreadable", seen, "give your user permission to read it")
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                self._refuse(path, "not-a-file", f"{path} is not a regular file", _COPY)
            content = file.read(limit + 1)
        self._bytes += len(content)
        if len(content) > limit or self._bytes > SOURCE_BYTES_MAX:
            most = f"{limit} bytes, and {SOURCE_BYTES_MAX} in all files together"
            seen = f"{path} is too large; expected at most {most}"
            self.findings.error("file-too-large", seen, _ELSEWHERE, Position(path))
            raise Unreadable if self._bytes > SOURCE_BYTES_MAX else _Refused
        self.files[path] = content
        if found.st_mode & stat.S_IXUSR:
            self.executable.append(path)

    def check_way(self, folder: str) -> None:
        """Refuses a path with a link in any part of it: that could lead anywhere."""
        way = self.root
        for part in folder.split("/"):
            way = way / part
            if way.is_symlink():
                self._refuse(folder, "link", f"{way.name} is a link", _COPY)

    def _refuse(self, path: str, code: str, message: str, hint: str) -> NoReturn:
        self.findings.error(code, message, hint, Position(path))
        raise _Refused


_COPY = "copy its target into the folder: only files in the folder are stored"


def _stage_folders(root: Path) -> Iterator[str]:
    """Yields `stages`, the folders in it and those in them, for advice on missing ones. Where
    there is no `stages`, it yields the folders that are there: one of them may be meant."""
    if not (root / STAGES_FOLDER).is_dir():
        yield from _names(root)
        return
    yield STAGES_FOLDER
    for stage in _names(root / STAGES_FOLDER):
        yield f"{STAGES_FOLDER}/{stage}"
        for version in _names(root / STAGES_FOLDER / stage):
            yield f"{STAGES_FOLDER}/{stage}/{version}"


def _names(folder: Path) -> Iterable[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(
            entry.name
            for entry in islice(entries, _LISTED_MAX)
            if entry.is_dir(follow_symlinks=False)
        )
    return ()
