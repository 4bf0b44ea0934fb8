"""Reads bundles of files to register: from this machine, or as archives from elsewhere.

An archive is read in memory, and refused whole for one bad entry. Nothing is ever unpacked to
a disk by the names in it. What could lead out of a folder later, is no plain file, or grows
beyond all bounds is refused by what its entry says, before its content is read. (RELIABILITY
S13)
"""

from __future__ import annotations

import io
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, cast

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.core.operator.definition import PYTHON_SUFFIX
from tidewheel.core.operator.registry import Bundle
from tidewheel.formats.flow_cylc.source_loader import FLOW_FILE
from tidewheel.formats.flow_cylc.workflow import LoadOptions
from tidewheel.formats.sip.bundle import find_definitions, read_folder
from tidewheel.formats.sip.definition import definitions_among
from tidewheel.services.definitions.snapshot import (
    FILE_BYTES_MAX,
    FOLDER_BYTES_MAX,
    belongs_to_python,
    files_of,
)
from tidewheel.services.definitions.upload import path_findings

# Files and folders of this machine that are to be registered, as bundles.


def read_bundles(
    paths: Sequence[Path], findings: Findings, *, name: str = "", version: str = ""
) -> list[Bundle]:
    """Returns a bundle for each definition that is named, or lies in a folder that is."""
    folders = [path if path.is_dir() else path.parent for path in paths]
    several = len({*folders}) > 1
    found: list[Bundle] = []
    for path, folder in zip(paths, folders, strict=True):
        called = str(folder) if several else ""
        own = Findings()
        found += [
            replace(one, folder=called, name=name or one.name, version=version)
            for one in _bundles_at(path, own)
        ]
        for one in own:
            findings.add(one.inside(called))
    if (name or version) and len(found) > 1:
        findings.error(
            "one-name",
            f"a name and a version are for one definition, and these are {len(found)}",
            "register them one by one, or without --name and --version",
        )
    return found


def _bundles_at(path: Path, findings: Findings) -> list[Bundle]:
    if path.suffix == PYTHON_SUFFIX and path.is_file():
        return _python_bundles(path, findings)
    if path.name == FLOW_FILE or (path / FLOW_FILE).is_file():
        folder = path if path.is_dir() else path.parent
        bundle = _bundle(folder, lambda _: True, FLOW_FILE, findings)
        return [replace(bundle, name=folder.resolve().name)]
    read = [read_folder(one, findings) for one in find_definitions(path, findings)]
    sources = [source for source in read if source is not None]
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
GZIP, ZIP = b"\x1f\x8b", b"PK"
ZIP_ENTRY = b"PK\x01\x02"  # in the directory at the end
COPY = "put a copy of the file there: only regular files are stored"
KINDS = "send a tar, a tar.gz or a zip"
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
_READ_BYTES = 64 * 1024
ENDS_MAX = 8


class _Bad(Exception):
    """A finding says why."""


class ArchiveEntry(NamedTuple):
    """Holds what an archive says of one of its files, before its content is read."""

    path: str
    size: int
    mode: int
    problem: str = ""  # what it is instead of a regular file


def read_archive(content: bytes, findings: Findings) -> Bundle | None:
    """Returns the files of an archive; None, with every finding, if it is not accepted."""
    reading = _Reading(findings)
    try:
        if content.startswith(ZIP):
            reading.read_zip(content)
        else:
            reading.read_tar(content)
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
        self._entries = 0
        self._bytes = 0

    # ---- tar ----

    def read_tar(self, content: bytes) -> None:
        raw = _Unpacked(content)
        try:
            # As a stream: an entry can make nobody look backwards or far ahead.
            file = cast("BinaryIO", raw)
            with tarfile.open(fileobj=file, mode="r|", errors="strict") as archive:
                for member in archive:
                    self._count()
                    entry = _tar_entry(member)
                    if not member.isdir() and self._accepts(entry):
                        inside = archive.extractfile(member)
                        assert inside is not None, member
                        self._keep(entry, inside.read(FILE_BYTES_MAX + 1))
            raw.finish()
        except _TooLarge:
            self._refuse(*TOO_LARGE)
        except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError, OSError):
            self._refuse("bad-archive", "the archive cannot be read", KINDS)

    # ---- zip ----

    def read_zip(self, content: bytes) -> None:
        if content.count(ZIP_ENTRY) > ENTRIES_MAX:
            self._refuse(*TOO_MANY)
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for info in archive.infolist():
                    self._count()
                    entry = _zip_entry(info)
                    if not entry.path.endswith("/") and self._accepts(entry):
                        with archive.open(info) as file:
                            self._keep(entry, file.read(FILE_BYTES_MAX + 1))
        except (
            *(zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError),
            *(OSError, RuntimeError, NotImplementedError),
        ):
            self._refuse("bad-archive", "the archive cannot be read", KINDS)

    # ---- both ----

    def _count(self) -> None:
        self._entries += 1
        if self._entries > ENTRIES_MAX:
            self._refuse(*TOO_MANY)

    def _accepts(self, entry: ArchiveEntry) -> bool:
        """Says whether the content of an entry is wanted; if not, there is a finding."""
        self.paths.append(entry.path)
        where = Position(entry.path[:100])
        wrong = None
        if entry.problem:
            code = "link" if "link" in entry.problem else "not-a-file"
            wrong = (code, f"is {entry.problem}", COPY)
        elif entry.mode & _SPECIAL:
            hint = "take that away: chmod u-s,g-s,-t"
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
                "bad-archive", f"{entry.path[:100]!r} is not as long as it says", KINDS
            )
        self.files[entry.path] = content
        if entry.mode & stat.S_IXUSR:
            self.executable.append(entry.path)

    def _refuse(self, code: str, message: str, hint: str) -> NoReturn:
        self._findings.error(code, message, hint)
        raise _Bad


class _TooLarge(Exception):
    """More came out than anything that is accepted can hold."""


class _Unpacked:
    """Reads a tar piece by piece, inflated if it is a gzip file, never more than is allowed."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)
        self._inflater = zlib.decompressobj(wbits=31) if content.startswith(GZIP) else None
        self._left = UNPACKED_BYTES_MAX
        self._ends = 0  # how often it was asked for more than there is

    def read(self, size: int) -> bytes:
        """Returns the next bytes; raises EOFError when asked again and again behind the end.

        An entry may say that it has any number of bytes, and the library skips all of them.
        """
        found = self._more(size)
        self._ends += not found
        if self._ends > ENDS_MAX:
            raise EOFError
        return found

    def _more(self, size: int) -> bytes:
        if self._inflater is None:
            return self._content.read(size)
        found = bytearray()
        while len(found) < size and not self._inflater.eof:
            part = self._inflater.unconsumed_tail or self._content.read(_READ_BYTES)
            if not part:
                break
            found += self._inflater.decompress(part, size - len(found))
        self._left -= len(found)
        if self._left < 0:
            raise _TooLarge
        return bytes(found)

    def finish(self) -> None:
        """Raises EOFError if the end of the tar is missing, and with it perhaps some files."""
        if self._inflater is None:
            is_whole = self._content.getvalue().endswith(bytes(tarfile.BLOCKSIZE))
        else:
            while self._more(_READ_BYTES):
                pass
            is_whole = self._inflater.eof
        if not is_whole:
            raise EOFError


def _tar_entry(member: tarfile.TarInfo) -> ArchiveEntry:
    problem = ""
    if member.issym() or member.islnk():
        problem = "a symbolic link" if member.issym() else "a hard link"
    elif member.ischr() or member.isblk() or member.isfifo():
        problem = "a device or a pipe"
    elif not member.isdir() and (not member.isreg() or member.issparse()):
        problem = "no regular file"
    elif member.size < 0:
        problem = "shorter than nothing"
    path = member.name.removeprefix("./")  # which `tar` writes before it
    return ArchiveEntry(path, member.size, member.mode, problem)


def _zip_entry(info: zipfile.ZipInfo) -> ArchiveEntry:
    mode = info.external_attr >> 16
    problem = ""
    if stat.S_ISLNK(mode):
        problem = "a symbolic link"
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        problem = "a device or a pipe"
    elif info.flag_bits & 1:
        problem = "encrypted"
    elif info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Others have no bound on what one read may bring.
        problem = "packed in a way that is not accepted (deflate is)"
    # As it stands in the archive: the library cuts a name at its first NUL.
    return ArchiveEntry(info.orig_filename.removeprefix("./"), info.file_size, mode, problem)
