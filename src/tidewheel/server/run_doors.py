"""The doors to runs of this process, which remember definitions from one request to the next.

To read a definition may take seconds, and every view of a run needs it: it is read once. That,
and what is worked out from it, is done apart, so that heartbeats are answered meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidewheel.ports.runs import RunDoor
from tidewheel.ports.store import Store
from tidewheel.server.apart import Apart, Result
from tidewheel.server.known_summaries import KnownSummaries
from tidewheel.wiring.doors import run_door

if TYPE_CHECKING:
    from tidewheel.views.graph import ToldGraphs

DEFINITIONS_MAX = 32
BEGINNING_MAX = 2  # runs whose definitions are read at once


class RunDoors:
    """One for each store that a server uses; nothing is loaded before the first request."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._doors: dict[int, RunDoor] = {}
        self._apart = Apart()
        self._graphs: ToldGraphs | None = None
        self.summaries = KnownSummaries()
        # Threads are few, and logs are read and written by the same.
        self.beginning = asyncio.Semaphore(BEGINNING_MAX)

    def of(self, store: Store) -> RunDoor:
        """The runs of a store that lives as long as the server does."""
        if id(store) not in self._doors:
            from tidewheel.services.state_documents import definitions_of
            from tidewheel.services.workflow_state import remembering

            remembered = remembering(definitions_of(store, self._home), DEFINITIONS_MAX)
            self._doors[id(store)] = run_door(store, self._home, remembered)
        return self._doors[id(store)]

    @property
    def graphs(self) -> ToldGraphs:
        """Those that pages were told; used apart only, so by one thread."""
        if self._graphs is None:
            from tidewheel.views.graph import ToldGraphs

            self._graphs = ToldGraphs()
        return self._graphs

    async def apart(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Whatever reads a definition or a whole pool, where it keeps nobody waiting."""
        return await self._apart.run(work)

    def close(self) -> None:
        self._apart.close()
