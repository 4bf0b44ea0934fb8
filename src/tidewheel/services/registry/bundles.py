"""Reads bundles of files to register: from this machine, or as archives from elsewhere.

An archive is read in memory, and refused whole for one bad entry. Nothing is ever unpacked to
a disk by the names in it. What could lead out of a folder later, is no plain file, or grows
beyond all bounds is refused by what its entry says, before its content is read. (RELIABILITY
S13)
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

from tidewheel.core.graph.findings import Finding, Findings, Position
from tidewheel.core.operator.definition import PYTHON_SUFFIX
from tidewheel.core.operator.registry import Bundle, WorkflowSource
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.flow_cylc.workflow import LoadOptions
from tidewheel.formats.sip.bundle import find_definitions, read_folder
from tidewheel.formats.sip.definition import definitions_among
from tidewheel.formats.sip.text_files import STAGES_FOLDER
from tidewheel.formats.sip.validation import validate
from tidewheel.services.definitions.snapshot import (
    FILE_BYTES_MAX,
    FOLDER_BYTES_MAX,
    belongs_to_python,
    files_of,
)
from tidewheel.services.definitions.upload import path_findings
from tidewheel.services.registry.archives import (
    KINDS,
    ArchiveEntry,
    ArchiveTooLarge,
    BadArchive,
    archive_entries,
)

# Files and folders of this machine that are to be registered, as bundles.

NAMED_MAX = 5  # folders that are proposed


def read_bundles(
    paths: Sequence[Path],
    findings: Findings,
    *,
    name: str = "",
    version: str = "",
    fetched: Mapping[Path, WorkflowSource] = MappingProxyType({}),
) -> list[Bundle]:
    """Returns a bundle for each definition that is named, or lies in a folder that is.

    ``fetched`` says of paths where somebody else's files were fetched from that lie there now:
    no code of theirs runs, and people are told that place.
    """
    folders = [path if path.is_dir() else path.parent for path in paths]
    several = len({*folders}) > 1
    found: list[Bundle] = []
    for path, folder in zip(paths, folders, strict=True):
        source = fetched.get(path)
        called = str(folder if source is None else source) if several else ""
        own = Findings()
        read = _bundles_at(path, own) if source is None else _fetched_bundles(path, own)
        found += [
            replace(one, folder=called, name=name or one.name, version=version, source=source)
            for one in read
        ]
        for one in own:
            told = one if source is None else _told_of(source, one, path)
            findings.add(told.inside(called))
    if (name or version) and len(found) > 1:
        findings.error(
            "one-name",
            f"a name and a version are for one definition, but these are {len(found)} "
            "definitions",
            "register them one by one, or without --name and --version",
        )
    return found


def _told_of(source: WorkflowSource, finding: Finding, path: Path) -> Finding:
    """Returns a finding with the place that people know instead of the one on this disk."""
    said = (one.replace(str(path), str(source)) for one in (finding.message, finding.hint))
    message, hint = said
    return replace(finding, message=message, hint=hint)


def _fetched_bundles(path: Path, findings: Findings) -> list[Bundle]:
    """Returns the bundles of files that were fetched; none, after a finding, if they are what
    nobody executes unseen."""
    if path.suffix == PYTHON_SUFFIX and path.is_file():
        findings.error(
            "python-definition",
            f"{path.name} is a Python workflow, and is not executed from a remote source",
            "fetch it, read it, then register the file: tidewheel register FILE.py",
            Position(path.name),
        )
        return []
    own = Findings()
    found = _bundles_at(path, own)
    for one in own:
        below = _folders_below(path) if one.code == "no-definitions" else []
        hint = f"name the folder after #: {', '.join(below)}"
        findings.add(replace(one, hint=hint) if below else one)
    if any(one.file == FLOW_FILE for one in found):
        folder = path if path.is_dir() else path.parent
        for link in sorted(folder.rglob("*")):
            if link.is_symlink():
                place = link.relative_to(folder).as_posix()
                findings.error("link", f"{place} is a link", COPY, Position(place))
    return found


def _folders_below(folder: Path) -> list[str]:
    """Returns the first folders below a folder that look like those of definitions."""
    found = (one.parent for name in (FLOW_FILE, STAGES_FOLDER) for one in folder.rglob(name))
    places = {one.relative_to(folder).as_posix() for one in found if one != folder}
    return sorted(places)[:NAMED_MAX]


def _bundles_at(path: Path, findings: Findings) -> list[Bundle]:
    if path.suffix == PYTHON_SUFFIX and path.is_file():
        return _python_bundles(path, findings)
    if path.name == FLOW_FILE or (path / FLOW_FILE).is_file():
        folder = path if path.is_dir() else path.parent
        bundle = _bundle(folder, lambda _: True, FLOW_FILE, findings)
        return [replace(bundle, name=folder.resolve().name)]
    read = [read_folder(one, findings) for one in find_definitions(path, findings)]
    sources = [source for source in read if source is not None]
    for source in sources:
        if source.refused:  # what is left of it cannot be registered: all is told at once
            for one in validate(source).all_findings():
                findings.add(one)
    return [
        Bundle(
            files=source.files,
            executable=source.executable,
            folders=source.folders,
            file=source.file,
        )
        for source in definitions_among(sources)
    ]


def _python_bundles(path: Path, findings: Findings) -> list[Bundle]:
    """Returns a Python file as the bundle of what is kept of it; empty after an error.

    It is executed here, by whoever registers it and can see what it does, and nowhere else.
    """
    from tidewheel.services.definitions.python import load_python_file  # noqa: PLC0415

    # Here the clock comes in, for points that are relative to it.
    how = LoadOptions(now=time.time_ns() / 1e9)
    loaded = load_python_file(path, how, findings)
    if loaded.kept_text is None or findings.has_errors:
        return []
    assert loaded.workflow is not None
    assert loaded.graph is not None
    found = _bundle(path.parent, belongs_to_python(loaded.graph), FLOW_FILE, findings)
    files = {**found.files, FLOW_FILE: loaded.kept_text().encode()}
    return [replace(found, files=files, name=loaded.workflow.name)]


def _bundle(
    folder: Path, belongs: Callable[[str], bool], file: str, findings: Findings
) -> Bundle:
    """Returns the bundle of the files below a folder that belong to a definition. `file` is
    that one among them."""
    files, too_large = files_of(folder)
    for one in filter(belongs, too_large):
        findings.error(
            "file-too-large",
            f"{one} is too large to be kept with the workflow",
            "keep data elsewhere; a file may have 1 MiB, a folder 32 MiB and 10000 files",
            Position(one),
        )
    kept = [one for one in files if belongs(one.path)]
    return Bundle(
        files={one.path: one.content for one in kept},
        executable=frozenset(one.path for one in kept if one.executable),
        file=file,
    )


# Archives.

ENTRIES_MAX = 10_000
UNPACKED_BYTES_MAX = 2 * FOLDER_BYTES_MAX  # with the headers of a tar
COPY = "put a copy of the file there: only regular files are stored"
ELSEWHERE = "keep data elsewhere, and name its place in a parameter"
TOO_MANY = (
    "too-many-files",
    f"the archive has more than {ENTRIES_MAX} entries",
    "leave out what the workflow does not need",
)
TOO_LARGE = (
    "archive-too-large",
    f"the archive holds more than {FOLDER_BYTES_MAX} bytes when it is unpacked",
    ELSEWHERE,
)
_SPECIAL = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


class _Bad(Exception):
    """A finding says why."""


def read_archive(content: bytes, findings: Findings) -> Bundle | None:
    """Returns the files of an archive; None, with every finding, if it is not accepted."""
    reading = _Reading(findings)
    try:
        reading.read(content)
    except _Bad:
        return None
    for message in path_findings(reading.paths):
        findings.error("bad-path", message, "paths are relative, such as stages/a/1.0.0/run")
    if findings.has_errors:
        return None
    return Bundle(files=reading.files, executable=frozenset(reading.executable))


class _Reading:
    """Reads one archive: holds what was read so far, and counts it against the limits."""

    def __init__(self, findings: Findings) -> None:
        self.files: dict[str, bytes] = {}
        self.paths: list[str] = []  # also of what is refused, and of what is there twice
        self.executable: list[str] = []
        self._findings = findings
        self._bytes = 0

    def read(self, content: bytes) -> None:
        try:
            for entry, read in archive_entries(content, UNPACKED_BYTES_MAX, ENTRIES_MAX):
                if not entry.is_folder and self._accepts(entry):
                    self._keep(entry, read(FILE_BYTES_MAX + 1))
        except ArchiveTooLarge as error:
            self._refuse(*(TOO_MANY if error.is_number else TOO_LARGE))
        except BadArchive:
            self._refuse("bad-archive", "the archive cannot be read", KINDS)

    def _accepts(self, entry: ArchiveEntry) -> bool:
        """Says whether the content of an entry is wanted; if not, there is a finding."""
        self.paths.append(entry.path)
        where = Position(entry.path[:100])
        wrong = None
        if entry.problem:
            code = "link" if "link" in entry.problem else "not-a-file"
            wrong = (code, f"is {entry.problem}", COPY)
        elif entry.mode & _SPECIAL:
            hint = "remove this mode: chmod u-s,g-s,-t"
            wrong = ("special-mode", "is setuid, setgid or sticky", hint)
        elif entry.size > FILE_BYTES_MAX:
            said = f"has {entry.size} bytes; at most {FILE_BYTES_MAX} are accepted"
            wrong = ("file-too-large", said, ELSEWHERE)
        if wrong is not None:
            code, said, hint = wrong
            self._findings.error(code, f"{entry.path[:100]!r} {said}", hint, where)
            return False
        self._bytes += max(0, entry.size)
        if self._bytes > FOLDER_BYTES_MAX:
            self._refuse(*TOO_LARGE)
        return True

    def _keep(self, entry: ArchiveEntry, content: bytes) -> None:
        if len(content) != entry.size:
            self._refuse(
                "bad-archive",
                f"{entry.path[:100]!r} does not have the size that the archive says",
                KINDS,
            )
        self.files[entry.path] = content
        if entry.mode & stat.S_IXUSR:
            self.executable.append(entry.path)

    def _refuse(self, code: str, message: str, hint: str) -> NoReturn:
        self._findings.error(code, message, hint)
        raise _Bad
