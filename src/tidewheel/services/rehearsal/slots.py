"""The slots of the one worker of a rehearsal: jobs take them in the order of submission."""

from __future__ import annotations

from collections import deque

from tidewheel.services.rehearsal.record import Submission


class Slots:
    """How many jobs may run at once, and who waits."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[Submission] = deque()
        self.freed_by: Submission | None = None

    def ask(self, job: Submission) -> None:
        self._waiting.append(job)

    def give_back(self, job: Submission) -> None:
        self._free += 1
        self.freed_by = job

    def take(self) -> Submission | None:
        """The next job that gets a slot."""
        if not self._waiting or not self._free:
            return None
        self._free -= 1
        return self._waiting.popleft()
