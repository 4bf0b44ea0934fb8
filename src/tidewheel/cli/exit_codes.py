"""Defines the exit statuses with which commands answer the shell, each with its meaning.

docs/exit_codes.md shows this table; a test compares the two.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from enum import IntEnum


class ExitCode(IntEnum):
    """Lists the exit statuses of all commands; they are the same through a server."""

    DONE = 0
    FAILED = 1
    REFUSED = 2
    UNAVAILABLE = 3
    STOPPED = 4
    INTERRUPTED = 130  # as shells have it: 128 + SIGINT
    TERMINATED = 143  # 128 + SIGTERM


MEANINGS = {
    ExitCode.DONE: "The command did what you asked for, or stored your request for later. "
    "Services end with this code after they were asked to stop.",
    ExitCode.FAILED: "The run or the task failed, a check found something, or only a part of "
    "what you asked for could be done.",
    ExitCode.REFUSED: "The request or the definition is wrong; nothing was done. If "
    "`submit --file` refuses some tasks, the others are stored.",
    ExitCode.UNAVAILABLE: "The store or the server does not answer, or cannot be used.",
    ExitCode.STOPPED: "The run was stopped before its end, or another scheduler drives it now.",
    ExitCode.INTERRUPTED: "Ctrl-C (SIGINT) ended the command before it was done.",
    ExitCode.TERMINATED: "SIGTERM ended the command before it was done.",
}


SIGNALLED = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


class FinalStatus(int):
    """Is an exit status with a last step, which is done when nothing else is left to do."""

    last_step: Callable[[], None]

    def __new__(cls, status: int, last_step: Callable[[], None]) -> FinalStatus:
        made = super().__new__(cls, status)
        made.last_step = last_step
        return made


def settled(status: int) -> int:
    """Does the last step of an exit status, if it has one, and returns the status."""
    if isinstance(status, FinalStatus):
        status.last_step()
    return status
