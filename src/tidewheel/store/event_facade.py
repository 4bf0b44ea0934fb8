"""The EventStore port over any database that can run scripts.

What they need is loaded by the first one that runs: only those who follow along do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tidewheel.store.transaction import Result, Script

if TYPE_CHECKING:
    from tidewheel.core.operator.stream import EventCursor, EventFilter, EventPage

EVENTS_PER_PAGE = 1_000


class EventOperations(ABC):
    """An EventStore whose operations are scripts."""

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    async def events_after(
        self, cursor: EventCursor, which: EventFilter, count: int = EVENTS_PER_PAGE
    ) -> EventPage:
        from tidewheel.store.operations import event_stream

        return await self.look(lambda tx: event_stream.events_after(tx, cursor, which, count))

    async def events_head(self) -> EventCursor:
        from tidewheel.store.operations import event_stream

        return await self.look(event_stream.events_head)
