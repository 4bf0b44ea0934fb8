"""What is to happen to a run at some time, the earliest first: a heap, kept in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

from tidewheel.core.operator.requests import RunTimer, TimerKey
from tidewheel.core.queue.task import Instant


class Agenda:
    """Timers of one run. A timer that is set again is moved; the heap forgets lazily."""

    def __init__(self, timers: Iterable[RunTimer] = ()) -> None:
        self._at: dict[TimerKey, Instant] = {}
        self._heap: list[tuple[Instant, int, TimerKey]] = []
        self._order = 0
        # What the store was not told yet; None: the timer is gone.
        self._changed: dict[TimerKey, Instant | None] = {}
        self._stored: set[TimerKey] = set()
        for timer in timers:
            key = TimerKey(timer.point, timer.name, timer.timer)
            self._stored.add(key)
            self._put(key, timer.at)

    def set(self, key: TimerKey, at: Instant) -> None:
        self._put(key, at)
        self._changed[key] = at

    def cancel(self, key: TimerKey) -> None:
        if self._at.pop(key, None) is not None:
            self._changed[key] = None

    def at(self, key: TimerKey) -> Instant | None:
        """When its time comes; None: there is no such timer."""
        return self._at.get(key)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._at

    def due(self, now: Instant) -> Iterator[TimerKey]:
        """Those whose time has come, one after the other; also ones set meanwhile."""
        while (at := self.next_at()) is not None and at <= now:
            key = heappop(self._heap)[2]
            del self._at[key]
            self._changed[key] = None
            yield key

    def next_at(self) -> Instant | None:
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def take_changes(self) -> tuple[list[RunTimer], list[TimerKey]]:
        """What the store has to be told: timers that were set, and those that are gone.

        One that was set and came due since the last time is nobody's business.
        """
        changed, self._changed = self._changed, {}
        there = [RunTimer(*key, at) for key, at in changed.items() if at is not None]
        gone = [key for key, at in changed.items() if at is None and key in self._stored]
        self._stored.difference_update(gone)
        self._stored.update(TimerKey(*one[:3]) for one in there)
        return there, gone

    def _put(self, key: TimerKey, at: Instant) -> None:
        self._order += 1
        self._at[key] = at
        heappush(self._heap, (at, self._order, key))
