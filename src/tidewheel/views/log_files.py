"""The files that a run leaves on the host where it ran: how people call them, what is in them.

A path is put together from a run's name, a point and a node's name that were looked up before,
and from the names below; nothing else of what people write becomes part of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tidewheel.errors import Refused
from tidewheel.runners.safe_open import open_plain
from tidewheel.services.paths import log_generations, run_directory

TEXT_BYTES_MAX = 1024 * 1024
TRIES_MAX = 3  # to open a log that begins anew at the same moment
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
        with _opened_parts(root, path) as parts:
            return _read_parts(parts, offset, bytes_max)
    except (OSError, Refused):
        return None


def last_text(root: Path, path: Path, bytes_max: int = TEXT_BYTES_MAX) -> tuple[str, bool]:
    """The end of a file below the root, and whether something before it was left out."""
    with _opened_parts(root, path) as parts:
        content, start, _ = _read_parts(parts, None, bytes_max)
    return content.decode(errors="replace"), start > 0


class _Part(NamedTuple):
    """A file that is a part of a log: where in the whole it begins, and how long it is."""

    start: int
    size: int
    file: BinaryIO


@contextmanager
def _opened_parts(root: Path, path: Path) -> Iterator[list[_Part]]:
    """The log of a run may have begun anew, also while it is being opened."""
    with ExitStack() as stack:

        def opened(start: int, one: Path) -> _Part:
            file = stack.enter_context(open_plain(root, one))
            return _Part(start, os.fstat(file.fileno()).st_size, file)

        def all_parts() -> list[_Part]:
            before = log_generations(path) if path.name == RUN_LOG.name else []
            parts = [opened(*one) for one in before]
            end = parts[-1].start + parts[-1].size if parts else 0
            try:
                parts.append(opened(end, path))
            except OSError:
                if not parts:
                    raise
            return parts if not before or before == log_generations(path) else []

        parts: list[_Part] = []
        for _ in range(TRIES_MAX):
            if parts := all_parts():
                break
        yield parts


def _read_parts(
    parts: Sequence[_Part], offset: int | None, bytes_max: int
) -> tuple[bytes, int, int]:
    if not parts:  # it begins anew faster than it can be read
        return b"", offset or 0, offset or 0
    first, end = parts[0].start, parts[-1].start + parts[-1].size
    start = end - bytes_max if offset is None else offset
    start = max(first, min(start, end))
    content = b""
    for part in parts:
        at = start + len(content) - part.start
        if 0 <= at < part.size and len(content) < bytes_max:
            part.file.seek(at)
            content += part.file.read(min(bytes_max - len(content), part.size - at))
    return content, start, end
