"""Sees to it that jobs which must not outlive their worker die with it, in one of two ways.

Tied jobs
---------
A job's parent-death signal reaches its shell only, so a tied job runs as pid 1 of a pid
namespace: when that process ends, the kernel ends everything in the namespace, daemons
included. bubblewrap does it for every user in about 7 ms; unshare needs root or user
namespaces, and setpriv ties unshare itself to the worker.

Fenced jobs
-----------
A worker that lives ends a fenced job before its lease does; one that was killed cannot. So it
starts a guard, which is this module as a program, one beside each worker. The worker tells it,
through a pipe, the directory of each fenced job before it starts the job, and again when the
job has ended. When the worker is gone, which the kernel tells by the end of the pipe and by a
pidfd (a child that the worker forked may keep the pipe open), the guard kills what runs for
those directories, and ends. The worker may have died while it was starting a job, whose
process cannot be told from the worker's own before it has called exec: so the guard looks a
second time.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidewheel.errors import BadSetting
from tidewheel.runners import processes

_BWRAP = ("bwrap", "--dev-bind", "/", "/")
_BWRAP_TIES = ("--unshare-pid", "--die-with-parent", "--new-session", "--as-pid-1", "--")
_UNSHARE = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child")
_OWN_USER = ("--user", "--map-current-user")

# Best first. A /proc of the namespace's own cannot be mounted inside some containers.
PREFIXES: tuple[tuple[str, ...], ...] = (
    (*_BWRAP, "--proc", "/proc", *_BWRAP_TIES),
    (*_BWRAP, *_BWRAP_TIES),
    (*_UNSHARE, "--mount-proc", "--"),
    (*_UNSHARE, *_OWN_USER, "--mount-proc", "--"),
    (*_UNSHARE, "--"),
    (*_UNSHARE, *_OWN_USER, "--"),
)
_PROBE_SECONDS_MAX = 10.0


def tying_prefix(prefixes: tuple[tuple[str, ...], ...] = PREFIXES) -> tuple[str, ...]:
    """Returns the command that, put before a job's own, makes the job die with its worker.

    Raises BadSetting if none works here.
    """
    for prefix in prefixes:
        program = shutil.which(prefix[0])
        if program is not None and _works((program, *prefix[1:])):
            return (program, *prefix[1:])
    raise BadSetting(
        "tie_jobs",
        True,
        fault=(
            "tie_jobs needs bubblewrap, or unshare and setpriv (util-linux) with user "
            "namespaces, and this machine has neither; install bubblewrap, or start the worker "
            "without tie_jobs: a worker that is started later on this host then takes over its "
            "jobs"
        ),
    )


def _works(prefix: tuple[str, ...]) -> bool:
    """Says whether a prefix works here, by trying it. Containers often forbid namespaces, so
    one that is installed may fail."""
    try:
        probe = subprocess.run(
            (*prefix, "/bin/sh", "-c", "exit 0"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


GUARD = "tidewheel.runners.shell.fence_guard"
_PYTHON = ("PYTHON", "LC_", "LANG")  # all that the interpreter may need
PIPE_BYTES = 4096  # that any pipe holds before anybody reads it


class Fence:
    """Starts a guard with the first fenced job, and a new guard if somebody kills that one."""

    def __init__(self) -> None:
        self._directories: dict[str, None] = {}
        self._guard: subprocess.Popen[bytes] | None = None

    def close_around(self, directory: Path) -> None:
        """Tells the guard of a job before the start, so that the job dies with this process.

        Raises OSError if no guard can be started.
        """
        self._directories[str(directory)] = None
        self._tell(str(directory), fenced=True)

    def open_for(self, directory: Path) -> None:
        """Tells the guard that the job has ended, or never began."""
        if str(directory) not in self._directories:
            return
        del self._directories[str(directory)]
        if self._guard is not None:
            with suppress(OSError):  # no guard can be started now: the next job will try
                self._tell(str(directory), fenced=False)

    def stop(self) -> None:
        """Has the guard kill all fenced jobs that are left, and waits for its end."""
        guard, self._guard = self._guard, None
        if guard is not None:
            _leave(guard)
            guard.wait()

    def _tell(self, directory: str, *, fenced: bool) -> None:
        guard = self._guard
        if guard is None:
            self._start()
        elif not _write(guard, entry(directory, fenced=fenced)):
            self._replace(guard)

    def _start(self) -> None:
        said = b"".join(entry(one, fenced=True) for one in self._directories)
        guard = self._guard = _guard_told(said[:PIPE_BYTES])
        assert guard.stdin is not None
        guard.stdin.write(said[PIPE_BYTES:])  # waits for the guard, if there is so much
        guard.stdin.flush()
        os.set_blocking(guard.stdin.fileno(), False)
        process = processes.identify(guard.pid)
        assert process is not None, "a child keeps its pid until it is reaped"
        if processes.watch(process, lambda: self._replace(guard)) is None:
            raise OSError("the process that guards fenced jobs ended at once")

    def _replace(self, guard: subprocess.Popen[bytes]) -> None:
        """Replaces a guard that was killed or does not read; the jobs need one at once."""
        if self._guard is not guard:
            return
        self._guard = None
        guard.kill()
        _leave(guard)
        guard.wait()
        if self._directories:
            self._start()


def _guard_told(said: bytes) -> subprocess.Popen[bytes]:
    """Starts a guard with this text in its pipe, which it reads even if this process dies at
    once."""
    reading, writing = os.pipe()
    telling = os.fdopen(writing, "wb")
    try:
        telling.write(said)
        telling.flush()
        guard = subprocess.Popen(
            (sys.executable, "-m", GUARD, str(os.getpid())),
            # Jobs can read its environment, which must not have what the worker's may have.
            env={name: value for name, value in os.environ.items() if name.startswith(_PYTHON)},
            stdin=reading,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a signal for the worker's group is not meant for it
        )
    except BaseException:
        telling.close()
        raise
    finally:
        os.close(reading)
    guard.stdin = telling
    return guard


def _write(guard: subprocess.Popen[bytes], said: bytes) -> bool:
    assert guard.stdin is not None
    try:
        return os.write(guard.stdin.fileno(), said) == len(said)
    except OSError:  # its end, or a pipe that is full
        return False


def _leave(guard: subprocess.Popen[bytes]) -> None:
    assert guard.stdin is not None
    with suppress(OSError):  # what it could not be told any more
        guard.stdin.close()


READ_BYTES_MAX = 65_536
SECOND_LOOK_SECONDS = 0.1


def entry(directory: str, *, fenced: bool) -> bytes:
    """Returns the line by which a worker tells the guard whether a job is fenced."""
    return json.dumps([directory, fenced]).encode() + b"\n"


class Fenced:
    """Holds the directories whose jobs must not outlive the worker."""

    def __init__(self) -> None:
        self.directories: set[str] = set()
        self._begun = b""

    def hear(self, said: bytes) -> None:
        """Takes in lines that the worker wrote; one that is not complete waits for its rest."""
        *lines, self._begun = (self._begun + said).split(b"\n")
        for line in lines:
            directory, fenced = json.loads(line)
            if fenced:
                self.directories.add(directory)
            else:
                self.directories.discard(directory)

    def trees(self, table: processes.ProcessTable) -> list[processes.ProcessTree]:
        """Returns the processes of the jobs in these directories that still run, job by job.

        A job's oldest process is taken for the leader of its session.
        """
        wanted = {os.fsencode(directory): directory for directory in self.directories}
        leaders: dict[str, processes.ProcessId] = {}
        for row in sorted(table.rows.values(), key=lambda row: (row.started, row.pid)):
            directory = wanted.get(
                table.environment(row.pid).get(processes.MARKER.encode(), b"")
            )
            if directory is not None and not row.ended:
                leaders.setdefault(
                    directory, processes.ProcessId(pid=row.pid, started=row.started)
                )
        return [
            processes.ProcessTree(leader=leader, directory=directory)
            for directory, leader in leaders.items()
        ]


def listen(worker: int, on_words: Callable[[bytes], None]) -> None:
    """Passes on what the worker writes to the pipe, until the worker is gone."""
    os.set_blocking(0, False)
    try:
        pidfd = os.pidfd_open(worker)
    except ProcessLookupError:
        pidfd = -1
    gone = pidfd < 0 or os.getppid() != worker
    while not gone:
        ready, _, _ = select.select((0, pidfd), (), ())
        gone = pidfd in ready or not _pass_on(on_words)
    while _pass_on(on_words):  # what it said last
        pass


def _pass_on(on_words: Callable[[bytes], None]) -> bool:
    """Passes on what the pipe holds; returns False at its end and while it is empty."""
    try:
        said = os.read(0, READ_BYTES_MAX)
    except BlockingIOError:
        return False
    on_words(said)
    return bool(said)


async def end_all(fenced: Fenced) -> None:
    """Kills every fenced job that is left.

    This is done a second time, for a job that was just being started.
    """
    for pause_seconds in (SECOND_LOOK_SECONDS, 0.0):
        for tree in fenced.trees(processes.read_table()):
            await processes.kill(tree)
        await asyncio.sleep(pause_seconds)


def main() -> None:
    """Listens until the worker is gone, whatever signals come, then ends the fenced jobs."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    fenced = Fenced()
    listen(int(sys.argv[1]), fenced.hear)
    if fenced.directories:
        asyncio.run(end_all(fenced))


if __name__ == "__main__":
    main()
