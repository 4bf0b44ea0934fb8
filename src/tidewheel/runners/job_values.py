"""What a job hands to those after it: the JSON object that it wrote to ``$TIDEWHEEL_OUTPUTS``.

It is ``outputs.json`` of the attempt, whichever runner runs the job, and goes to the store with
the end of an attempt that succeeded. A job that writes what cannot be handed on has failed in
that. The file is read without following links: a job may have put there what it likes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import VALUES_BYTES_MAX, values_text
from tidewheel.errors import BadValues

OUTPUTS = "TIDEWHEEL_OUTPUTS"
OUTPUTS_NAME = "outputs.json"
FILE_BYTES_MAX = 2 * VALUES_BYTES_MAX  # white space around them does not count


def with_values(end: End, find: Callable[[], str | None]) -> End:
    """The end with the values that are found, if it is a success."""
    if end.ending is not Ending.SUCCEEDED:
        return end
    try:
        return replace(end, values=find())
    except BadValues as error:
        failed = TaskError(code=error.code, description=f"{error} (${OUTPUTS})")
        return replace(end, ending=Ending.FAILED, error=failed)


def read_values(path: Path) -> str | None:
    """What a job wrote; None if it wrote nothing, BadValues if it cannot be handed on."""
    try:
        content, size = _read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadValues(f"{path.name} cannot be read: {error.strerror}") from None
    if len(content) > FILE_BYTES_MAX:
        seen = f"{path.name} has {size} bytes"
        raise BadValues(f"{seen}; at most {VALUES_BYTES_MAX} are accepted")
    if not content.strip():  # made, and never written to
        return None
    try:
        return values_text(content.decode())
    except UnicodeDecodeError as error:
        raise BadValues(f"{path.name} is not UTF-8 ({error.reason})") from None


def _read(path: Path) -> tuple[bytes, int]:
    """The beginning of a plain file, and how large it is; nothing else is read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise BadValues(f"{path.name} is no plain file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(FILE_BYTES_MAX + 1), facts.st_size
    finally:
        os.close(descriptor)
