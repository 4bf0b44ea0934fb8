"""The past of a run, with what the batch in the making has forgotten and no store knows yet."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.pool import Past
from tidewheel.core.sched.task_state import Key, TaskHistory


class RecentPast:
    """Asked first here, then in the store, and there once while a batch is in the making."""

    def __init__(self, stored: Past) -> None:
        self._stored = stored
        self._recent: dict[Key, TaskHistory | None] = {}

    def forgotten(self, memories: dict[Key, TaskHistory]) -> None:
        self._recent |= memories

    def written(self) -> None:
        """The store knows all of it now."""
        self._recent.clear()

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        key = (point, name)
        if key not in self._recent:
            self._recent[key] = self._stored.recall(point, name)
        memory = self._recent[key]
        return None if memory is None else memory.copy()
