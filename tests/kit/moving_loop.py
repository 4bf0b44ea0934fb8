"""Virtual time made fast for simulations, with an end to services that run in circles.

A simulation spends a third of its time in the event loop, most of it in comparing timers and
in asking a selector that has nothing to say. Here timers are tuples, and nobody is asked.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple

from tests.kit.virtual_time import Standstill, VirtualTimeLoop

Ts = TypeVarTuple("Ts")

TURNS_MAX = 20_000  # without any time passing


class MovingLoop(VirtualTimeLoop):
    """Does what VirtualTimeLoop does: of timers for one moment the first set fires first."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = 0  # at this very moment
        self._ready: deque[asyncio.Handle]  # kept by BaseEventLoop
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def _run_once(self) -> None:
        """One turn of BaseEventLoop: what is due now, then what that made ready before."""
        ready, timers = self._ready, self._timers
        if not ready:
            self._wait()
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        self.turns += 1
        if self.turns > TURNS_MAX:
            raise Standstill(f"somebody runs in circles at {self._now:.3f} s")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # as BaseEventLoop does

    def _wait(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            self.select(None)
        elif timers[0][0] > self._now:
            self._now = timers[0][0]
            self.turns = 0

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is dropped when its time comes."""
