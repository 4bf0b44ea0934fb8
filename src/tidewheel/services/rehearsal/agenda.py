"""What lies ahead in a rehearsal, the earliest first: ends of jobs, timers, checks."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from tidewheel.core.queue.task import Instant
from tidewheel.services.rehearsal.record import Submission, WaitedFor
from tidewheel.services.rehearsal.scheduling import EXPIRY, RETRY, Key


class Occasion(NamedTuple):
    """What lets a task go: what it waited for, and whose report ended that."""

    waited_for: WaitedFor
    blocker: Submission | None = None
    key: Key | None = None


class Timer(NamedTuple):
    """Something that the core waits for; `occasion` is what will have let its task go then."""

    key: Key
    name: str
    is_xtrigger: bool
    occasion: Occasion


class Agenda:
    """Entries of the same time come in the order in which they were put."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Submission | Timer]] = []
        self._order = 0
        self._armed: dict[tuple[Key, str], int] = {}

    def put(self, entry: Submission | Timer, at: float) -> None:
        self._order += 1
        if isinstance(entry, Timer):
            self._armed[entry.key, entry.name] = self._order
        heappush(self._heap, (at, self._order, entry))

    def take_back(self, key: Key, name: str) -> None:
        """The core no longer wants this timer."""
        self._armed.pop((key, name), None)

    def next(self) -> tuple[Instant, Submission | Timer] | None:
        """The earliest that was not taken back; None if there is nothing left."""
        while self._heap:
            at, order, entry = heappop(self._heap)
            if isinstance(entry, Timer):
                if self._armed.get((entry.key, entry.name)) != order:
                    continue
                del self._armed[entry.key, entry.name]
            return Instant(at), entry
        return None


def occasion_of_clock(now: Occasion, key: Key, name: str, *, waits: bool) -> Occasion:
    """For a timer of the core, set on another occasion; `waits` if its time is to come."""
    if name == EXPIRY:
        return Occasion(WaitedFor.PARENT, None, key)  # of those that wait for `expired`
    if name == RETRY:
        return Occasion(WaitedFor.RETRY, now.blocker, key)
    if waits:
        return Occasion(WaitedFor.CLOCK)  # no task can change what a clock shows
    kind = WaitedFor.START if now.blocker is None else WaitedFor.RUNAHEAD
    return Occasion(kind, now.blocker, now.key)
