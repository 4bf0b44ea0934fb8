"""Starts, watches and ends processes of this machine, one by one or a job's whole tree.

Theory of operation
-------------------
``posix_spawn`` starts a process without copying this one, twice as fast as asyncio's own way.
A pidfd becomes readable when its process ends, for our children and for others alike, so a
descriptor per job replaces SIGCHLD, polling and threads. A pid alone names nothing: it is
used again. A pid with the kernel's start time, on one boot and in one pid namespace, names
one process for ever.

A process that becomes a subreaper is the new parent of every orphan below it, and must reap
them or its machine runs out of pids; so must pid 1. It cannot tell an orphan from a child that
other code in the same process started and waits for, except by the session: jobs have sessions
of their own. So only a process that starts nothing else with a new session may become a
subreaper.

One reading of /proc serves every job of a worker: asking for the children of each job by
itself would walk /proc once per job.

A job is the leader of a session. What it starts is found by four traces, each of which
survives something that the others do not: being below the leader (lost when a parent ends),
its process group (lost by setpgid), its session (lost by setsid, so by every daemon), and
the attempt's directory in the environment (lost only by a program that clears it). A process
that loses all four at once escapes here; from the pid namespaces of ``tie_jobs`` none escapes.

Signals go to a (pid, start time) through a pidfd and so never to a stranger.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from weakref import WeakKeyDictionary

from tidewheel.core.queue.requests import HostProcess
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.runners.sanitize import printable

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
STAT_BYTES_MAX = 4096  # of one process, in /proc
STARTED_FIELD = 19  # behind its name
ENDED_STATES = frozenset("ZXx")  # a zombie has ended: only its number is still taken

# A process may go away between two reads, and another user's may be hidden from us.
_NOT_READABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


class ProcessRow(NamedTuple):
    """Holds what /proc shows of one process.

    ``started`` (ticks since boot) tells it from a later one with the same pid.
    """

    pid: int
    state: str
    parent: int
    group: int
    session: int
    cpu_seconds: float  # its own and that of the children it has waited for
    started: int
    memory_bytes: int

    @property
    def ended(self) -> bool:
        """Says whether nothing of the process runs any more."""
        return self.state in ENDED_STATES


def read_row(pid: int) -> ProcessRow | None:
    """Returns what /proc shows of the process with this pid; None if it is gone or hidden."""
    text = _read_stat(pid)
    return None if text is None else parse_row(pid, text)


def _read_stat(pid: int) -> bytes | None:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, STAT_BYTES_MAX)
        finally:
            os.close(descriptor)
    except _NOT_READABLE:
        return None


def _stat_fields(stat: bytes) -> list[bytes]:
    """Returns the fields behind the name of a process, which may hold brackets and blanks."""
    return stat[stat.rindex(b")") + 2 :].split()


def parse_row(pid: int, stat: bytes) -> ProcessRow:
    """Returns what a line of ``/proc/PID/stat`` says."""
    fields = _stat_fields(stat)
    return ProcessRow(
        pid=pid,
        state=chr(fields[0][0]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        cpu_seconds=sum(map(int, fields[11:15])) / TICKS_PER_SECOND,
        started=int(fields[STARTED_FIELD]),
        memory_bytes=int(fields[21]) * PAGE_BYTES,
    )


class ProcessTable:
    """Holds every process that could be seen at one moment."""

    def __init__(self, rows: Mapping[int, ProcessRow]) -> None:
        self.rows = rows
        self._environments: dict[int, dict[bytes, bytes]] = {}

    @cached_property
    def children(self) -> Mapping[int, list[int]]:
        """Returns the pids of the children of each pid."""
        children = defaultdict(list)
        for row in self.rows.values():
            children[row.parent].append(row.pid)
        return children

    def environment(self, pid: int) -> Mapping[bytes, bytes]:
        """Returns the environment of a process, which is read once for all callers."""
        if pid not in self._environments:
            self._environments[pid] = read_environment(pid)
        return self._environments[pid]

    def with_descendants(self, roots: Iterable[int]) -> set[int]:
        """Returns those roots that are in the table, and all of their descendants."""
        found: set[int] = set()
        open_pids = [pid for pid in roots if pid in self.rows]
        while open_pids:
            pid = open_pids.pop()
            if pid not in found:
                found.add(pid)
                open_pids += self.children.get(pid, ())
        return found


def read_table() -> ProcessTable:
    """Returns the processes that run at this moment."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return ProcessTable({pid: row for pid in pids if (row := read_row(pid)) is not None})


def read_environment(pid: int) -> dict[bytes, bytes]:
    """Returns the environment that a process was started with.

    It is empty for a zombie and for a process of another user.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            entries = environ.read().split(b"\0")
    except _NOT_READABLE:
        return {}
    pairs = (entry.partition(b"=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


_COMMAND_LENGTH_MAX = 80


def listener_on(port: int) -> str:
    """Names the process that listens on a port, as in `process 4711 (python tidewheel up)`.

    The answer is empty if that process belongs to another user, or is gone.
    """
    import psutil  # noqa: PLC0415 - only a server whose port is taken asks

    found = [one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    for pid in sorted(one.pid for one in found if one.pid and one.laddr[1:] == (port,)):
        with suppress(psutil.Error):
            command = " ".join(psutil.Process(pid).cmdline())
            return f"process {pid} ({printable(command)[:_COMMAND_LENGTH_MAX]})"
    return ""


# Python ignores SIGPIPE and SIGXFSZ, and nohup SIGHUP; a job must not inherit that.
_DEFAULT_SIGNALS = tuple(
    signal.Signals[f"SIG{name}"]
    for name in ["HUP", "INT", "QUIT", "PIPE", "TERM", "USR1", "USR2", "XFSZ"]
)
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """Names a process of this boot, which cannot be mistaken for a later one."""

    pid: int
    started: int  # ticks since boot

    @property
    def process(self) -> ProcessId:
        return self


_NEVER = -1  # no process started then


class Child:
    """Holds a process that was started here, and a pidfd that stands for it.

    Until it is reaped its number is its own, so when it started is read if somebody asks for
    it, which of most jobs nobody does; afterwards it is no process. For any thread.
    """

    __slots__ = ("_is_reaped", "_lock", "_process", "descriptor", "pid")

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid, self.descriptor = pid, descriptor
        self._lock = threading.Lock()  # so that nobody reaps it while it is looked at
        self._process: ProcessId | None = None
        self._is_reaped = False

    @property
    def process(self) -> ProcessId:
        """Names the process; if it was reaped before anybody asked, none has this name."""
        with self._lock:
            if self._process is None:
                found = None if self._is_reaped else identify(self.pid)
                try:  # read before: code of others in this process may have reaped it
                    if found is not None:
                        signal.pidfd_send_signal(self.descriptor, 0)
                except OSError:
                    found = None
                self._process = found or ProcessId(pid=self.pid, started=_NEVER)
            return self._process

    def reap(self) -> Exit | None:
        """Reaps it, now that it has ended, as ``reap`` does."""
        with self._lock:
            self._is_reaped = True
            return reap(self.pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """Says how a process ended: an exit status of 0 or more, or minus the signal."""

    status: int
    cpu_seconds: float | None = None


def boot_id() -> str:
    """Names the boot of the kernel and the pid namespace in which our pids mean something.

    Containers share the kernel's boot id; without the namespace a worker in one container
    would take the absence of a pid for the death of a process in another.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def this_process() -> HostProcess:
    """Returns the identity of this process, by which others know it now and after its death."""
    row = read_row(os.getpid())
    assert row is not None, "a process can read its own row in /proc"
    return HostProcess(
        host=socket.gethostname(), boot_id=boot_id(), pid=row.pid, started=float(row.started)
    )


def is_alive(pid: int, started: float) -> bool:
    """Says whether the process with this pid and start time still runs; a zombie does not."""
    row = read_row(pid)
    return row is not None and not row.ended and row.started == int(started)


def is_process_alive(process: HostProcess) -> bool:
    """Says whether a process may still run: False only if its death can be proven from here."""
    try:
        if process.host != socket.gethostname() or process.boot_id != boot_id():
            return True
        return is_alive(process.pid, process.started)
    except OSError:  # no file descriptor is left to look with, and that proves nothing
        return True


def identify(pid: int) -> ProcessId | None:
    """Returns the identity of the process, ended or not, with this pid; None if none has it."""
    stat = _read_stat(pid)
    if stat is None:
        return None
    return ProcessId(pid=pid, started=int(_stat_fields(stat)[STARTED_FIELD]))


def spawn(
    argv: tuple[str, ...], environment: Mapping[str, str], *, out: str, err: str
) -> Child:
    """Starts a program in a session and process group of its own.

    Its output goes to the files ``out`` and ``err``.
    """
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
        return Child(pid, os.pidfd_open(pid))
    except OSError:  # no file descriptor is left: nobody could watch it
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def reap(pid: int) -> Exit | None:
    """Reaps our ended child and returns how it ended; None if somebody else has reaped it."""
    try:
        _, status, used = os.wait4(pid, 0)
    except ChildProcessError:
        return None
    return Exit(
        status=os.waitstatus_to_exitcode(status),
        cpu_seconds=round(used.ru_utime + used.ru_stime, 6),
    )


def open_pidfd(process: ProcessId) -> int | None:
    """Opens a file descriptor that stands for this very process; None if that is gone."""
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
    """Sends a signal to this very process, if it is still there and ours."""
    descriptor = open_pidfd(process)
    if descriptor is None:
        return
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(descriptor, number)
    os.close(descriptor)


def watch(process: ProcessId, ended: Callable[[], None]) -> Callable[[], None] | None:
    """Has ``ended`` called in the running loop when the process ends.

    Returns a function that stops the watching, or None if the process is gone already; then
    ``ended`` is not called.
    """
    descriptor = open_pidfd(process)
    return None if descriptor is None else watch_descriptor(descriptor, ended)


def watch_descriptor(descriptor: int, ended: Callable[[], None]) -> Callable[[], None]:
    """Has ``ended`` called when the process ends that a pidfd stands for, and closes that."""
    loop = asyncio.get_running_loop()
    watched = _watched.get(loop)
    try:
        if watched is None:
            watched = _watched[loop] = WatchedProcesses(loop)
        watched.add(descriptor, ended)
    except OSError:
        os.close(descriptor)
        raise
    return partial(watched.remove, descriptor)


class WatchedProcesses:
    """Holds the pidfds that one event loop waits for, in a descriptor that the loop reads.

    A reader of the loop for each of them would cost ten times as much as its place here.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._epoll = select.epoll()
        self._ended: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._epoll, self._hear)

    def add(self, descriptor: int, ended: Callable[[], None]) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)
        self._ended[descriptor] = ended

    def remove(self, descriptor: int) -> None:
        """Stops watching, and closes the pidfd; nothing more is heard of it."""
        if self._ended.pop(descriptor, None) is not None:
            # Before it is closed: what another process has a copy of stays in the set.
            self._epoll.unregister(descriptor)
            os.close(descriptor)

    def _hear(self) -> None:
        """Tells of those that have ended. If one of the told fails, the others stay ready."""
        for descriptor, _ in self._epoll.poll(0):
            ended = self._ended.get(descriptor)
            if ended is not None:  # else it was removed by one before it
                self.remove(descriptor)
                ended()


_watched: WeakKeyDictionary[asyncio.AbstractEventLoop, WatchedProcesses] = WeakKeyDictionary()


WATCHED_MAX = 64  # at once: a job with many processes must not take all file descriptors


async def all_ended(processes: Iterable[ProcessId], seconds_max: float) -> bool:
    """Waits until all of these processes have ended; returns False if that takes too long."""
    left = list(processes)
    try:
        async with asyncio.timeout(seconds_max):
            while left:
                await _few_ended(left[:WATCHED_MAX])
                del left[:WATCHED_MAX]
    except TimeoutError:
        return False
    return True


async def _few_ended(processes: Iterable[ProcessId]) -> None:
    everyone_ended = asyncio.Event()
    waiting: dict[ProcessId, Callable[[], None]] = {}

    def ended(process: ProcessId) -> None:
        del waiting[process]
        if not waiting:
            everyone_ended.set()

    try:
        for process in processes:
            if stop_watching := watch(process, partial(ended, process)):
                waiting[process] = stop_watching
        while waiting:
            await everyone_ended.wait()
    except OSError:  # no file descriptor is left: nobody can tell before the time is over
        await asyncio.Event().wait()
    finally:
        for stop_watching in waiting.values():
            stop_watching()


_PR_GET_CHILD_SUBREAPER = 37


def takes_in_orphans() -> bool:
    """Says whether this process becomes the parent of orphans below it."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value) or os.getpid() == 1


def reap_orphans(own_children: Collection[int]) -> int:
    """Reaps every ended orphan, but none of ``own_children``; returns how many it reaped."""
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
    """Returns the pids of this process's children, which the kernel lists thread by thread."""
    pids: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            pids += map(int, (thread / "children").read_text(encoding="ascii").split())
    return pids


MARKER = "TIDEWHEEL_JOB_DIR"
KILL_ROUNDS_MAX = 4  # a tree that forks while it is killed needs more than one
KILL_ROUND_SECONDS_MAX = 0.5  # four of them: gone within 2 s after the grace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTree:
    """Holds the traces by which the processes of one job are found."""

    leader: ProcessId | Child
    directory: str  # the value of MARKER in the environment of this job alone
    spare_leader: bool = False  # it keeps the job in a namespace and must outlive a SIGTERM

    def members(self, table: ProcessTable) -> list[ProcessId]:
        """Returns every process of the job that has not ended."""
        pids = table.with_descendants(self._roots(table))
        rows = (table.rows[pid] for pid in pids)
        return [
            ProcessId(pid=row.pid, started=row.started)
            for row in rows
            if not row.ended and row.pid != os.getpid()
        ]

    def _roots(self, table: ProcessTable) -> list[int]:
        leader = self.leader.process
        first = table.rows.get(leader.pid)
        # Without its leader the numbers of group and session may be another's by now.
        leads = first is not None and first.started == leader.started
        directory = os.fsencode(self.directory)
        return [
            row.pid
            for row in table.rows.values()
            # Nothing of the job is older than its leader: most processes are told apart here,
            # before their environment is read.
            if row.started >= leader.started
            and (
                (leads and leader.pid in (row.pid, row.group, row.session))
                or table.environment(row.pid).get(MARKER.encode()) == directory
            )
        ]


async def terminate(tree: ProcessTree) -> list[ProcessId]:
    """Sends SIGTERM to every process of the tree, except for a leader that is to be spared.

    Returns all processes of the tree, such a leader among them.
    """
    members = await read_members(tree)
    asked = [one for one in members if not (tree.spare_leader and one == tree.leader.process)]
    if not tree.spare_leader:
        _signal_group(tree, signal.SIGTERM)
        members_outside = [one for one in asked if not _is_in_group(one, tree.leader.pid)]
    else:
        members_outside = asked
    _send(members_outside, signal.SIGTERM)
    # A stopped process sees the SIGTERM only when it goes on.
    _send(asked, signal.SIGCONT)
    return members


async def kill(tree: ProcessTree) -> bool:
    """Kills every process of the tree; returns False if some did not end even by SIGKILL."""
    for _ in range(KILL_ROUNDS_MAX):
        members = await read_members(tree)
        if not members:
            return True
        _signal_group(tree, signal.SIGKILL)
        _send(members, signal.SIGKILL)
        await all_ended(members, KILL_ROUND_SECONDS_MAX)
    return not await read_members(tree)


async def read_members(tree: ProcessTree) -> list[ProcessId]:
    """Reads the tree's processes in a thread, as /proc takes milliseconds on a full machine."""
    return await asyncio.to_thread(lambda: tree.members(read_table()))


def _signal_group(tree: ProcessTree, number: signal.Signals) -> None:
    """Signals the whole group in one call, so that no process slips through by forking."""
    if is_alive(tree.leader.pid, tree.leader.process.started):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(tree.leader.pid, number)


def _is_in_group(process: ProcessId, group: int) -> bool:
    with suppress(ProcessLookupError):
        return os.getpgid(process.pid) == group
    return False


def _send(processes: Iterable[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        send_signal(process, number)
