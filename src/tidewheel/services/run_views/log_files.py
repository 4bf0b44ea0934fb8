"""The files that a run leaves on the host where it ran: how people call them, what is in them.

A path is put together from a run's name, a point and a node's name that were looked up before,
and from the names below; nothing else of what people write becomes part of it.
"""

from __future__ import annotations

import os
from pathlib import Path

from tidewheel.errors import Refused
from tidewheel.runners.plain_files import open_plain
from tidewheel.services.home_folders import run_directory

TEXT_BYTES_MAX = 1024 * 1024
RUN_LOG = Path("log", "scheduler", "log")
JOB_FILES = {
    "out": "job.out",
    "err": "job.err",
    "job": "job",
    "status": "job.status",
    "activity": "job-activity.log",
    "xtrace": "job.xtrace",
}
# As people type them for Cylc.
SHORT_NAMES = {
    "o": "out",
    "e": "err",
    "j": "job",
    "s": "status",
    "a": "activity",
    "x": "xtrace",
}


def run_log(home: Path, run: str) -> Path:
    return run_directory(home, run) / RUN_LOG


def job_file(word: str) -> str:
    """`out`, `o` and `job.out` are the same file."""
    long = SHORT_NAMES.get(word, word)
    if long in JOB_FILES:
        return JOB_FILES[long]
    if word in JOB_FILES.values():
        return word
    accepted = ", ".join(JOB_FILES)
    raise Refused(f"a job has no file {word!r}; it has {accepted}")


def found_files(folder: Path) -> list[str]:
    """The files of an attempt that are on this host."""
    paths = (folder / name for name in JOB_FILES.values())
    return [str(path) for path in paths if not path.is_symlink() and path.is_file()]


def part_of_file(
    root: Path, path: Path, offset: int | None, bytes_max: int
) -> tuple[bytes, int, int] | None:
    """Some bytes of a log, where they begin, and how long it is; without an offset, its end.

    None if there is no plain file below the root: whatever a job made of its folder, nothing
    outside is opened.
    """
    try:
        opened = open_plain(root, path)
    except (OSError, Refused):
        return None
    with opened as file:
        size = os.fstat(file.fileno()).st_size
        start = max(0, size - bytes_max) if offset is None else min(offset, size)
        file.seek(start)
        return file.read(bytes_max), start, size


def last_text(root: Path, path: Path, bytes_max: int = TEXT_BYTES_MAX) -> tuple[str, bool]:
    """The end of a file below the root, and whether something before it was left out."""
    with open_plain(root, path) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - bytes_max))
        content = file.read(bytes_max)
    return content.decode(errors="replace"), size > bytes_max
