"""Ends fenced jobs when their worker dies: a program of its own, one beside each worker.

Theory of operation
-------------------
A worker that lives ends a fenced job before its lease does; one that was killed cannot. So it
tells this program, through a pipe, the directory of each fenced job before it starts the job,
and again when the job has ended. When the worker is gone, which the kernel tells by the end of
the pipe and by a pidfd (a child that the worker forked may keep the pipe open), whatever runs
for those directories is killed, and this program ends.

The worker may have died while it was starting a job, which cannot be told from others before
it is itself: so there is a second look.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import Callable

from tidewheel.runners.process_table import ProcessTable, read_table
from tidewheel.runners.process_tree import MARKER, ProcessTree, kill
from tidewheel.runners.processes import ProcessId

READ_BYTES_MAX = 65_536
SECOND_LOOK_SECONDS = 0.1


def entry(directory: str, *, fenced: bool) -> bytes:
    """What a worker says about one job."""
    return json.dumps([directory, fenced]).encode() + b"\n"


class Fenced:
    """The directories whose jobs must not outlive the worker."""

    def __init__(self) -> None:
        self.directories: set[str] = set()
        self._begun = b""

    def hear(self, said: bytes) -> None:
        """Whole lines count; the rest of one comes later."""
        *lines, self._begun = (self._begun + said).split(b"\n")
        for line in lines:
            directory, fenced = json.loads(line)
            if fenced:
                self.directories.add(directory)
            else:
                self.directories.discard(directory)

    def trees(self, table: ProcessTable) -> list[ProcessTree]:
        """What runs for them; the oldest process of a job leads its session."""
        wanted = {os.fsencode(directory): directory for directory in self.directories}
        leaders: dict[str, ProcessId] = {}
        for row in sorted(table.rows.values(), key=lambda row: (row.started, row.pid)):
            directory = wanted.get(table.environment(row.pid).get(MARKER.encode(), b""))
            if directory is not None and not row.ended:
                leaders.setdefault(directory, ProcessId(pid=row.pid, started=row.started))
        return [
            ProcessTree(leader=leader, directory=directory)
            for directory, leader in leaders.items()
        ]


def listen(worker: int, on_words: Callable[[bytes], None]) -> None:
    """Pass on what the worker says until it is gone."""
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
    """Whether the pipe held something: not at its end, nor while it is empty."""
    try:
        said = os.read(0, READ_BYTES_MAX)
    except BlockingIOError:
        return False
    on_words(said)
    return bool(said)


async def end_all(fenced: Fenced) -> None:
    """Kill every fenced job that is left."""
    for tree in fenced.trees(read_table()):
        await kill(tree)


async def _end_all_twice(fenced: Fenced) -> None:
    await end_all(fenced)
    await asyncio.sleep(SECOND_LOOK_SECONDS)
    await end_all(fenced)


def main() -> None:
    """Until the worker is gone, whatever else this process is asked."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    fenced = Fenced()
    listen(int(sys.argv[1]), fenced.hear)
    if fenced.directories:
        asyncio.run(_end_all_twice(fenced))


if __name__ == "__main__":
    main()
