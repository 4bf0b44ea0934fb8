"""The past of a run, with what the batch in the making has forgotten and no store knows yet."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.pool import Past
from tidewheel.core.sched.states import Flows, Key, Memory


class RecentPast:
    """Asked first here, then in the store."""

    def __init__(self, stored: Past) -> None:
        self._stored = stored
        self._recent: dict[Key, Memory] = {}

    def forgotten(self, memories: dict[Key, Memory]) -> None:
        self._recent |= memories

    def written(self) -> None:
        """The store knows all of it now."""
        self._recent.clear()

    def submits(self, point: Point, name: str) -> int:
        memory = self._recent.get((point, name))
        return self._stored.submits(point, name) if memory is None else memory.submits

    def spawned(self, point: Point, name: str) -> Flows:
        memory = self._recent.get((point, name))
        return self._stored.spawned(point, name) if memory is None else memory.spawned
