"""Processes of a simulation: each may stand still, die, and have a clock of its own.

Nothing of a process runs while it stands still: whatever wakes it (a timer, an answer, a
job's end) waits until it goes on. When it dies nothing wakes it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVarTuple

from tests.kit.virtual_time import SleepingTimers

Ts = TypeVarTuple("Ts")

# No sleep is shorter: less than the last digit of a time would not move it, for ever.
TICK_SECONDS = 1e-6


class Process(SleepingTimers):
    """One process with its local clock (port Clock)."""

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        *,
        offset_seconds: float = 0.0,
        rate: float = 1.0,
    ) -> None:
        self.name = name
        self.dead = False
        self.stands_until = 0.0
        self.main: asyncio.Task[None] | None = None
        self._loop = loop
        self._offset_seconds = offset_seconds
        self._rate = rate  # local seconds per second of the world
        self._sleepers: dict[asyncio.Future[None], float] = {}  # until when, by the local clock
        self._backlog: list[Callable[[], object]] = []  # what came while it stood still

    # port Clock
    def monotonic(self) -> float:
        return self._offset_seconds + self._rate * self._loop.time()

    async def sleep(self, seconds: float) -> None:
        woken = self._loop.create_future()
        self._sleepers[woken] = self.monotonic() + seconds
        timer = self._loop.call_later(
            max(TICK_SECONDS, seconds) / self._rate, self.when_it_goes_on, _wake, woken
        )
        try:
            await woken
        finally:
            timer.cancel()
            del self._sleepers[woken]

    # what happens to it
    def when_it_goes_on(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Call now, or at the end of the standstill, or never if the process is dead."""
        if self.dead:
            return
        if not self._backlog and self.stands_until <= self._loop.time():
            callback(*args)
            return
        # In the order in which it came, however often the standstill is prolonged.
        self._backlog.append(partial(callback, *args))
        if len(self._backlog) == 1:
            self._loop.call_at(self.stands_until, self._goes_on)

    def _goes_on(self) -> None:
        if self.stands_until > self._loop.time():
            self._loop.call_at(self.stands_until, self._goes_on)
            return
        backlog, self._backlog = self._backlog, []
        for call in backlog:
            if not self.dead:
                call()

    async def stays_alive(self) -> None:
        """The dead do nothing: what comes after this never happens to them."""
        if self.dead:
            await self._loop.create_future()

    def stands_still(self, seconds: float) -> None:
        self.stands_until = max(self.stands_until, self._loop.time() + seconds)

    def clock_jumps(self, seconds: float) -> None:
        """Forward only: that much a monotonic clock promises. Timers go by the same clock."""
        self._offset_seconds += seconds
        now = self.monotonic()
        for woken, until in self._sleepers.items():
            rest = max(TICK_SECONDS, until - now)
            self._loop.call_later(rest / self._rate, self.when_it_goes_on, _wake, woken)

    def dies(self) -> None:
        """As after kill -9: what it had sent may arrive, nothing else happens."""
        self.dead = True
        if self.main is not None:
            self.main.cancel()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
