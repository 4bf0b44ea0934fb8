"""Ends requests that take too long: as ``asyncio.timeout`` would, without a timer for each.

Nearly all requests end long before their time is up, and many have the same limit: whoever came
first is over first. So those with one limit stand in a line, and one timer looks at its head.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from types import TracebackType


class TimeLimits:
    """Holds the requests under way in one event loop, by how long each may take."""

    def __init__(self) -> None:
        self._lines: dict[float, _Line] = {}

    def within(self, seconds: float) -> TimeLimit:
        """Returns a context in which the current task may be for so long; its end raises
        TimeoutError if that was too short."""
        line = self._lines.get(seconds)
        if line is None:
            line = self._lines[seconds] = _Line(seconds)
        return TimeLimit(line)


class _Line:
    """Holds those with the same limit, in the order in which their times end."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self.loop = seconds, asyncio.get_running_loop()
        self._ends: OrderedDict[TimeLimit, float] = OrderedDict()  # by the loop's clock
        self.leave = self._ends.pop  # of a limit that has joined
        self._timer: asyncio.TimerHandle | None = None

    def join(self, limit: TimeLimit) -> None:
        self._ends[limit] = self.loop.time() + self._seconds
        if self._timer is None:
            self._timer = self.loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        """Ends those whose time is up, and looks again when that of the next is."""
        self._timer = None
        loop = self.loop
        while self._ends:
            limit, end = next(iter(self._ends.items()))
            if end > loop.time():
                self._timer = loop.call_at(end, self._look)
                return
            del self._ends[limit]
            limit.expire()


class TimeLimit:
    """Ends the task that has entered it when its time is up, or somebody ends it before."""

    __slots__ = ("_cancelling", "_is_expired", "_line", "_task")

    def __init__(self, line: _Line) -> None:
        self._line, self._is_expired = line, False
        self._task: asyncio.Task[object] | None = None  # while it is within
        self._cancelling = 0

    def __enter__(self) -> TimeLimit:
        task = asyncio.current_task(self._line.loop)
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()
        self._line.join(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if not self._is_expired:
            self._line.leave(self, None)
            return
        assert task is not None
        # If nobody else has asked for it, the end of the task is what is told here.
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """Has the time be up, at the next step of the loop."""
        self._line.loop.call_soon(self.expire)

    def expire(self) -> None:
        """Ends the task, if it is still within."""
        if self._task is not None and not self._is_expired:
            self._line.leave(self, None)
            self._is_expired = True
            self._task.cancel()
