"""Keeps the logs of jobs: cut when they grow too large, read in parts, copied to a server.

RLIMIT_FSIZE would end the job by a signal, for all of its files. Instead a log that has
become too large loses all but its end: the sampler looks at each interval and the runner once
more when the job has ended. Jobs write with O_APPEND, so a log that was cut goes on at its new
end. In between it may grow by what the job writes within one interval; lines written in the
instant of the cut may be lost with the rest.

A server puts copies of what jobs write on other hosts where the logs of its own host lie. A
chunk says where it belongs in the file. Only what lies at the copy's end, or reaches beyond
it, is written, so that a chunk that comes twice or too early changes nothing; the answer says
where the copy ends, and the sender goes on from there. Several servers may share a folder:
the file is locked while its end is looked at. Jobs of this user may have put links in the way:
every folder below the root is entered by itself, without following any, and only a plain file
with one name is written to. To read a file, what lies at the end of the way is looked at before
it is opened (S11): a pipe would be waited for, and a device may do something when it is opened.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.job_directory import StrPath, open_plain_file

LOG_BYTES_MAX = 100_000_000
KEPT_BYTES = 1_000_000  # the end of a log that was cut


def cut_log(path: StrPath, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Cuts a log down to its end if it is too large, and returns whether it was."""
    try:
        if os.lstat(path).st_size <= bytes_max:
            return False
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        # Gone with its directory, or no longer a file: nothing to save here.
        return False
    kept_bytes = min(KEPT_BYTES, bytes_max // 2)
    with open(descriptor, "r+b", buffering=0) as log:
        size = os.fstat(descriptor).st_size
        end = os.pread(descriptor, kept_bytes, max(0, size - kept_bytes))
        log.truncate(0)
        note = (
            f"[tidewheel: {size - len(end)} bytes were dropped here to keep this log small]\n"
        )
        log.write(note.encode() + end)
    return True


FILES = {"out": "job.out", "err": "job.err", "job": "job", "status": "job.status"}


NOTHING = (b"", 0)


def read_part(directory: Path, stream: str, offset: int, bytes_max: int) -> tuple[bytes, int]:
    """Returns bytes of a file of an attempt from an offset on, and how long the file is.

    A job may have put anything there, so only a plain file is read; else the answer is NOTHING.
    """
    try:
        with open_plain_file(directory / FILES[stream]) as descriptor:
            return os.pread(descriptor, bytes_max, offset), os.fstat(descriptor).st_size
    except OSError:
        return NOTHING


CHUNK_BYTES_MAX = 1_000_000
CUT = (
    "\n[tidewheel: this copy ends here, at {size} bytes; "
    "the rest is on the host that ran the job]\n"
)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)


class CopyEnd(NamedTuple):
    """Says how long a copy is, and whether it takes no more."""

    size: int
    full: bool


class CopyPlace(NamedTuple):
    """Names a file below a root: the folders to it, each a name by itself, and its own name."""

    root: Path
    folders: Sequence[str]
    name: str


def add_to_copy(
    place: CopyPlace, offset: int, content: bytes, bytes_max: int = LOG_BYTES_MAX
) -> CopyEnd:
    """Writes what a copy lacks of a chunk, and returns where the copy ends.

    Raises Refused if the copy there is no plain file.
    """
    try:
        with _folder(place.root, place.folders) as folder:
            descriptor = os.open(place.name, _FILE, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise _not_plain(place) from error
        raise
    with open(descriptor, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise _not_plain(place)
        return _append(file.fileno(), facts.st_size, offset, content, bytes_max)


def point_to_latest(root: Path, folders: Sequence[str], link: str) -> None:
    """Makes ``link``, beside the last of the folders, point to that folder, unless the link
    points to a later one."""
    *above, last = folders
    with _folder(root, above) as folder:
        with suppress(FileExistsError):
            os.symlink(last, link, dir_fd=folder)
            return
        try:
            there = os.readlink(link, dir_fd=folder)
        except OSError:  # no link: it is not ours to replace
            return
        if (len(there), there) >= (len(last), last):  # numbers with two digits, or more
            return
        new = f"{link}.{os.urandom(4).hex()}"
        os.symlink(last, new, dir_fd=folder)
        os.rename(new, link, src_dir_fd=folder, dst_dir_fd=folder)


def _append(descriptor: int, size: int, offset: int, content: bytes, bytes_max: int) -> CopyEnd:
    if size >= bytes_max:
        return CopyEnd(size, full=True)
    fresh = content[size - offset :] if offset <= size else b""
    room = bytes_max - size
    cut = CUT.format(size=bytes_max).encode() if len(fresh) >= room else b""
    size += _write_all(descriptor, fresh[:room] + cut)
    return CopyEnd(size, full=size >= bytes_max)


def _write_all(descriptor: int, content: bytes) -> int:
    """Writes content, and returns how many bytes were written. On a full disk these may be
    fewer: the sender is asked for the rest again."""
    written = 0
    while written < len(content):
        try:
            written += os.write(descriptor, content[written:])
        except OSError:
            if written:
                return written
            raise
    return written


@contextmanager
def _folder(root: Path, folders: Sequence[str]) -> Iterator[int]:
    """Opens a folder below the root, step by step, for the block; makes it if need be."""
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in folders:
            assert name not in ("", ".", "..") and "/" not in name and "\0" not in name, name
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=here)
            below = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _not_plain(place: CopyPlace) -> Refused:
    return Refused(
        f"{place.name} of this attempt is not a plain file here, so nothing is written"
    )


_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_plain(root: Path, path: Path) -> BinaryIO:
    """Opens a plain file below the root; raises FileNotFoundError if there is nothing, and
    Refused if something else is there.

    The root itself may be a link: it is this user's, and no job is told to write there.
    """
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        raise Refused(f"{path} is not below {root}, so it is not read") from None
    if not parts or ".." in parts:
        raise Refused(f"{path} is not a file below {root}, so it is not read")
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            following = os.open(part, _LOOK, dir_fd=descriptor)
        except NotADirectoryError:
            raise Refused(_NOT_READ.format(path=path)) from None
        finally:
            os.close(descriptor)
        descriptor = following
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(_NOT_READ.format(path=path))
        # The very file that was looked at, whatever has the name by now.
        return open(f"/proc/self/fd/{descriptor}", "rb")
    finally:
        os.close(descriptor)


_NOT_READ = "{path} is not a plain file, or a link leads there, so it is not read"
