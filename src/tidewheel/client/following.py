"""Following what happens: the same iterator on a store and on a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from tidewheel.config import home_directory
from tidewheel.core.operator.stream import EventFilter, EventKind, FollowedEvent, read_cursor
from tidewheel.errors import BadSetting
from tidewheel.ports.runs import BringsEvents
from tidewheel.ports.store import Store
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.wakeup import SystemClock
from tidewheel.views.events import follow_store


def follow(
    store: TaskStore, since: str | None, run: str | None, queue: str | None, kind: str | None
) -> AsyncIterator[FollowedEvent]:
    """Events after an id, else from now on."""
    if kind is not None and kind not in tuple(EventKind):
        raise BadSetting("kind", kind, " or ".join(EventKind))
    if since is not None:
        read_cursor(since)
    which = EventFilter(run=run, queue=queue, kind=None if kind is None else EventKind(kind))
    if isinstance(store, BringsEvents):
        return store.follow_events(since, which)
    home = home_directory()
    return follow_store(cast("Store", store), home, since, which, SystemClock())
