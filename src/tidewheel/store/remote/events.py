"""What happens in a server's store, heard from its event stream over several connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING

from tidewheel.errors import Unavailable
from tidewheel.store.remote.asking import Asking

if TYPE_CHECKING:
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent

PAUSE_SECONDS = 0.2
PAUSE_SECONDS_MAX = 5.0


class RemoteEvents(Asking):
    """Follows along; a connection that is lost costs nothing but time."""

    async def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]:
        """Until the caller ends it; Unavailable only if the server was never reached."""
        failures, last, is_begun = 0, since, False
        while True:
            try:
                async with aclosing(self._stream(last, which)) as stream:
                    async for event in stream:
                        failures, last = 0, event.id
                        if event.kind != "start" or not is_begun:
                            yield event
                        is_begun = True
            except Unavailable:
                if not is_begun:
                    raise
            failures += 1
            # Anything up to the bound: a herd that lost its server comes back spread.
            longest = min(PAUSE_SECONDS * 2.0 ** min(failures, 10), PAUSE_SECONDS_MAX)
            await asyncio.sleep(random.uniform(0.0, longest))

    async def _stream(
        self, last: str | None, which: EventFilter
    ) -> AsyncGenerator[FollowedEvent, None]:
        from tidewheel.core.operator.stream import FollowedEvent  # noqa: PLC0415 - few need it

        query = {"run": which.run, "queue": which.queue, "kind": which.kind}
        events = self.transport.events("/events", query=query, last_event_id=last)
        async with aclosing(events) as told:  # type: ignore[type-var]
            async for event in told:
                yield FollowedEvent(event.event, event.id or "", event.json)
