"""Holds the services for runs in this process, which remember definitions between requests.

To read a definition takes a while, and every view of a run needs it: it is read once. That, and
what is worked out from it, is done in other threads, so that heartbeats are answered meanwhile.
A giant takes many seconds, in which the thread would hold up all others: it is read, and looked
at, in a process of its own. All of this is slow work: it waits for the turn of its caller
(``Turns``), and is given up when the caller hangs up. A turn ends when the work has
really ended, so that nobody has more work done by hanging up.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidewheel.config import ProcessLimits, ServerSettings, StoreSettings
from tidewheel.core.queue.access import EVERYTHING
from tidewheel.formats.growth import Outgrown, bounded_growth
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import RunDoor
from tidewheel.ports.store import Store
from tidewheel.server.load_shedding import RequestSlot
from tidewheel.services.service import ReadsDefinitions
from tidewheel.wiring.limited_process import LimitedProcesses, Turns, call_in
from tidewheel.wiring.services import (
    GIANT_SIZE,
    look_in_process,
    show_in_process,
)

if TYPE_CHECKING:
    from tidewheel.core.operator.views import RunView
    from tidewheel.services.definitions.snapshot import RestoredDefinition
    from tidewheel.services.run_service import RunService
    from tidewheel.services.workflow_state import DefinitionOf
    from tidewheel.views.graph import ToldGraphs
    from tidewheel.views.grid import CellCache

DEFINITIONS_MAX = 32
READING_MAX = 3  # definitions that are read at once in this process
VIEWS_MAX = 3  # views that are worked out at once, in one thread
EACH_MAX = 2  # of these, for one token or team
LARGE_SIZE = 500  # tasks of a definition
FREEZES_MAX = 1_000


class RunServices:
    """Holds a service for the runs of each store; loads nothing before the first request."""

    def __init__(self, settings: ServerSettings, where: StoreSettings | None = None) -> None:
        self.home, self._where = settings.state_directory, where
        self._processes = LimitedProcesses(
            ProcessLimits(
                cpu_seconds=settings.definition_cpu_seconds_max,
                memory_bytes=settings.definition_memory_bytes_max,
            )
        )
        self._doors: dict[int, RunService] = {}
        self._apart = BackgroundLoop()
        self._graphs: ToldGraphs | None = None
        self.summaries = SummaryCache()
        self._cells: CellCache | None = None
        self._views = Turns(VIEWS_MAX, EACH_MAX)
        self._reading = Turns(READING_MAX, EACH_MAX)
        # Not those in which logs are read and written.
        self._threads = ThreadPoolExecutor(READING_MAX, "reading")
        self._read_now: set[threading.Event] = set()
        self._kept_count = 0

    def asked_by(self, place: RequestSlot) -> AskedServices:
        """Returns these services for one request, which waits for its turn."""
        return AskedServices(self, place)

    def of(self, store: Store, read: ReadsDefinitions) -> RunDoor:
        """Returns the service for runs of a store, which has to live as long as the server;
        ``read`` reads definitions of new runs."""
        if id(store) not in self._doors:
            from tidewheel.services.run_service import RunService
            from tidewheel.services.workflow_state import definitions_of, remembering

            # In a thread: SIP templates may take long, and others' views wait for this one.
            reads = definitions_of(store, self.home, in_thread=True)
            known = remembering(partial(self._kept, reads), DEFINITIONS_MAX)
            self._doors[id(store)] = RunService(store, self.home, known, by_whole_name=True)
        return self._doors[id(store)].reading(read)

    async def _kept(self, reads: DefinitionOf, run: RunView) -> RestoredDefinition:
        """Reads a definition that is to be kept, and takes it from the sight of the garbage
        collector: to look at 32 of 3,000 tasks takes it half a second, in which nothing else is
        done. Nothing of a definition refers to itself, so it needs no collector."""
        found = await reads(run)
        if len(found.graph.nodes) >= LARGE_SIZE:
            self._kept_count += 1
            if self._kept_count % FREEZES_MAX == 0:
                gc.unfreeze()  # what else was there by chance is looked at
            gc.freeze()
        return found

    @property
    def cells(self) -> CellCache:
        if self._cells is None:
            from tidewheel.views.grid import CellCache

            self._cells = CellCache()
        return self._cells

    @property
    def graphs(self) -> ToldGraphs:
        """Returns the memory of graphs that were sent; only the thread of views uses it."""
        if self._graphs is None:
            from tidewheel.views.graph import ToldGraphs

            self._graphs = ToldGraphs()
        return self._graphs

    async def apart(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs work in the thread of views, so that no request waits for it, and returns its
        result. What takes long waits for its turn: ``view``."""
        return await self._apart.run(work)

    async def view(
        self,
        name: str,
        keys: Sequence[str],
        small: Callable[[], Coroutine[Any, Any, Result]],
        giant: Callable[[StoreSettings], Result] | None = None,
    ) -> Result:
        """Works out something of a run in the thread of views; of a giant, if that can be done
        elsewhere, in a process of its own, because it takes many seconds."""
        where = self._where
        turn = await self._views.begin(keys)
        if where is None or giant is None:  # no other process can open the store
            return await self._apart.run(small(), turn.end)

        async def bounded() -> Result:
            with bounded_growth(GIANT_SIZE):
                return await small()

        try:
            return await self._apart.run(bounded(), turn.end)
        except Outgrown:
            return await self._processes.run(name, partial(giant, where), keys)

    async def read(
        self, name: str, work: Callable[[], Result], keys: Sequence[str] = ()
    ) -> Result:
        """Does work that reads a definition: in a thread, if the definition is small, else in a
        process with limits, when it is the turn of who has these keys, or of the team whose
        name it has."""
        keys = keys or (name.partition("/")[0],)
        turn = await self._reading.begin(keys)
        loop, given_up = asyncio.get_running_loop(), threading.Event()
        self._read_now.add(given_up)

        def is_over() -> None:
            self._read_now.discard(given_up)
            turn.end()

        future = self._threads.submit(_bounded, work, given_up)
        # A thread cannot be ended: until it has found out by itself, its turn is not over.
        future.add_done_callback(lambda _: call_in(loop, is_over))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            given_up.set()
            raise
        except Outgrown:
            return await self._processes.run(name, work, keys)

    def close(self) -> None:
        for one in self._read_now:
            one.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._apart.close()
        self._processes.close()


def _bounded(work: Callable[[], Result], given_up: threading.Event) -> Result:
    with bounded_growth(GIANT_SIZE, given_up):
        return work()


@dataclass(frozen=True, slots=True)
class AskedServices:
    """Is the services for runs as one request sees them.

    What takes long has a place among slow work, waits for the turn of its caller, and ends if
    the caller hangs up.
    """

    services: RunServices
    place: RequestSlot

    def of(self, store: Store) -> RunDoor:
        """Returns the service for runs of a store."""
        return self.services.of(store, self.read)

    @property
    def home(self) -> Path:
        return self.services.home

    @property
    def graphs(self) -> ToldGraphs:
        return self.services.graphs

    @property
    def summaries(self) -> SummaryCache:
        return self.services.summaries

    @property
    def cells(self) -> CellCache:
        return self.services.cells

    async def apart(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await self.services.apart(work)

    async def look(self, store: Store, view: str, arguments: Document) -> Document:
        """Returns a view of a run."""
        found: Document = await self._looked(store, view, arguments, look_in_process)
        return found

    async def shown(self, store: Store, view: str, arguments: Document) -> Document | bytes:
        """Returns a view of a run; that of a giant as the JSON that its process has written,
        because to read it here would keep all others waiting."""
        found: Document | bytes = await self._looked(store, view, arguments, show_in_process)
        return found

    async def _looked(
        self, store: Store, view: str, arguments: Document, giant: Callable[..., Any]
    ) -> Any:  # noqa: ANN401 - a document or bytes
        door, asked = self.of(store), {"view": view, "arguments": arguments}
        return await self.view(
            str(arguments.get("run", "")),
            lambda: door.look(view, arguments),
            partial(giant, home=self.home, **asked),
        )

    async def view(
        self,
        name: str,
        small: Callable[[], Coroutine[Any, Any, Result]],
        giant: Callable[[StoreSettings], Result] | None = None,
        *,
        may_end: bool = True,
    ) -> Result:
        """Works out something of a run; ``may_end``: also if that is ended halfway, nothing is
        half done."""
        with self.place.slow(may_end=may_end):
            return await self.services.view(name, self.place.keys(name), small, giant)

    async def read(self, name: str, work: Callable[[], Result], /) -> Result:
        """Does work that reads a definition."""
        with self.place.slow():
            return await self.services.read(name, work, self.place.keys(name))


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

    async def run(
        self, work: Coroutine[Any, Any, Result], when_over: Callable[[], None] = lambda: None
    ) -> Result:
        """Runs work in the loop of the thread; a cancelled caller cancels the work, too.

        ``when_over`` is called when the work has really ended: cancelled work goes on until it
        waits for something.
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            body = (self._loop,)
            threading.Thread(target=_serve, args=body, name="views", daemon=True).start()
        loop, there = asyncio.get_running_loop(), self._loop
        outcome: asyncio.Future[Result] = loop.create_future()
        doing: list[asyncio.Task[Result]] = []

        def begin() -> None:
            doing.append(there.create_task(work))
            doing[0].add_done_callback(lambda task: call_in(loop, end, task))

        def end(task: asyncio.Task[Result]) -> None:
            when_over()
            failure = None if task.cancelled() else task.exception()
            if outcome.cancelled() or task.cancelled():
                outcome.cancel()
            elif failure is not None:
                outcome.set_exception(failure)
            else:
                outcome.set_result(task.result())

        def cancel() -> None:  # after it has begun, so its end is told in any case
            doing[0].cancel()

        there.call_soon_threadsafe(begin)
        try:
            return await outcome
        except asyncio.CancelledError:
            call_in(there, cancel)
            raise

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
LOOK_SECONDS_MAX = 1.0  # who asks again is told more
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
        looked, until = 0, time.monotonic() + LOOK_SECONDS_MAX
        for run in unknown[:looks_max]:
            if looked and time.monotonic() > until:
                break
            looked += 1
            # As it was listed: what happens meanwhile is looked for the next time.
            summary = await look(run["name"])
            place = (run["number"], names)
            self._known.pop(place, None)
            self._known[place] = (_version(run), summary)
            while len(self._known) > self._known_max:
                del self._known[next(iter(self._known))]
        found = [(run, self._at_hand(run, names)) for run in runs]
        shown = [run | {"summary": None if one is None else one[1]} for run, one in found]
        return shown, len(unknown) - looked

    def _at_hand(
        self, run: Document, names: tuple[str, ...]
    ) -> tuple[Hashable, Document | None] | None:
        known = self._known.get((run["number"], names))
        return known if known is not None and known[0] == _version(run) else None


def _version(run: Document) -> Hashable:
    """Returns a value that changes whenever a summary may change: every batch leaves its time
    in the row of its run, and a definition that cannot be read may be mended."""
    return run["status"], run["updated_at"], run["definition"], run["driven"]
