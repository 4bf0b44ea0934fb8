"""Which queues a worker serves: names, and patterns in which ``*`` stands for any text."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.queue.access import matches

ANY_TEXT = "*"


def is_pattern(queue: str) -> bool:
    """Whether it stands for more than the queue of that name."""
    return ANY_TEXT in queue


class Served:
    """The queues that a worker was told to serve."""

    __slots__ = ("names", "patterns")

    def __init__(self, queues: Iterable[str]) -> None:
        given = tuple(queues)
        self.names = frozenset(queue for queue in given if not is_pattern(queue))
        self.patterns = tuple(queue for queue in given if is_pattern(queue))

    def __contains__(self, queue: str) -> bool:
        return queue in self.names or any(matches(one, queue) for one in self.patterns)

    def any_of(self, queues: frozenset[str]) -> bool:
        """Whether one of these is served."""
        if not self.names.isdisjoint(queues):
            return True
        return bool(self.patterns) and any(queue in self for queue in queues)
