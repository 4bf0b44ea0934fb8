"""The files that a run leaves on the host where it ran: where they are, and their last lines.

A path is put together from a run's name, a point and a node's name that were looked up before,
and from the names below; nothing else of what people write becomes part of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tidewheel.core.runs.job_names import JobName
from tidewheel.errors import Refused
from tidewheel.services.run_views.loading import run_directory

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


def job_folder(home: Path, job: JobName, attempt: int = 1) -> Path:
    return run_directory(home, job.run) / job.log_folder(attempt)


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
    return [str(folder / name) for name in JOB_FILES.values() if (folder / name).is_file()]


def part_of_file(
    root: Path, path: Path, offset: int | None, bytes_max: int
) -> tuple[bytes, int, int] | None:
    """Some bytes of a log, where they begin, and how long it is; without an offset, its end.

    None if there is no plain file below the root: whatever a job made of its folder, nothing
    outside is opened.
    """
    if root.resolve() not in path.parent.resolve().parents:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return None
        size = facts.st_size
        start = max(0, size - bytes_max) if offset is None else min(offset, size)
        file.seek(start)
        return file.read(bytes_max), start, size


def last_text(path: Path, bytes_max: int = TEXT_BYTES_MAX) -> tuple[str, bool]:
    """The end of a file, and whether something before it was left out."""
    # A job may have put anything there: no link is followed, no pipe is waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise Refused(f"{path} is no plain file, so it is not read")
        file.seek(max(0, facts.st_size - bytes_max))
        content = file.read(bytes_max)
    return content.decode(errors="replace"), facts.st_size > bytes_max
