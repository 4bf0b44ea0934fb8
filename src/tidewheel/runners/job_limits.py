"""Limits of the kernel on each process of a job, as a line of bash before the command."""

from __future__ import annotations

import math

from tidewheel.config import JobLimits

KIB = 1024
NOT_APPLICABLE = 126  # the exit status of a job whose limits cannot be set


def limits_script(limits: JobLimits) -> str:
    """What sets the limits; empty if there are none. bash counts memory and files in KiB."""
    asked = {
        "t": None if limits.cpu_seconds is None else math.ceil(limits.cpu_seconds),
        "v": None if limits.memory_bytes is None else limits.memory_bytes // KIB,
        "n": limits.open_files,
        "u": limits.processes,
        "f": None if limits.file_bytes is None else limits.file_bytes // KIB,
    }
    return " ".join(
        f"ulimit -{letter} {value} || exit {NOT_APPLICABLE};"
        for letter, value in asked.items()
        if value is not None
    )
