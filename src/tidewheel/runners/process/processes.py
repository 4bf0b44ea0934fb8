"""Starts one process, knows it again later, notices its end, and reaps orphans.

Theory of operation
-------------------
``posix_spawn`` starts a process without copying this one, twice as fast as asyncio's own way.
A pidfd becomes readable when its process ends, for our children and for others alike, so one
``add_reader`` per job replaces SIGCHLD, polling and threads. A pid alone names nothing: it is
used again. A pid with the kernel's start time, on one boot and in one pid namespace, names
one process for ever.

A process that becomes a subreaper is the new parent of every orphan below it, and must reap
them or its machine runs out of pids; so must pid 1. It cannot tell an orphan from a child that
other code in the same process started and waits for, except by the session: jobs have sessions
of their own. So only a process that starts nothing else with a new session may become a
subreaper.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidewheel.core.queue.requests import HostProcess
from tidewheel.runners.process.table import read_row

# Python ignores SIGPIPE and SIGXFSZ, and nohup SIGHUP; a job must not inherit that.
_DEFAULT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGXFSZ,
)
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """A process of this boot that cannot be mistaken for a later one."""

    pid: int
    started: int  # ticks since boot


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Says how a process ended: an exit status of 0 or more, or minus the signal."""

    status: int
    cpu_seconds: float | None = None


def boot_id() -> str:
    """Returns where pids of this process mean something: this boot of the kernel, this pid
    namespace.

    Containers share the kernel's boot id; without the namespace a worker in one container
    would take the absence of a pid for the death of a process in another.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def this_process() -> HostProcess:
    """Returns how this process is known to others, now and after its death."""
    row = read_row(os.getpid())
    assert row is not None, "a process can read its own row in /proc"
    return HostProcess(
        host=socket.gethostname(), boot_id=boot_id(), pid=row.pid, started=float(row.started)
    )


def is_alive(pid: int, started: float) -> bool:
    """Returns whether that very process still runs; a zombie does not."""
    row = read_row(pid)
    return row is not None and not row.ended and row.started == int(started)


def is_process_alive(process: HostProcess) -> bool:
    """Returns whether a process may still run; False only where its death can be proven from
    here."""
    if process.host != socket.gethostname() or process.boot_id != boot_id():
        return True
    return is_alive(process.pid, process.started)


def identify(pid: int) -> ProcessId | None:
    """The process that has this pid now, ended or not."""
    row = read_row(pid)
    return None if row is None else ProcessId(pid=pid, started=row.started)


def spawn(
    argv: tuple[str, ...], environment: Mapping[str, str], *, out: Path, err: Path
) -> ProcessId:
    """Start a program in a session and process group of its own, writing to these files."""
    pid = os.posix_spawn(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, out, _LOG_FLAGS, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, err, _LOG_FLAGS, 0o600),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULT_SIGNALS,
    )
    try:
        child = identify(pid)
    except OSError:  # no file descriptor is left: nobody could watch it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    assert child is not None, "a child keeps its pid until it is reaped"
    return child


def reap(pid: int) -> Exit | None:
    """Returns how our ended child ended; None if somebody else has reaped it."""
    try:
        _, status, used = os.wait4(pid, 0)
    except ChildProcessError:
        return None
    return Exit(
        status=os.waitstatus_to_exitcode(status),
        cpu_seconds=round(used.ru_utime + used.ru_stime, 6),
    )


def open_pidfd(process: ProcessId) -> int | None:
    """A file descriptor that is this very process; None if it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    # Read after opening: from here on the descriptor cannot come to mean another process.
    if identify(process.pid) == process:
        return descriptor
    os.close(descriptor)
    return None


def send_signal(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to this very process, if it is still there and ours."""
    descriptor = open_pidfd(process)
    if descriptor is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(descriptor, number)
    os.close(descriptor)


def watch(process: ProcessId, ended: Callable[[], None]) -> Callable[[], None] | None:
    """Call ``ended`` in the running loop when the process ends.

    The answer stops the watching; None: the process is gone already, ``ended`` is not called.
    """
    descriptor = open_pidfd(process)
    if descriptor is None:
        return None
    loop = asyncio.get_running_loop()

    def stop_watching() -> None:
        if loop.remove_reader(descriptor):
            os.close(descriptor)

    def readable() -> None:
        stop_watching()
        ended()

    loop.add_reader(descriptor, readable)
    return stop_watching


async def all_ended(processes: Iterable[ProcessId], seconds_max: float) -> bool:
    """Wait until every one of these processes has ended; False if the time was too short."""
    everyone_ended = asyncio.Event()
    waiting: dict[ProcessId, Callable[[], None]] = {}

    def ended(process: ProcessId) -> None:
        del waiting[process]
        if not waiting:
            everyone_ended.set()

    for process in processes:
        if stop_watching := watch(process, partial(ended, process)):
            waiting[process] = stop_watching
    try:
        async with asyncio.timeout(seconds_max):
            while waiting:
                await everyone_ended.wait()
    except TimeoutError:
        return False
    finally:
        for stop_watching in waiting.values():
            stop_watching()
    return True


_PR_GET_CHILD_SUBREAPER = 37


def takes_in_orphans() -> bool:
    """Returns whether orphans come to this process."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value) or os.getpid() == 1


def reap_orphans(own_children: Collection[int]) -> int:
    """Reap every ended orphan, but none of ``own_children``; how many there were."""
    own_session = os.getsid(0)
    reaped = 0
    for pid in _children():
        row = read_row(pid)
        if row is None or not row.ended or row.session == own_session or pid in own_children:
            continue
        with suppress(ChildProcessError):
            reaped += os.waitpid(pid, os.WNOHANG)[0] == pid
    return reaped


def _children() -> list[int]:
    """The children of this process: the kernel lists them by the thread that they belong to."""
    pids: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            pids += map(int, (thread / "children").read_text(encoding="ascii").split())
    return pids
