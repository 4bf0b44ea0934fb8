"""The queues behind a worker's patterns: which of them may have tasks, and whose turn it is.

A queue is known because somebody woke the worker for it, or because it was there when the store
was last asked, which is done once in each poll. It is forgotten when a claim comes back short.
So a claim is made only where there may be something, and nothing depends on how many queues
there have ever been.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidewheel.core.tasks.access import matches
from tidewheel.core.tasks.serving import Served


class OpenQueues:
    """Used by a worker's loop, except for what says otherwise."""

    def __init__(self, served: Served, look_seconds: float) -> None:
        self._served = served
        self._look_seconds = look_seconds
        self._look_at = float("-inf")
        self._heard: deque[str] = deque()  # append and popleft are atomic
        self._open: dict[str, set[str]] = {pattern: set() for pattern in served.patterns}
        self._served_last: dict[str, str] = {}

    def hear(self, queues: Iterable[str]) -> None:
        """There may be tasks in these; from any thread."""
        if self._open:
            self._heard.extend(queues)

    def look_anew(self) -> None:
        """Something changed, and nobody can say what; from any thread."""
        self._look_at = float("-inf")

    def must_look(self, now: float) -> bool:
        """Whether the store is to be asked now, as it is from time to time."""
        if not self._open or now < self._look_at:
            return False
        # Before it is asked: what changes meanwhile must be asked for again.
        self._look_at = now + self._look_seconds
        return True

    def found(self, queues: Iterable[str]) -> None:
        """What the store answered."""
        for queue in queues:
            self._sort_in(queue)

    def turns(self, pattern: str) -> list[str]:
        """Those that may have tasks, beginning behind the one that was served last."""
        while self._heard:
            self._sort_in(self._heard.popleft())
        waiting = sorted(self._open[pattern])
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

    def _sort_in(self, queue: str) -> None:
        """Under the first pattern; one that has a place of its own needs none here."""
        if queue in self._served.names:
            return
        for pattern, queues in self._open.items():
            if matches(pattern, queue):
                queues.add(queue)
                return
