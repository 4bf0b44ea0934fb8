"""What one worker has in hands: attempts, the room they take, the leases they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.runs.job_names import RUN_DIRECTORY, read_job_name
from tidewheel.core.tasks.requests import Claimed
from tidewheel.core.tasks.task import WorkerId
from tidewheel.ports import Assignment
from tidewheel.services.attempts import Attempt, AttemptKey, Listener
from tidewheel.services.heartbeats import LeaseBook
from tidewheel.services.room import Room


@dataclass(frozen=True, slots=True)
class JobFolders:
    """Where the files of attempts are."""

    tasks: Path  # <home>/tasks/<store>
    runs: Path  # <home>/runs

    def directory(self, task: Claimed) -> Path:
        """Of this attempt alone."""
        if task.run is None:
            return self.tasks / f"{task.seq}/{task.attempt}"
        name = read_job_name(task.id)
        return self.runs / name.run / name.log_folder(task.attempt)

    def environment(self, task: Claimed) -> dict[str, str]:
        """What a job is told about where it is."""
        if task.run is None:
            return {}
        return {RUN_DIRECTORY: str(self.runs / read_job_name(task.id).run)}


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
