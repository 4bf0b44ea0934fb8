"""The queues behind a worker's patterns: which of them may have tasks, and whose turn it is.

A queue is known because somebody woke the worker for it, or because it was there when the store
was last asked, which is done once in each poll. It is forgotten when a claim comes back short.
So a claim is made only where there may be something, and nothing depends on how many queues
there have ever been.

The tasks of a run have one priority, so that of runs is one among their queues: those of the
highest are served before all others, those of the same in turns. Where it is not known, and
there is more than one, the store is asked first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from tidewheel.core.queue.access import RUN_QUEUE, Served, matches
from tidewheel.core.queue.task import PRIORITY_DEFAULT

REMEMBERED_MAX = 10_000  # priorities of queues


class OpenQueues:
    """Used by a worker's loop, except for what says otherwise."""

    def __init__(self, served: Served, look_seconds: float) -> None:
        self._served = served
        self._look_seconds = look_seconds
        self._look_at = float("-inf")
        self._heard: deque[str] = deque()  # append and popleft are atomic
        self._open: dict[str, set[str]] = {pattern: set() for pattern in served.patterns}
        self._served_last: dict[str, str] = {}
        self._priorities: dict[str, int] = {}  # of queues of runs

    def hear(self, queues: Iterable[str]) -> None:
        """There may be tasks in these; from any thread."""
        if self._open:
            self._heard.extend(queues)

    def look_anew(self) -> None:
        """Something changed, and nobody can say what; from any thread."""
        self._look_at = float("-inf")

    def must_look(self, now: float) -> bool:
        """Whether the store is to be asked now, as it is from time to time."""
        if not self._open or (now < self._look_at and not self._has_unknown()):
            return False
        # Before it is asked: what changes meanwhile must be asked for again.
        self._look_at = now + self._look_seconds
        return True

    def found(self, queues: Mapping[str, int]) -> None:
        """What the store answered: queues, each with its highest priority."""
        if len(self._priorities) > REMEMBERED_MAX:
            self._priorities.clear()
        for queue, priority in queues.items():
            self._sort_in(queue)
            if queue.startswith(RUN_QUEUE):
                self._priorities[queue] = priority
        for unknown in self._unknown():  # another was faster: it has nothing now
            self._priorities[unknown] = PRIORITY_DEFAULT

    def turns(self, pattern: str) -> list[str]:
        """Those of the highest priority that may have tasks, beginning behind the one that was
        served last."""
        self._hear_all()
        there = self._open[pattern]
        highest = max(map(self._priority, there), default=0)
        waiting = sorted(queue for queue in there if self._priority(queue) == highest)
        last = self._served_last.get(pattern)
        if last is None:
            return waiting
        behind = [queue for queue in waiting if queue > last]
        return behind + waiting[: len(waiting) - len(behind)]

    def note_served(self, pattern: str, queue: str) -> None:
        """It gave all that was asked of it; the others are next."""
        self._served_last[pattern] = queue

    def note_empty(self, pattern: str, queue: str) -> None:
        """It gave less than was asked of it."""
        self._open[pattern].discard(queue)

    def _priority(self, queue: str) -> int:
        return self._priorities.get(queue, PRIORITY_DEFAULT)

    def _has_unknown(self) -> bool:
        self._hear_all()
        return any(len(queues) > 1 for queues in self._open.values()) and any(self._unknown())

    def _unknown(self) -> list[str]:
        return [
            queue
            for queues in self._open.values()
            for queue in queues
            if queue not in self._priorities and queue.startswith(RUN_QUEUE)
        ]

    def _hear_all(self) -> None:
        while self._heard:
            self._sort_in(self._heard.popleft())

    def _sort_in(self, queue: str) -> None:
        """Under the first pattern; one that has a place of its own needs none here."""
        if queue in self._served.names:
            return
        for pattern, queues in self._open.items():
            if matches(pattern, queue):
                queues.add(queue)
                return
