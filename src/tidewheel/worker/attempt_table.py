"""Holds the attempts of one worker, the capacity they take, and the leases they have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.operator.definition import RUN_DIRECTORY, read_job_name
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.steps import End
from tidewheel.core.queue.task import WorkerId
from tidewheel.ports.runners import Assignment
from tidewheel.services.paths import (
    attempt_directory,
    run_directory,
    submission_directory,
)
from tidewheel.services.service import Surroundings
from tidewheel.services.wakeup import Wakeup
from tidewheel.worker.attempts import Attempt, AttemptKey, JobEvents
from tidewheel.worker.capacity import Capacity
from tidewheel.worker.heartbeats import LeaseBook

Supply = Callable[[Claimed, Path], Awaitable[None]]  # a job of a run, and the run's folder

TellJob = Callable[[Claimed], dict[str, str]]  # what a job finds in its environment


@dataclass(frozen=True, slots=True)
class JobFolders:
    """Knows where the files of attempts are, and what has to be brought there or told."""

    home: Path
    tasks: Path  # below it, of the worker's store
    supply: Supply | None = None
    tell_job: TellJob | None = None

    def directory(self, task: Claimed) -> Path:
        """Returns the folder of this attempt alone."""
        if task.run is None:
            return attempt_directory(self.tasks, task.seq, task.attempt)
        return submission_directory(self.home, read_job_name(task.id), task.attempt)

    def environment(self, task: Claimed) -> dict[str, str]:
        """Returns what a job is told about where it is."""
        told = {} if self.tell_job is None else self.tell_job(task)
        if task.run is not None:
            told[RUN_DIRECTORY] = str(self.run_directory(task))
        return told

    async def prepare(self, task: Claimed) -> None:
        """Brings the files of its run here before its job starts."""
        if self.supply is not None and task.run is not None:
            await self.supply(task, self.run_directory(task))

    def run_directory(self, task: Claimed) -> Path:
        """Returns the folder of the run that a task belongs to."""
        return run_directory(self.home, read_job_name(task.id).run)


class AttemptTable:
    """An attempt takes its capacity until the store has accepted its end."""

    def __init__(
        self,
        worker: WorkerId,
        folders: JobFolders,
        new_secret: Callable[[], str],
        capacity: Capacity,
        surroundings: Surroundings,
        over: Wakeup,
    ) -> None:
        self.worker = worker
        self.capacity = capacity
        self.clock = surroundings.clock
        self.book = LeaseBook(self.clock)
        self.events = JobEvents(self.clock)
        self._failpoint = surroundings.failpoint
        self._folders = folders
        self._new_secret = new_secret
        self._over = over  # rung whenever attempts are over
        self._attempts: dict[AttemptKey, Attempt] = {}

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._attempts

    def attempt(self, task: Claimed, asked_at: float) -> Attempt:
        """An attempt whose lease was asked for at that time of the local clock."""
        return Attempt(task, self.worker, self.events, self.book.hear_progress, asked_at)

    def assignment(self, task: Claimed) -> Assignment:
        return Assignment(
            task=task,
            worker=self.worker,
            directory=self.directory(task),
            secret=self._new_secret(),
            store=self._folders.tasks.name,
            environment=self._folders.environment(task),
        )

    def directory(self, task: Claimed) -> Path:
        """Returns the folder of this attempt alone."""
        return self._folders.directory(task)

    async def prepare(self, task: Claimed) -> None:
        """See to it that a job of a run finds the files of its definition."""
        await self._folders.prepare(task)

    def take(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._attempts[attempt.key] = attempt
            self.capacity.take(attempt.task.resources)
        self.book.hold(attempts)

    def report_end(self, attempt: Attempt, end: End | None) -> None:
        """Hands the end to the reporter; None: the lease is not ours, so nobody is told."""
        self._failpoint("job_exited_before_report")
        if end is not None:
            self.events.put(attempt, end)
        else:
            attempt.spoke_last = True
            self.let_go([attempt])

    def let_go(self, attempts: Sequence[Attempt]) -> None:
        """Frees what these had, tells the claimers of the machine, and wakes the worker."""
        for attempt in attempts:
            del self._attempts[attempt.key]
            self.capacity.give_back(attempt.task.resources)
        self.book.strike_out(attempts)
        self.capacity.machine.tell_freed([attempt.task.resources for attempt in attempts])
        self._over.ring()
