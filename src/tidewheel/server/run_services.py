"""Holds the services for runs in this process, which remember definitions between requests.

To read a definition takes a while, and every view of a run needs it: it is read once. That, and
what is worked out from it, is done in another thread, so that heartbeats are answered
meanwhile. A giant takes many seconds, in which the thread would hold up all others: it is read,
and looked at, in a process of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tidewheel.config import ProcessLimits, ServerSettings, StoreSettings
from tidewheel.core.queue.access import EVERYTHING
from tidewheel.formats.growth import Outgrown, bounded_growth
from tidewheel.ports.runs import RunDoor
from tidewheel.ports.store import Store
from tidewheel.wiring.limited_process import LimitedProcesses
from tidewheel.wiring.services import GIANT_SIZE, look_in_process, run_door

if TYPE_CHECKING:
    from tidewheel.views.graph import ToldGraphs

DEFINITIONS_MAX = 32
READING_MAX = 2  # definitions that are read at once in this process


class RunServices:
    """Holds a service for the runs of each store; loads nothing before the first request."""

    def __init__(self, settings: ServerSettings, where: StoreSettings | None = None) -> None:
        self._home, self._where = settings.state_directory, where
        self._processes = LimitedProcesses(
            ProcessLimits(
                cpu_seconds=settings.definition_cpu_seconds_max,
                memory_bytes=settings.definition_memory_bytes_max,
            )
        )
        self._doors: dict[int, RunDoor] = {}
        self._apart = BackgroundLoop()
        self._graphs: ToldGraphs | None = None
        self.summaries = SummaryCache()
        # Threads are few, and logs are read and written by the same.
        self._reading = asyncio.Semaphore(READING_MAX)

    def of(self, store: Store) -> RunDoor:
        """Returns the service for runs of a store, which has to live as long as the server."""
        if id(store) not in self._doors:
            from tidewheel.services.workflow_state import definitions_of, remembering

            remembered = remembering(definitions_of(store, self._home), DEFINITIONS_MAX)
            self._doors[id(store)] = run_door(
                store, self._home, remembered, self.read, by_whole_name=True
            )
        return self._doors[id(store)]

    @property
    def graphs(self) -> ToldGraphs:
        """Returns the memory of graphs that were sent; only the thread of views uses it."""
        if self._graphs is None:
            from tidewheel.views.graph import ToldGraphs

            self._graphs = ToldGraphs()
        return self._graphs

    async def apart(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs work that reads a definition or a whole pool in the thread of views, so that no
        request waits for it, and returns its result."""
        return await self._apart.run(work)

    async def look(self, store: Store, view: str, arguments: Document) -> Document:
        """Returns a view of a run, worked out in the thread of views; that of a giant in a
        process of its own, because it takes many seconds."""
        door, where = self.of(store), self._where
        if where is None:  # no other process can open the store
            return await self.apart(door.look(view, arguments))

        async def look_at_small() -> Document:
            with bounded_growth(GIANT_SIZE):
                return await door.look(view, arguments)

        try:
            return await self.apart(look_at_small())
        except Outgrown:
            work = partial(look_in_process, where, self._home, view, arguments)
            return await self._processes.run(str(arguments.get("run", "")), work)

    async def read(self, name: str, work: Callable[[], Result], /) -> Result:
        """Does work that reads a definition: in a thread, if the definition is small, else in a
        process with limits, when it is the turn of the team whose name it has."""
        try:
            async with self._reading:
                return await asyncio.to_thread(_bounded, work)
        except Outgrown:
            return await self._processes.run(name, work)

    def close(self) -> None:
        self._apart.close()
        self._processes.close()


def _bounded(work: Callable[[], Result]) -> Result:
    with bounded_growth(GIANT_SIZE):
        return work()


# A thread with an event loop of its own, for what takes long to work out.
#
# A view of a run with thousands of tasks is seconds of computing. In the loop that answers
# requests every heartbeat would wait for it, and leases would run out; here it only shares the
# interpreter. One thread does all such work, one piece between two waits at a time.

Result = TypeVar("Result")


class BackgroundLoop:
    """Runs work in a thread of its own, which begins with the first work that it is given."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs work in the loop of the thread; a cancelled caller cancels the work, too."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            body = (self._loop,)
            threading.Thread(target=_serve, args=body, name="views", daemon=True).start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Stops the thread; work that is under way is cancelled."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        for left in asyncio.all_tasks(loop):
            left.cancel()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


# How far runs are, remembered until they change: a list of a thousand is looked into once.

Document = dict[str, Any]
Look = Callable[[str], Awaitable[Document | None]]

LOOKS_MAX = 50  # for one list: each reads a whole run
KNOWN_MAX = 5_000
_OVER = ("completed", "stopped")


class SummaryCache:
    """Keeps the summaries of the runs that were listed last."""

    def __init__(self, known_max: int = KNOWN_MAX) -> None:
        self._known_max = known_max
        self._known: dict[Hashable, tuple[Hashable, Document | None]] = {}

    async def added(
        self,
        runs: list[Document],
        look: Look,
        names: tuple[str, ...] = EVERYTHING,
        looks_max: int = LOOKS_MAX,
    ) -> tuple[list[Document], int]:
        """Returns the runs, each with its `summary`, and how many are left to be looked into.

        A summary is shown only to those who may see what these names cover, no more, no less.
        Runs that are not over come first, as somebody may have to mend them; a caller that asks
        again is told more. A `summary` is None where the run is not, or cannot be, looked into.
        """
        unknown = [run for run in runs if self._at_hand(run, names) is None]
        unknown.sort(key=lambda run: run["status"] in _OVER)
        for run in unknown[:looks_max]:
            # As it was listed: what happens meanwhile is looked for the next time.
            summary = await look(run["name"])
            place = (run["number"], names)
            self._known.pop(place, None)
            self._known[place] = (_version(run), summary)
            while len(self._known) > self._known_max:
                del self._known[next(iter(self._known))]
        found = [(run, self._at_hand(run, names)) for run in runs]
        shown = [run | {"summary": None if one is None else one[1]} for run, one in found]
        return shown, max(0, len(unknown) - looks_max)

    def _at_hand(
        self, run: Document, names: tuple[str, ...]
    ) -> tuple[Hashable, Document | None] | None:
        known = self._known.get((run["number"], names))
        return known if known is not None and known[0] == _version(run) else None


def _version(run: Document) -> Hashable:
    """Returns a value that changes whenever a summary may change: every batch leaves its time
    in the row of its run, and a definition that cannot be read may be mended."""
    return run["status"], run["updated_at"], run["definition"], run["driven"]
