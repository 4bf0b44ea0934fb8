"""Waits with an end: for a ring from any thread, for a time, or for an answer of the store."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine
from typing import TypeVar

from tidewheel.errors import StoreBusy
from tidewheel.ports.clock import Clock


class SystemClock:
    """Tells the local time that only goes forward (port Clock)."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


T = TypeVar("T")


class Wakeup:
    """Wakes one waiter; anybody rings, from any thread; a ring while nobody waits is kept.

    A process with news stores it first and rings then; the waiter is woken first and looks
    then. So no news is overlooked, and a thousand rings in a row cost one waking.
    """

    __slots__ = ("_clock", "_loop", "_rung", "_thread", "_waiter")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self._rung:
            return
        self._rung = True
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            _release(self._waiter)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody will wait again
            self._loop.call_soon_threadsafe(lambda: _release(self._waiter))

    async def wait(self, seconds: float | None = None) -> None:
        """Waits for the ring, at most so long; None waits for the ring alone."""
        loop = self._loop = asyncio.get_running_loop()
        self._thread, timer = threading.get_ident(), None
        if not self._rung:
            assert self._waiter is None, "one waits at a time"
            waiter = self._waiter = loop.create_future()
            if seconds is not None:
                timer = loop.create_task(self._clock.sleep(max(0.0, seconds)))
                timer.add_done_callback(lambda _: _release(waiter))
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self._rung = False


async def within(clock: Clock, seconds: float, call: Coroutine[object, object, T]) -> T:
    """Returns the answer of a call to a store; raises StoreBusy if it does not come in time."""
    answer = asyncio.ensure_future(call)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((answer, timer), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise StoreBusy(f"the store did not answer within {seconds:g} s; trying again")
        return answer.result()
    finally:
        timer.cancel()
        answer.cancel()


def _release(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
