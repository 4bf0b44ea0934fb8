"""Reads the entries of tar and zip archives, which may come from anybody.

Nothing is written, and nothing is believed: an archive is read as a stream, piece by piece, and
never more of it than the caller allows. (RELIABILITY S13)
"""

from __future__ import annotations

import io
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from tidewheel.lazy_dataclasses import NamedTuple

GZIP, ZIP = b"\x1f\x8b", b"PK"
ZIP_ENTRY = b"PK\x01\x02"  # in the directory at the end
KINDS = "send a tar, a tar.gz or a zip"
ENDS_MAX = 8
_READ_BYTES = 64 * 1024
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class BadArchive(Exception):
    """This is no archive, it is cut short, or it lies."""


class ArchiveTooLarge(Exception):
    """More came out than anything that is accepted can hold; `is_number`: of entries."""

    def __init__(self, *, is_number: bool = False) -> None:
        super().__init__()
        self.is_number = is_number


class ArchiveEntry(NamedTuple):
    """Holds what an archive says of one of its files, before its content is read."""

    path: str
    size: int
    mode: int
    problem: str = ""  # what it is instead of a regular file
    is_folder: bool = False


ReadsEntry = Callable[[int], bytes]


def archive_entries(
    content: bytes, unpacked_bytes_max: int, entries_max: int
) -> Iterator[tuple[ArchiveEntry, ReadsEntry]]:
    """Yields each entry with the function that reads so many of its bytes at most, which is
    called before the next entry is asked for or never.

    Raises BadArchive, or ArchiveTooLarge.
    """
    if content.startswith(ZIP):
        if content.count(ZIP_ENTRY) > entries_max:  # before the library reads the directory
            raise ArchiveTooLarge(is_number=True)
        found = _zip(content)
    else:
        found = _tar(content, unpacked_bytes_max)
    for number, one in enumerate(found, start=1):
        if number > entries_max:
            raise ArchiveTooLarge(is_number=True)
        yield one


def archive_commit(content: bytes) -> str:
    """Returns the commit that an archive says that it is of, as git writes it; "" if it says
    none."""
    said = ""
    try:
        if content.startswith(ZIP):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                said = packed.comment.decode(errors="replace")
        else:
            file = cast("BinaryIO", _Unpacked(content, _READ_BYTES))
            with tarfile.open(fileobj=file, mode="r|", errors="replace") as archive:
                said = str(archive.pax_headers.get("comment", ""))
    except (*_WRONG, ArchiveTooLarge):
        return ""
    return said if _COMMIT.fullmatch(said) else ""


_WRONG = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, ValueError, OverflowError),
    *(OSError, RuntimeError, NotImplementedError),
)


def _tar(content: bytes, unpacked_bytes_max: int) -> Iterator[tuple[ArchiveEntry, ReadsEntry]]:
    raw = _Unpacked(content, unpacked_bytes_max)
    try:
        # As a stream: an entry can make nobody look backwards or far ahead.
        file = cast("BinaryIO", raw)
        with tarfile.open(fileobj=file, mode="r|", errors="strict") as archive:
            for member in archive:

                def read(size: int, member: tarfile.TarInfo = member) -> bytes:
                    inside = archive.extractfile(member)
                    assert inside is not None, member
                    return inside.read(size)

                yield _tar_entry(member), _guarded(read)
        raw.finish()
    except _WRONG as error:
        raise BadArchive from error


def _zip(content: bytes) -> Iterator[tuple[ArchiveEntry, ReadsEntry]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():

                def read(size: int, info: zipfile.ZipInfo = info) -> bytes:
                    with archive.open(info) as file:
                        return file.read(size)

                yield _zip_entry(info), _guarded(read)
    except _WRONG as error:
        raise BadArchive from error


def _guarded(read: ReadsEntry) -> ReadsEntry:
    """Returns what reads an entry; what goes wrong there is a BadArchive in the caller, too."""

    def guarded(size: int) -> bytes:
        try:
            return read(size)
        except _WRONG as error:
            raise BadArchive from error

    return guarded


class _Unpacked:
    """Reads a tar piece by piece, inflated if it is a gzip file, never more than is allowed."""

    def __init__(self, content: bytes, bytes_max: int) -> None:
        self._content = io.BytesIO(content)
        self._inflater = zlib.decompressobj(wbits=31) if content.startswith(GZIP) else None
        self._left = bytes_max
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
            raise ArchiveTooLarge
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
        problem = "not a regular file"
    elif member.size < 0:
        problem = "an entry with a negative size"
    path = member.name.removeprefix("./")  # which `tar` writes before it
    return ArchiveEntry(path, member.size, member.mode, problem, member.isdir())


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
        problem = "compressed in a way that is not accepted; use deflate"
    # As it stands in the archive: the library cuts a name at its first NUL.
    path = info.orig_filename.removeprefix("./")
    return ArchiveEntry(path, info.file_size, mode, problem, path.endswith("/"))
