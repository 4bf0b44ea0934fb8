"""An event loop whose time jumps: a day of waiting passes in no time, the same way every run.

Nothing runs beside the loop: no sockets, no signals, and work for threads is done on the
spot. When nothing is ready, time moves to the next timer; when there is none either, all
wait for something that will not come, and ``Standstill`` says who.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import heapq
import itertools
import math
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import ParamSpec, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = ParamSpec("P")


class Standstill(AssertionError):
    """Every task waits, and no timer is left that could wake one."""


class _Timer(asyncio.TimerHandle):
    """Of two timers for the same moment the one that was set first fires first.

    In real time no two moments are the same, and asyncio does not care; here they often are,
    and swapping two events that happened in order would be a fault of this loop.
    """

    __slots__ = ("_number",)

    def __init__(
        self,
        number: int,
        when: float,
        callback: Callable[..., object],
        args: Sequence[object],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self._number = number
        self._scheduled = True  # in the heap of BaseEventLoop, which counts the cancelled ones

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        assert isinstance(other, _Timer)
        return (self.when(), self._number) < (other.when(), other._number)


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """``BaseEventLoop`` with a clock of its own in the place of a selector."""

    def __init__(self, start_at: float = 0.0) -> None:
        super().__init__()
        self._now = start_at
        self._selector = self  # BaseEventLoop asks it to wait for input or a time
        self._scheduled: list[asyncio.TimerHandle]  # a heap, kept by BaseEventLoop
        self._numbers = itertools.count()

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Wait: time moves on at once, and there never is any input."""
        if timeout is None:
            waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
            raise Standstill(f"no timer is left, and these tasks wait: {', '.join(waiting)}")
        if timeout > 0:
            # To the timer itself, not by the difference, which rounding may make too short;
            # and BaseEventLoop fires what is due before now + resolution, so that must count.
            self._now = max(self._now, self._scheduled[0].when())
            self._clock_resolution = max(1e-9, math.ulp(self._now))
        return []

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(next(self._numbers), when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        return timer

    def run_in_executor(
        self,
        executor: concurrent.futures.Executor | None,
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Done here and now: threads would bring back real time."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[object]) -> None:
        """There is no input."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a system call, so nobody has to be woken from one."""


class SleepingTimers:
    """Timers of a clock that has its own way to sleep."""

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.Task[None]:
        timer = asyncio.get_running_loop().create_task(self.sleep(seconds))
        timer.add_done_callback(lambda _: call())
        return timer


class VirtualClock(SleepingTimers):
    """The time of the loop that is running (port Clock), ahead by ``offset_seconds``."""

    def __init__(self, offset_seconds: float = 0.0) -> None:
        self._offset_seconds = offset_seconds

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self._offset_seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtually(main: Coroutine[object, object, T], *, start_at: float = 0.0) -> T:
    """Like ``asyncio.run``, in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(start_at)) as runner:
        return runner.run(main)


def in_virtual_time(
    test: Callable[P, Coroutine[object, object, None]],
) -> Callable[P, None]:
    """Make a test of an async function: it runs from second 0 on, in no time."""

    @functools.wraps(test)
    def run_test(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtually(test(*args, **kwargs))

    return run_test
