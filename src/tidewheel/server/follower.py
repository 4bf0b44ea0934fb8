"""One reader of the event stream: what it may see, and a buffer of what it has not read yet.

A buffer takes 256 events or 1 MiB. Whoever reads too slowly for that is told to look at the
state anew, and closed; memory never grows with the patience of readers.
"""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple

from tidewheel.core.operator.stream import (
    Event,
    EventCursor,
    EventFilter,
    EventPlace,
    TaskEvent,
)
from tidewheel.core.queue.access import (
    EVERYTHING,
    Grant,
    TokenView,
    covers_queue,
    covers_workflow,
)

EVENTS_MAX = 256
BYTES_MAX = 1024 * 1024
RETRY_MS = (500, 3_000)  # not all at once


class Told(NamedTuple):
    """An event, encoded once for everybody."""

    event: Event
    text: bytes


def block(kind: str, cursor: EventCursor, data: bytes) -> bytes:
    """An event of a stream; JSON has no line ends of its own."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(cursor).encode(), kind.encode(), data)


def resync(cursor: EventCursor) -> bytes:
    """Something was missed: read the state anew, then go on from here."""
    return block("resync", cursor, b"{}")


def greeting(cursor: EventCursor) -> bytes:
    """Before anything happens a reader already knows from where it reads."""
    return b"retry: %d\n%s" % (random.randint(*RETRY_MS), block("start", cursor, b"{}"))


def sign_of_life(cursor: EventCursor) -> bytes:
    """Nothing that concerns the reader happened up to here."""
    return b": here\nid: %s\n\n" % str(cursor).encode()


def may_see(grant: Grant, event: Event) -> bool:
    """As for every other look at tasks and runs."""
    if isinstance(event, TaskEvent):
        return covers_queue(grant, event.queue)
    return covers_workflow(grant, event.workflow)


class Follower:
    """Somebody at the other end of a stream."""

    __slots__ = (
        *("_bytes", "_news", "_parts", "_sees_all"),
        *("cursor", "is_over", "is_slow", "token", "which"),
    )

    def __init__(self, which: EventFilter, token: TokenView, cursor: EventCursor) -> None:
        self.which, self.token = which, token
        self._sees_all = token.grant.queues == token.grant.workflows == EVERYTHING
        self.cursor = cursor  # up to here it has read, or will from its buffer
        self.is_over = self.is_slow = False
        self._parts: list[bytes] = []
        self._bytes = 0
        self._news = asyncio.Event()

    def wants(self, event: Event) -> bool:
        """Whether it asked for this, and may see it."""
        return self.which.wants(event) and (self._sees_all or may_see(self.token.grant, event))

    def is_behind(self, place: EventPlace) -> bool:
        return self.cursor.place < place

    @property
    def is_crowded(self) -> bool:
        """There may be no room for what comes next."""
        return len(self._parts) > EVENTS_MAX // 2 or self._bytes > BYTES_MAX // 2

    @property
    def is_idle(self) -> bool:
        return not self._parts

    def put(self, text: bytes, cursor: EventCursor) -> None:
        """One more; where there is no room, all that is left to say is that there was none."""
        if self.is_over:
            return
        self.cursor = cursor
        if len(self._parts) >= EVENTS_MAX or self._bytes + len(text) > BYTES_MAX:
            self.is_slow = True
            self._parts.clear()
            self.end(resync(cursor))
            return
        self._parts.append(text)
        self._bytes += len(text)
        self._news.set()

    def end(self, last: bytes = b"") -> None:
        """Nothing comes behind this."""
        if not self.is_over:
            self.is_over = True
            self._parts.append(last)
            self._news.set()

    async def take(self) -> bytes:
        """All that there is, as soon as there is something; nothing: it is over."""
        while not self._parts and not self.is_over:
            await self._news.wait()
            self._news.clear()
        text = b"".join(self._parts)
        self._parts.clear()
        self._bytes = 0
        return text


def farewell() -> bytes:
    """The server stops; another, or the same again, goes on from where it ended."""
    return b"retry: %d\n: the server stops\n\n" % random.randint(*RETRY_MS)
