"""Following the events of a store that is here: told by it, or asking where it cannot tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from tidewheel.core.operator.stream import EventCursor, EventFilter, FollowedEvent, read_cursor
from tidewheel.core.queue.requests import Wake
from tidewheel.errors import Unavailable
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.services.alarm import Alarm
from tidewheel.views.events import EventDocuments

LOOK_SECONDS = 0.2  # not every change wakes those who listen
TROUBLE_SECONDS = 1.0
PAGE_EVENTS = 500


async def follow_store(
    store: Store, home: Path, since: str | None, which: EventFilter, clock: Clock
) -> AsyncIterator[FollowedEvent]:
    """Until the caller ends it; Unavailable only at the beginning."""
    if which.run is not None:
        which = replace(which, run=(await store.find_run(which.run)).name)
    cursor = read_cursor(since) if since is not None else await store.events_head()
    documents, alarm = EventDocuments(store, home), Alarm(clock)

    def ring(_: Wake) -> None:
        alarm.ring()

    stop_listening = store.listen(ring)
    try:
        yield FollowedEvent("start", str(cursor), {})
        while True:
            try:
                page = await store.events_after(cursor, which, PAGE_EVENTS)
            except Unavailable:
                await alarm.wait(TROUBLE_SECONDS)
                continue
            if page.is_lost:
                yield FollowedEvent("resync", str(page.next), {})
            for event in page.events:
                place = EventCursor(page.next.store, event.place)
                yield FollowedEvent(event.kind, str(place), await documents.of(event))
            cursor = page.next
            if page.is_last:
                await alarm.wait(LOOK_SECONDS)
    finally:
        stop_listening()
