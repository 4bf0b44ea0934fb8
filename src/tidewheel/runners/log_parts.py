"""Reading what a job writes while it writes it, to be sent elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

FILES = {"out": "job.out", "err": "job.err", "job": "job", "status": "job.status"}


NOTHING = (b"", 0)


def read_part(directory: Path, stream: str, offset: int, bytes_max: int) -> tuple[bytes, int]:
    """Some bytes of a file, and how long it is.

    A job may have put anything there, so only a plain file is read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(directory / FILES[stream], flags)
    except OSError:
        return NOTHING
    with open(descriptor, "rb", buffering=0) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return NOTHING
        return os.pread(file.fileno(), bytes_max, offset), facts.st_size
