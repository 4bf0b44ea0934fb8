"""The doors to runs of this process, which remember definitions from one request to the next.

To read a definition may take seconds, and every view of a run needs it: it is read in a thread,
so that heartbeats are answered meanwhile, and once.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel import wiring
from tidewheel.ports import Store
from tidewheel.run_ports import RunDoor

if TYPE_CHECKING:
    from tidewheel.core.runs.views import RunView
    from tidewheel.services.definitions import RestoredDefinition
    from tidewheel.services.workflow_state import DefinitionOf

DEFINITIONS_MAX = 32


class RunDoors:
    """One for each store that a server uses; nothing is loaded before the first request."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._doors: dict[int, RunDoor] = {}

    def of(self, store: Store) -> RunDoor:
        """The runs of a store that lives as long as the server does."""
        if id(store) not in self._doors:
            from tidewheel.services.workflow_state import remembering  # noqa: PLC0415

            remembered = remembering(_in_threads(store, self._home), DEFINITIONS_MAX)
            self._doors[id(store)] = wiring.run_door(store, self._home, remembered)
        return self._doors[id(store)]


def _in_threads(store: Store, home: Path) -> DefinitionOf:
    async def definition_of(run: RunView) -> RestoredDefinition:
        from tidewheel.services.definitions import restore  # noqa: PLC0415

        definition = await store.definition(run.definition)
        folder = home / "runs" / run.name
        return await asyncio.to_thread(restore, definition, run.options, folder)

    return definition_of
