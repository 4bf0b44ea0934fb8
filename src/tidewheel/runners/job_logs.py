"""How large a job's log may become.

RLIMIT_FSIZE would end the job by a signal, for all of its files. Instead a log that has
become too large loses its middle: the sampler looks at each interval and the runner once
more at the end. Jobs write with O_APPEND, so a log that was cut goes on at its new end. In
between it may grow by what the job writes within one interval; lines written in the instant
of the cut may be lost with the rest.
"""

from __future__ import annotations

import os
from pathlib import Path

LOG_BYTES_MAX = 100_000_000
KEPT_BYTES = 1_000_000  # the end of a log that was cut


def cut_log(path: Path, bytes_max: int = LOG_BYTES_MAX) -> bool:
    """Cut a log down to its end if it is too large; whether it was."""
    try:
        if os.lstat(path).st_size <= bytes_max:
            return False
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        # Gone with its directory, or no longer a file: nothing to save here.
        return False
    with open(descriptor, "r+b", buffering=0) as log:
        _keep_end(log.fileno(), min(KEPT_BYTES, bytes_max // 2))
    return True


def _keep_end(descriptor: int, kept_bytes: int) -> None:
    size = os.fstat(descriptor).st_size
    end = os.pread(descriptor, kept_bytes, max(0, size - kept_bytes))
    os.ftruncate(descriptor, 0)
    note = f"[tidewheel: {size - len(end)} bytes were dropped here to keep this log small]\n"
    os.write(descriptor, note.encode() + end)
