"""Threads for handlers that are plain functions.

Not ``ThreadPoolExecutor``: it cannot make up for a thread whose work never ends, and it
waits for such a thread when the process wants to exit.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum


class Stage(Enum):
    """How far a call is."""

    WAITING = "waiting"
    RUNNING = "running"
    GIVEN_UP = "given up"


class Call:
    """One call of a function that must not raise."""

    __slots__ = ("function", "stage")

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function
        self.stage = Stage.WAITING


class HandlerThreads:
    """Up to ``count`` threads that are at work or ready for it, started when needed."""

    def __init__(self, count: int) -> None:
        assert count > 0
        self._count = count
        self._started = 0
        self._idle = 0
        self._stopped = False
        self._waiting: deque[Call] = deque()
        self._changed = threading.Condition()

    def submit(self, function: Callable[[], None]) -> Call:
        """Call the function in a thread, as soon as one is free."""
        call = Call(function)
        with self._changed:
            assert not self._stopped, "a stopped runner starts nothing"
            self._waiting.append(call)
            self._start_if_needed()
            self._changed.notify()
        return call

    def give_up(self, call: Call) -> None:
        """Go on without a call that does not end; one that never began never will."""
        with self._changed:
            if call.stage is Stage.RUNNING:
                self._started -= 1
                self._start_if_needed()
            call.stage = Stage.GIVEN_UP

    def stop(self) -> None:
        """Let every thread end when nothing waits any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _start_if_needed(self) -> None:
        if len(self._waiting) > self._idle and self._started < self._count:
            self._started += 1
            threading.Thread(target=self._work, name="handler", daemon=True).start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            call.function()
            with self._changed:
                if call.stage is Stage.GIVEN_UP:
                    return  # another thread has taken this one's place

    def _next(self) -> Call | None:
        with self._changed:
            while True:
                while self._waiting:
                    call = self._waiting.popleft()
                    if call.stage is Stage.WAITING:
                        call.stage = Stage.RUNNING
                        return call
                if self._stopped:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
