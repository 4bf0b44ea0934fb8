"""Gives every service one shape: start, stop, run_once, and the loop between them.

Theory of operation
-------------------
``run_once`` does one pass and answers with what it did, as reports; tests and simulations
may call it by themselves. ``run`` is the loop: a pass, then a rest that a wake-up ends
early. Three kinds of failure, three treatments:

* ``Unavailable``: the world did not answer. The pass is made again after a back-off with
  full jitter, which no wake-up cuts short; only a request to stop does.
* ``AssertionError`` and everything else: a bug, or a store that must not be used. It ends
  the service, which is started again from what the store knows.
* Cancellation is a crash: nothing is tidied up, as after kill -9.

Log lines and telemetry are made from reports by the function ``on_report``, nowhere else.

Each wait can be ended: that for a ring, from any thread (``Wakeup``), and that for an answer of
the store, by its time limit (``within``).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Protocol, TypeVar

from tidewheel.errors import StoreBusy, Unavailable
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.clock import Clock, Timer
from tidewheel.ports.store import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """Says one thing that a service did or met: the single source of log, telemetry and UI."""

    service: str
    event: str  # noun.verb in words of the glossary, as "leases.lapsed"
    facts: Mapping[str, object] = field(default_factory=dict)


OnReport = Callable[[ServiceReport], None]


class ReadsDefinitions(Protocol):
    """Describes where work is done that reads a definition: it may take seconds."""

    async def __call__(self, name: str, work: Callable[[], T], /) -> T:
        """Does the work and returns its result; the name is that of the workflow or run."""


async def read_in_thread(_name: str, work: Callable[[], T], /) -> T:
    """Does work in a thread, so that nobody waits for it but the caller."""
    return await asyncio.to_thread(work)


def tell_nobody(_report: ServiceReport) -> None:
    """Does nothing with a report, for services whose reports nobody reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Says how long to wait before the same call is tried again."""

    first_seconds: float = 0.1
    seconds_max: float = 5.0

    def delay_seconds(self, failures: int, chance: random.Random) -> float:
        """Returns a random delay, up to a bound that doubles with each failure.

        It is random so that many who wait do not come back together.
        """
        assert failures >= 1
        grown = self.first_seconds * 2.0 ** min(failures - 1, 32)
        return chance.uniform(0.0, min(grown, self.seconds_max))


BACKOFF_DEFAULT = Backoff()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Holds what a service is given: clock, chance, reports, back-off and failpoint."""

    clock: Clock
    chance: random.Random = field(default_factory=random.Random)
    on_report: OnReport = tell_nobody
    backoff: Backoff = BACKOFF_DEFAULT
    failpoint: Failpoint = go_on


class Service(ABC):
    """Calls ``run_once`` in a loop that survives the failures of the world around it.

    ``wakeup`` is given if others had to know it before the service was made.
    """

    def __init__(
        self, name: str, surroundings: Surroundings, wakeup: Wakeup | None = None
    ) -> None:
        self.name = name
        self._surroundings = surroundings
        self._clock = surroundings.clock
        self._alarm = Wakeup(surroundings.clock) if wakeup is None else wakeup
        self._stop_alarm = Wakeup(surroundings.clock)
        self.wake = self._alarm.ring  # makes the next pass begin at once; from any thread
        self._stop_asked = False
        self._running: asyncio.Task[None] | None = None

    @abstractmethod
    async def run_once(self) -> Sequence[ServiceReport]:
        """Makes one pass and returns reports of what it did."""

    @abstractmethod
    def rest_seconds(self) -> float | None:
        """Returns the seconds to rest after a pass unless woken; None: until woken."""

    async def start(self) -> None:
        """Starts the loop in the background; a failure of the loop is raised by ``stop``."""
        assert self._running is None, f"{self.name} was started twice"
        self._running = asyncio.create_task(self.run(), name=self.name)

    async def stop(self) -> None:
        """Asks the loop to stop, and waits until it has ended."""
        self.ask_stop()
        if self._running is not None:
            await self._running

    def ask_stop(self) -> None:
        """Ends the loop after the pass that is going on; may be called from any thread."""
        self._stop_asked = True
        self._stop_alarm.ring()
        self._alarm.ring()

    async def run(self) -> None:
        while not self._stop_asked:
            for report in await self.persist(self.run_once) or ():
                self._surroundings.on_report(report)
            rest = self.rest_seconds()
            if rest is not None and rest <= 0.0:
                await asyncio.sleep(0)  # a store in memory answers without ever giving way
            elif not self._stop_asked:
                await self._alarm.wait(rest)

    async def persist(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Repeats a call until it is answered; returns None if asked to stop before."""
        failures = 0
        while True:
            try:
                answer = await call()
            except Unavailable as error:
                failures += 1
                await self._back_off(failures, error)
                if self._stop_asked:
                    return None
            else:
                if failures:
                    self.tell("store.back", failures=failures)
                return answer

    async def _back_off(self, failures: int, error: Unavailable) -> None:
        delay = self._surroundings.backoff.delay_seconds(failures, self._surroundings.chance)
        self.tell("store.unavailable", error=str(error), failures=failures, delay_seconds=delay)
        if not self._stop_asked:
            await self._stop_alarm.wait(delay)

    def tell(self, event: str, **facts: object) -> None:
        """Reports something that did not happen in a pass, or before the pass has ended."""
        self._surroundings.on_report(self.report(event, **facts))

    def report(self, event: str, **facts: object) -> ServiceReport:
        return ServiceReport(service=self.name, event=event, facts=facts)


class SystemClock:
    """Tells the local time that only goes forward (port Clock)."""

    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(asyncio.sleep)

    @staticmethod
    def call_later(seconds: float, call: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, call)


class Wakeup:
    """Wakes one waiter; anybody rings, from any thread; a ring while nobody waits is kept.

    A process with news stores it first and rings then; the waiter is woken first and looks
    then. So no news is overlooked, and a thousand rings in a row cost one waking.
    """

    __slots__ = ("_clock", "_loop", "_thread", "_waiter", "is_rung")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_rung = False  # the waiter will look, or has been told to: no need to ring
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        if self.is_rung:
            return
        self.is_rung = True
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            _release(self._waiter)
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody will wait again
            self._loop.call_soon_threadsafe(lambda: _release(self._waiter))

    async def wait(self, seconds: float | None = None) -> None:
        """Waits for a ring, at most so many seconds; None: until there is one."""
        loop = self._loop = asyncio.get_running_loop()
        self._thread, timer = threading.get_ident(), None
        if not self.is_rung:
            assert self._waiter is None, "one waits at a time"
            waiter = self._waiter = loop.create_future()
            if seconds is not None:
                timer = self._clock.call_later(max(0.0, seconds), partial(_release, waiter))
            try:
                await waiter
            finally:
                self._waiter = None
                if timer is not None:
                    timer.cancel()
        self.is_rung = False


def _release(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


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


# A service that starts before its database waits for it. It says so when the reason changes and
# when the wait is over, not at every try.


async def open_patiently(
    open_store: Callable[[], Awaitable[Store]],
    surroundings: Surroundings,
    stop: Wakeup,
    stop_asked: Callable[[], bool],
    wait_seconds_max: float,
) -> Store | None:
    """Returns the store as soon as it can be opened; None if asked to stop before.

    After ``wait_seconds_max`` the last Unavailable is raised.
    """
    clock, told, failures = surroundings.clock, None, 0
    give_up_at = clock.monotonic() + wait_seconds_max
    while True:
        try:
            store = await open_store()
        except Unavailable as error:
            rest = give_up_at - clock.monotonic()
            if rest <= 0.0:
                raise
            failures += 1
            if str(error) != told:
                told = str(error)
                _tell(surroundings, "store.awaited", error=told, seconds_max=wait_seconds_max)
        else:
            if failures:
                _tell(surroundings, "store.back", failures=failures)
            return store
        delay = surroundings.backoff.delay_seconds(failures, surroundings.chance)
        await stop.wait(min(delay, rest))
        if stop_asked():
            return None


def _tell(surroundings: Surroundings, event: str, **facts: object) -> None:
    surroundings.on_report(ServiceReport(service="opening", event=event, facts=facts))


# Unlike ``asyncio.TaskGroup`` this one keeps its members in the order in which they joined, so
# that a simulation cancels them in the same order every time, and raises the failure itself.


class TaskGroup:
    """Runs coroutines beside each other: the first that fails ends all of them.

    Members may join at any time; ``oversee`` raises what any of them raised.
    """

    def __init__(self) -> None:
        self._members: dict[asyncio.Task[None], None] = {}
        self._failure: BaseException | None = None
        self._lead: asyncio.Task[None] | None = None
        self._dismissed = False

    def add(self, work: Coroutine[object, object, None]) -> None:
        if self._dismissed:  # a call from a thread that came too late
            work.close()
        else:
            _ = self.member(work)

    def member(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Adds a member, as ``add`` does, and returns its asyncio task."""
        member = asyncio.get_running_loop().create_task(work)
        self._members[member] = None
        member.add_done_callback(self._leave)
        return member

    async def oversee(self, work: Coroutine[object, object, None]) -> None:
        """Does ``work``, then ends all members; a member's failure ends the work, too."""
        self._lead = self.member(work)
        try:
            await asyncio.wait((self._lead,))
        finally:
            await self.dismiss()
        if self._failure is not None:
            raise self._failure

    async def dismiss(self) -> None:
        """Ends all members that are still at work."""
        self._dismissed = True
        while self._members:
            for member in list(self._members):
                member.cancel()
            await asyncio.wait(list(self._members))

    def _leave(self, member: asyncio.Task[None]) -> None:
        del self._members[member]
        if member.cancelled() or member.exception() is None:
            return
        if self._failure is None:
            self._failure = member.exception()
        if self._lead is not None:
            self._lead.cancel()
