"""Tells how a command ended: exit status, signal, killed, vanished, or never begun.

What a job wrote to ``outputs.json`` goes to the store with the end of an attempt that
succeeded, whichever runner ran the job. A job that writes there what cannot be handed on
has failed. The file is read without following links: a job may have put there what it likes.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.values import VALUES_BYTES_MAX, values_text
from tidewheel.errors import BadValues, RunnerUnable
from tidewheel.runners.job_directory import (
    OUTPUTS,
    OUTPUTS_NAME,
    JobDirectory,
    StrPath,
    last_line,
    open_plain,
)
from tidewheel.runners.processes import Child, Exit, ProcessId
from tidewheel.runners.sanitize import LAST_LINE, storable


class EndedJob:
    """Is a job (port ``Job``) that has ended already, so that it answers at once."""

    def __init__(self, end: End) -> None:
        self.end = end

    async def wait(self) -> End:
        return self.end

    async def stop(self, grace_seconds: float) -> None:
        """Does nothing, because there is nothing to end."""


def tell_no_end(_end: End) -> None:
    """Does nothing with the end of a job, where only those who wait are told."""


class AwaitedEnd:
    """Holds the end of a job as soon as it is known, and tells those that wait for it.

    It is used in the worker's loop alone.
    """

    __slots__ = ("_on_end", "_waiters", "known")

    def __init__(self, on_end: Callable[[End], None] = tell_no_end) -> None:
        self.known: End | None = None
        self._on_end = on_end
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> End:
        if self.known is None:
            # One future per waiter: a waiter that is cancelled takes nothing along.
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        assert self.known is not None
        return self.known

    def set(self, end: End) -> None:
        """Sets how the job ended; only the first end counts."""
        if self.known is not None:
            return
        self.known = end
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        on_end, self._on_end = self._on_end, tell_no_end  # it refers back to the job
        on_end(end)


DESCRIPTION_LENGTH_MAX = 1000
SHELL_SIGNAL_BASE = 128  # a shell's exit status for a command that signal N ended is 128 + N
# Errors of the machine, not of one job: no room, memory, descriptors or processes are left.
HOST_ERRNOS = frozenset(
    {errno.EAGAIN, errno.EDQUOT, errno.EIO, errno.EMFILE}
    | {errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS}
)
FILE_BYTES_MAX = 2 * VALUES_BYTES_MAX  # white space around values does not count
_SIGNALS = {number.value: number.name for number in signal.Signals}


def exit_status_of(exited: Exit) -> int:
    """Returns the exit status, or minus the signal, also where a shell says it as 128 + N."""
    signal_number = exited.status - SHELL_SIGNAL_BASE
    return -signal_number if signal_number in _SIGNALS else exited.status


def end_of(exited: Exit, files: JobDirectory) -> End:
    """Returns the end of a job that ended by itself, or after a SIGTERM."""
    metrics = None
    if exited.cpu_seconds is not None:
        metrics = f'{{"cpu_seconds": {exited.cpu_seconds!r}}}'  # as json writes it
    if exited.status == 0:
        success = End(ending=Ending.SUCCEEDED, exit_status=0, metrics=metrics)
        return with_values(success, partial(read_values, f"{files.folder}/{OUTPUTS_NAME}"))
    status = exit_status_of(exited)
    last_words = last_line(files.err)
    said = f"{LAST_LINE}{last_words}" if last_words else ""
    told: dict[str, object] = {"exit_status": status}
    code, words = "exit", f"exit status {status}"
    if status < 0:
        name = _SIGNALS.get(-status, f"signal {-status}")
        told = {"signal": name, "signal_number": -status}
        code, words = "signal", f"ended by {name}"
    return failed(code, f"{words}{said}", told, exit_status=status, metrics=metrics)


def with_values(end: End, find: Callable[[], str | None]) -> End:
    """Returns a successful end with the values that ``find`` returns; other ends as they are.

    Bad values make the end a failure.
    """
    if end.ending is not Ending.SUCCEEDED:
        return end
    try:
        values = find()
    except BadValues as error:
        bad = TaskError(code=error.code, description=f"{error} (${OUTPUTS})")
        return replace(end, ending=Ending.FAILED, error=bad)
    return end if values is None else replace(end, values=values)


def read_values(path: StrPath) -> str | None:
    """Returns the values that a job wrote; None if there are none.

    Raises BadValues for a file that cannot be handed on.
    """
    try:
        descriptor = open_plain(path)  # of most jobs there is none
        try:
            size = os.fstat(descriptor).st_size
            content = os.pread(descriptor, FILE_BYTES_MAX + 1, 0)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = error.strerror
        if error.errno == errno.ELOOP:
            why = "it is a symbolic link; write the values into the file itself"
        raise BadValues(f"{os.path.basename(path)} cannot be read: {why}") from None
    if len(content) > FILE_BYTES_MAX:
        seen = f"{os.path.basename(path)} has {size} bytes"
        raise BadValues(f"{seen}; at most {VALUES_BYTES_MAX} are accepted")
    if not content.strip():  # made, and never written to
        return None
    try:
        return values_text(content.decode())
    except UnicodeDecodeError as error:
        raise BadValues(f"{os.path.basename(path)} is not UTF-8 ({error.reason})") from None


def killed(grace_seconds: float) -> End:
    """Returns the end of a job that SIGTERM did not end: its exit status means nothing
    (R003-47)."""
    return failed("killed", f"killed: it did not end within {grace_seconds:g} s of SIGTERM")


def vanished(leader: ProcessId | Child) -> End:
    """Returns the end of a job without exit status: it was killed, or its machine went down."""
    return failed(
        "vanished",
        f"process {leader.pid} is gone and left no exit status: it was killed while no "
        "worker watched it, or its machine went down",
    )


def refused(why: str) -> EndedJob:
    """Returns a job that has failed because this worker may not start it."""
    error = TaskError(code="refused", description=why)
    return EndedJob(End(ending=Ending.FAILED, error=error))


def not_started(error: OSError | ValueError, directory: Path) -> EndedJob:
    """Returns a job that has failed because it could not be started.

    Raises RunnerUnable if the host is the reason, so that no job could be started.
    """
    if isinstance(error, OSError) and error.errno in HOST_ERRNOS:
        shortage = error.strerror or str(error)
        if error.errno == errno.EMFILE:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            shortage = (
                f"no file descriptors are left; this process may have {limit} (ulimit -n)"
            )
        where = directory.parent.parent
        raise RunnerUnable(
            f"no job can be started in {where}: {shortage}. Until this is fixed, tasks go back "
            "to their queue"
        ) from error
    return EndedJob(
        failed(
            "start",
            f"the job could not be started in {directory}: {error}; make sure that the worker "
            "may write there and that the disk is not full",
        )
    )


def failed(
    code: str,
    description: str,
    facts: Mapping[str, object] | None = None,
    *,
    ending: Ending = Ending.FAILED,
    exit_status: int | None = None,
    metrics: str | None = None,
) -> End:
    """Returns a failed end in words, with the facts that a program may want to know of it."""
    described = storable(description, DESCRIPTION_LENGTH_MAX)
    args = json.dumps({} if facts is None else facts)
    return End(
        ending=ending,
        error=TaskError(code=code, description=described, args=args),
        exit_status=exit_status,
        metrics=metrics,
    )
