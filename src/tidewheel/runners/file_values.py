"""Records files that are values when a task returns them, and checks them for those after it.

A job says ``{"$file": PATH}``; size and sha256 are added with its success. The file must lie in
a folder that is the job's: of other files neither is told. A job may have put links anywhere,
so what was opened is judged by where it is, not by its name.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import FILE, file_value, files_in
from tidewheel.errors import BadValues, Refused
from tidewheel.runners.job_directory import open_plain_file

FILES_MAX = 1_000  # that one task returns
CHUNK_BYTES = 1024 * 1024


def with_recorded_files(end: End, base: Path, folders: Sequence[Path]) -> End:
    """Returns the end of a job with its files recorded; a failure if one cannot be. Relative
    paths are below ``base``. It reads the files whole: not for the worker's loop."""
    assert end.values is not None
    try:
        return replace(end, values=_recorded(end.values, base, folders))
    except BadValues as bad:
        error = TaskError(code=bad.code, description=str(bad))
        return replace(end, ending=Ending.FAILED, error=error, values=None)


def _recorded(text: str, base: Path, folders: Sequence[Path]) -> str:
    values = json.loads(text)
    roots = [os.path.realpath(one) for one in folders]
    for count, one in enumerate(files_in(values)):
        if count >= FILES_MAX:
            raise BadValues(f"they name more than {FILES_MAX} files")
        given = one[FILE]
        if not isinstance(given, str) or not given or "\0" in given:
            raise BadValues(f"{FILE} is {given!r:.200}; expected the path of a file")
        path = os.path.normpath(base / given)
        try:
            size, sha256 = _facts(path, roots)
        except OSError as error:
            why = error.strerror or str(error)
            raise BadValues(f"the file {path} cannot be recorded: {why}") from None
        one |= {FILE: path, "size": size, "sha256": sha256}
    return json.dumps(values, ensure_ascii=False)


def _facts(path: str, roots: Sequence[str], wanted: int | None = None) -> tuple[int, str]:
    """Returns size and sha256 of a file; one that has not the wanted size is not read."""
    with _opened(path, roots) as descriptor:
        digest, size = hashlib.sha256(), 0
        if wanted is not None and os.fstat(descriptor).st_size != wanted:
            return os.fstat(descriptor).st_size, ""
        while chunk := os.read(descriptor, CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


@contextmanager
def _opened(path: str, roots: Sequence[str]) -> Iterator[int]:
    with open_plain_file(os.path.realpath(path)) as descriptor:
        there = os.readlink(f"/proc/self/fd/{descriptor}")
        if not any(there.startswith(f"{root}/") for root in roots):
            names = " or ".join(roots)
            raise BadValues(
                f"the file {path} is not below {names}: it may belong to another task"
            )
        yield descriptor


def check_files(text: str) -> None:
    """Raises Refused if a file in the inputs of a job, JSON by task, is not as it was."""
    for task, values in json.loads(text).items():
        for told in files_in(values):
            one = file_value(told)
            try:
                is_same = _facts(one.path, ("",), one.size) == one[1:]
                seen = "has changed since"
            except OSError as error:
                is_same, seen = False, f"cannot be read: {error.strerror or error}"
            if not is_same:
                raise Refused(f"the file {one.path}, which {task} returned, {seen}")
