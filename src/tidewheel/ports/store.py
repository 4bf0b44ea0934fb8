"""Names the type of a store, and what workers and schedulers of a process leave with one.

``Store`` is the class that does everything with a database: what a store can be asked is listed
there and nowhere else. It has this name here because loading it would load the whole store into
every client. A store behind a server (``store.remote``) has the same type; what only the
database can do, it refuses.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tidewheel.core.queue.requests import ClaimedTasks, ClaimRequest, Report
from tidewheel.core.queue.task import WorkerId

if TYPE_CHECKING:
    from tidewheel.store.store import DatabaseStore as Store
else:
    Store = object

__all__ = ["Attendance", "StandingClaim", "StandingClaims", "Store", "TakeEnds"]


class StandingClaim:
    """Is a claim that a worker with free slots leaves with its store.

    A write of the same process that makes tasks of its queue ready carries it out, in its own
    transaction: the worker has the tasks one commit earlier. One that is ``for_ends`` counts on
    the slots of attempts that are about to end: the report of ends of this worker carries it
    out, for as many tasks as the store took ends. It is carried out once at most.
    """

    def __init__(
        self,
        request: ClaimRequest,
        clock: Callable[[], float],
        on_settled: Callable[[StandingClaim, ClaimedTasks | None], None],
        *,
        for_ends: bool = False,
        idle_after: int = 0,
    ) -> None:
        """Prepares a claim. ``on_settled`` is called in this loop with the tasks, which may be
        none, or with None if the claim was not carried out, or nobody knows whether it was."""
        self.request, self.for_ends = request, for_ends
        self.idle_after = idle_after  # after so many ends nothing is left on the machine
        self.asked_at = 0.0  # by the clock, before the tasks were claimed
        self.is_unsure = False  # it may have been carried out without an answer
        self.is_first = False  # its worker hears of the tasks here, before it is woken for them
        # Takes it back from the store that keeps it; False: a write is carrying it out, or has.
        self.withdraw: Callable[[], bool] = lambda: False
        self._clock, self._on_settled = clock, on_settled
        self.loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()

    def begin(self) -> None:
        """Notes the time; from the thread that carries it out."""
        self.asked_at = self._clock()

    def settle(self, tasks: ClaimedTasks | None, *, unsure: bool = False) -> None:
        """Hands over what was claimed; from any thread."""
        self.is_unsure = unsure
        self.is_first = False
        with suppress(RuntimeError):  # no loop runs in this thread
            self.is_first = asyncio.get_running_loop() is self.loop
        if self.is_first:
            self._settle(tasks)
        else:
            with suppress(RuntimeError):  # its loop is closed: the worker is gone
                self.loop.call_soon_threadsafe(self._settle, tasks)

    async def wait(self) -> None:
        """Waits until a claim that is being carried out is settled."""
        await self._settled.wait()

    def _settle(self, tasks: ClaimedTasks | None) -> None:
        self._settled.set()
        self._on_settled(self, tasks)


class StandingClaims:
    """Holds the standing claims of the workers of this process; for any thread."""

    def __init__(self) -> None:
        self._claims: list[StandingClaim] = []  # a few: one of each machine
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._claims)

    def post(self, claim: StandingClaim) -> None:
        claim.withdraw = partial(self.withdraw, claim)
        with self._lock:
            self._claims.append(claim)

    def withdraw(self, claim: StandingClaim) -> bool:
        with self._lock:
            if is_here := claim in self._claims:
                self._claims.remove(claim)
            return is_here

    def loop_of(self, queues: Collection[str]) -> asyncio.AbstractEventLoop | None:
        """Returns the loop of a worker that has left a claim of one of these queues."""
        with self._lock:
            loops = (
                one.loop
                for one in self._claims
                if not one.for_ends and one.request.queue in queues
            )
            return next(loops, None)

    def take(self, queues: Collection[str], ended: Collection[WorkerId]) -> list[StandingClaim]:
        """Takes out the claims of these queues, and those for ends of these workers."""
        with self._lock:
            taken = [
                one
                for one in self._claims
                if (one.for_ends and one.request.worker in ended)
                or (not one.for_ends and one.request.queue in queues)
            ]
            self._claims = [one for one in self._claims if one not in taken]
            return taken


# Takes ends of a run's jobs into its next batch; None if the scheduler is at something else.
# The answer says whether they are written.
TakeEnds = Callable[[Sequence[Report]], Awaitable[bool] | None]


class Attendance:
    """Knows the schedulers of this process that may be offered ends of their jobs.

    What is offered is written with the batch that it leads to: from the end of one task to the
    start of the next lies one commit. Only those in the same event loop are asked, as they are
    called at once.
    """

    def __init__(self) -> None:
        self._takers: dict[str, tuple[asyncio.AbstractEventLoop, TakeEnds]] = {}

    def attend(self, run: str, take: TakeEnds) -> Callable[[], None]:
        """Adds the scheduler of a run; returns a function that removes it."""
        own = self._takers[run] = (asyncio.get_running_loop(), take)

        def leave() -> None:
            if self._takers.get(run) is own:
                del self._takers[run]

        return leave

    def offer(self, reports: Sequence[Report]) -> Awaitable[bool] | None:
        """Offers ends, all of one run, to its scheduler; None if nobody takes them."""
        if not self._takers:
            return None
        run = reports[0].holder.task_id.rsplit("/", 3)[0]
        loop, take = self._takers.get(run, (None, None))
        if take is None or loop is not asyncio.get_running_loop():
            return None
        return take(reports)
