"""What one worker has in hands: attempts, the room they take, the leases they have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.operator.names import RUN_DIRECTORY, read_job_name
from tidewheel.core.queue.requests import Claimed
from tidewheel.core.queue.task import WorkerId
from tidewheel.ports.runners import Assignment
from tidewheel.services.paths import (
    attempt_directory,
    run_directory,
    submission_directory,
)
from tidewheel.worker.attempts import Attempt, AttemptKey, Listener
from tidewheel.worker.capacity import Room
from tidewheel.worker.heartbeats import LeaseBook

Supply = Callable[[Claimed, Path], Awaitable[None]]  # a job of a run, and the run's folder

TellJob = Callable[[Claimed], dict[str, str]]  # what a job finds in its environment


@dataclass(frozen=True, slots=True)
class JobFolders:
    """Where the files of attempts are, and what has to be brought there or told."""

    home: Path
    tasks: Path  # below it, of the worker's store
    supply: Supply | None = None
    tell_job: TellJob | None = None

    def directory(self, task: Claimed) -> Path:
        """Of this attempt alone."""
        if task.run is None:
            return attempt_directory(self.tasks, task.seq, task.attempt)
        return submission_directory(self.home, read_job_name(task.id), task.attempt)

    def environment(self, task: Claimed) -> dict[str, str]:
        """What a job is told about where it is."""
        told = {} if self.tell_job is None else self.tell_job(task)
        if task.run is not None:
            told[RUN_DIRECTORY] = str(self.run_directory(task))
        return told

    async def prepare(self, task: Claimed) -> None:
        """Before its job starts."""
        if self.supply is not None and task.run is not None:
            await self.supply(task, self.run_directory(task))

    def run_directory(self, task: Claimed) -> Path:
        """Of the run that a task belongs to."""
        return run_directory(self.home, read_job_name(task.id).run)


class Workplace:
    """An attempt takes its room until the store has accepted its end."""

    def __init__(
        self,
        worker: WorkerId,
        folders: JobFolders,
        new_secret: Callable[[], str],
        room: Room,
        listener: Listener,
    ) -> None:
        self.worker = worker
        self.room = room
        self.book = LeaseBook()
        self._folders = folders
        self._new_secret = new_secret
        self._listener = listener
        self._attempts: dict[AttemptKey, Attempt] = {}

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._attempts

    def attempt(self, task: Claimed, asked_at: float) -> Attempt:
        """An attempt whose lease was asked for at that time of the local clock."""
        return Attempt(task, self.worker, self._listener, self.book.hear_progress, asked_at)

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
        """Of this attempt alone."""
        return self._folders.directory(task)

    async def prepare(self, task: Claimed) -> None:
        """See to it that a job of a run finds the files of its definition."""
        await self._folders.prepare(task)

    def take(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._attempts[attempt.key] = attempt
            self.room.take(attempt.task.resources)
        self.book.hold(attempts)

    def let_go(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            del self._attempts[attempt.key]
            self.room.give_back(attempt.task.resources)
        self.book.release(attempts)
