"""One attempt in Slurm's hands: what is known of it, and how it is ended."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidewheel.core.queue.steps import End
from tidewheel.ports.runners import Assignment
from tidewheel.runners.job_directory import JobDirectory
from tidewheel.runners.processes import Exit
from tidewheel.runners.shell_ends import exit_status_of, killed
from tidewheel.runners.slurm.programs import SlurmRow, SlurmUsage
from tidewheel.runners.slurm.record import SlurmRecord
from tidewheel.runners.slurm.reports import SlurmReports

NAME_LENGTH_MAX = 200
REPEAT_SECONDS = 5.0  # a job that does not end is killed again, should Slurm not have heard it
KILLED = -signal.SIGKILL
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.:/+@-]")


class Stopping(Protocol):
    """How a job is asked to end; neither waits until it has."""

    async def terminate(self, job: SlurmJob) -> None: ...
    async def kill(self, job: SlurmJob) -> None: ...


@dataclass(slots=True, kw_only=True, eq=False)
class SlurmJob:
    """The port ``Job``. Its watch looks after it until ``end`` is set."""

    assignment: Assignment
    reports: SlurmReports
    record: SlurmRecord
    stopping: Stopping
    submitted_at: float = field(default_factory=time.monotonic)
    row: SlurmRow | None = None  # as Slurm showed it last
    unclear_since: float | None = None  # over, as it seems, but its last word is missing
    waits: str = ""  # why it stays in Slurm's queue, as was told last
    spool_bytes: int = 0
    usage: SlurmUsage | None = None
    usage_at: float = 0.0
    stop_asked: bool = False
    killed_after_seconds: float | None = None
    over: asyncio.Future[End] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def files(self) -> JobDirectory:
        return JobDirectory(self.assignment.directory)

    @property
    def directory(self) -> Path:
        return self.assignment.directory

    async def wait(self) -> End:
        """How it ended."""
        return await asyncio.shield(self.over)

    async def stop(self, grace_seconds: float) -> None:
        """SIGTERM for all of its processes, the grace, then SIGKILL until it is over."""
        self.stop_asked = True
        if await self._asked_within(self.stopping.terminate, grace_seconds):
            return
        self.killed_after_seconds = grace_seconds
        while not await self._asked_within(self.stopping.kill, REPEAT_SECONDS):
            pass

    async def _asked_within(
        self, ask: Callable[[SlurmJob], Awaitable[None]], seconds: float
    ) -> bool:
        """Ask it to end, and wait; whether it is over."""
        asking = asyncio.ensure_future(ask(self))
        done, _ = await asyncio.wait((self.over,), timeout=max(0.0, seconds))
        if done:
            asking.cancel()
        else:
            await asyncio.wait((asking,))
        return self.over.done()

    def seen_end(self, end: End, exit_status: int | None) -> End:
        """The end to tell: of a job that we had to kill, its exit status means nothing."""
        if self.killed_after_seconds is None:
            return end
        if exit_status is None or exit_status_of(Exit(status=exit_status)) == KILLED:
            return killed(self.killed_after_seconds)
        return end


def job_name(assignment: Assignment, key: str) -> str:
    """What Slurm's lists show: for people the task and attempt, for us the key."""
    task = assignment.task
    shown = _UNUSUAL.sub("_", f"{task.name or task.id}")[:NAME_LENGTH_MAX]
    return f"{shown}.{task.attempt}.{key}"


def key_of(name: str) -> str:
    """The key in a name that ``job_name`` made; of another name, something that is no key."""
    return name.rpartition(".")[2]
