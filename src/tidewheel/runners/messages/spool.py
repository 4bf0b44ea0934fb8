"""Keeps what a job said in its directory until the store has it.

The spool is the one order of an attempt's messages. A worker writes each message here before
it passes it on; a job that finds no worker writes here by itself. So nothing said is lost
with a worker, and an adopter that reads from the first line meets the same messages in the
same order. A message that was written twice, because its first writer was not heard to
answer, has the same key twice and counts once.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import NamedTuple

SPOOL_NAME = "job.messages"
READ_BYTES_MAX = 64 * 1024 * 1024  # of one spool; what a job says beyond that is dropped


class SpooledMessage(NamedTuple):
    """One thing said; ``key`` tells a repeated message from a second one.

    A tuple, as ``dataclasses`` would be a third of what a job's command has to import.
    """

    key: str
    text: str
    output: str | None = None


def append(directory: Path, message: SpooledMessage) -> None:
    """Add a message; one write, so that lines of several writers never mix."""
    # The newline before it ends a line that a full disk left torn.
    line = f"\n{json.dumps(message)}\n".encode()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    descriptor = os.open(directory / SPOOL_NAME, flags, 0o600)
    try:
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
    finally:
        os.close(descriptor)


def read_from(directory: Path, offset: int) -> tuple[list[SpooledMessage], int]:
    """The messages after a byte offset, and the offset after the last complete one."""
    try:
        descriptor = os.open(directory / SPOOL_NAME, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return [], offset
    with open(descriptor, "rb") as spool:
        spool.seek(offset)
        written = spool.read(max(0, READ_BYTES_MAX - offset))
    complete = written[: written.rfind(b"\n") + 1]
    parsed = (_parse(line) for line in complete.splitlines() if line)
    return [message for message in parsed if message is not None], offset + len(complete)


def _parse(line: bytes) -> SpooledMessage | None:
    """A job can write anything into its own directory; what is no message is passed over."""
    try:
        key, text, output = json.loads(line)
    except (ValueError, TypeError):
        return None
    if not isinstance(key, str) or not isinstance(text, str):
        return None
    if not (output is None or isinstance(output, str)):
        return None
    return SpooledMessage(key=key, text=text, output=output)
