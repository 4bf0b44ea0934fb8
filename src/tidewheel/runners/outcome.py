"""Tells how a command ended: exit status, signal, killed, vanished, or never begun."""

from __future__ import annotations

import errno
import json
import resource
import signal
from collections.abc import Mapping
from pathlib import Path

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.task import TaskError
from tidewheel.errors import RunnerUnable
from tidewheel.runners.job_directory import JobDirectory, last_line, read_values, with_values
from tidewheel.runners.processes import Exit, ProcessId
from tidewheel.runners.sanitize import storable


class EndedJob:
    """Is a job (port ``Job``) that has ended already, so that it answers at once."""

    def __init__(self, end: End) -> None:
        self._end = end

    async def wait(self) -> End:
        return self._end

    async def stop(self, grace_seconds: float) -> None:
        """Does nothing, because there is nothing to end."""


DESCRIPTION_LENGTH_MAX = 1000
SHELL_SIGNAL_BASE = 128  # a shell's exit status for a command that signal N ended is 128 + N
# Errors of the machine, not of one job: no room, memory, descriptors or processes are left.
HOST_ERRNOS = frozenset(
    {errno.EAGAIN, errno.EDQUOT, errno.EIO, errno.EMFILE}
    | {errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS}
)
_SIGNALS = {number.value: number.name for number in signal.Signals}


def exit_status_of(exited: Exit) -> int:
    """Returns the exit status, or minus the signal, also where a shell says it as 128 + N."""
    signal_number = exited.status - SHELL_SIGNAL_BASE
    return -signal_number if signal_number in _SIGNALS else exited.status


def end_of(exited: Exit, files: JobDirectory) -> End:
    """Returns the end of a job that ended by itself, or after a SIGTERM."""
    status = exit_status_of(exited)
    metrics = None
    if exited.cpu_seconds is not None:
        metrics = json.dumps({"cpu_seconds": exited.cpu_seconds})
    if status == 0:
        success = End(ending=Ending.SUCCEEDED, exit_status=0, metrics=metrics)
        return with_values(success, lambda: read_values(files.outputs))
    last_words = last_line(files.err)
    said = f"; last line of job.err: {last_words}" if last_words else ""
    told: dict[str, object] = {"exit_status": status}
    code, words = "exit", f"exit status {status}"
    if status < 0:
        name = _SIGNALS.get(-status, f"signal {-status}")
        told = {"signal": name, "signal_number": -status}
        code, words = "signal", f"ended by {name}"
    return failed(code, f"{words}{said}", told, exit_status=status, metrics=metrics)


def killed(grace_seconds: float) -> End:
    """Returns the end of a job that SIGTERM did not end: its exit status means nothing
    (R003-47)."""
    return failed("killed", f"killed: it did not end within {grace_seconds:g} s of SIGTERM")


def vanished(leader: ProcessId) -> End:
    """Returns the end of a job that left no word: it was killed, or its machine went down."""
    return failed(
        "vanished",
        f"process {leader.pid} is gone and left no exit status: it was killed while no "
        "worker watched it, or its machine went down",
    )


def not_started(error: OSError | ValueError, directory: Path) -> EndedJob:
    """Returns a job that never began; raises RunnerUnable if none could begin on this host."""
    if isinstance(error, OSError) and error.errno in HOST_ERRNOS:
        shortage = error.strerror or str(error)
        if error.errno == errno.EMFILE:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            shortage = (
                f"no file descriptors are left; this process may have {limit} (ulimit -n)"
            )
        where = directory.parent.parent
        raise RunnerUnable(
            f"no job can be started in {where}: {shortage}. Tasks go back until that is mended"
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
