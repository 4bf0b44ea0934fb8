"""Reads the events of the store once, for all who follow them through this server.

Theory of operation
-------------------
The hub, as the broadcaster is called here, has one cursor. When the store has news, or a
fraction of a second after the last look, it reads what came after its cursor, encodes each
event once and puts it into the buffers of those who want it and may see it. While nobody
follows, it reads nothing.

A reader with a cursor of an earlier time first reads by itself, a page at a time and no faster
than it takes them, until it has read at least as far as the hub; then it joins, and what the
hub hands out from there on is all that comes after. Joining takes no time in which anything
else could happen, so nothing is missed, and places are compared, so nothing is told twice.

A burst is handed out in portions. Between them, other requests get as much time as the last one
took, and readers with little room a moment to catch up; those that do not are closed, so that
one slow reader holds up the others for that moment only.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidewheel.core.operator.stream import (
    EVERY_EVENT,
    Event,
    EventCursor,
    EventFilter,
    EventPage,
    EventPlace,
    RunEvent,
    TaskEvent,
)
from tidewheel.core.queue.access import TokenView, covers, queue_name, run_name
from tidewheel.core.queue.requests import Wake
from tidewheel.errors import Unavailable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.server.auth import Authenticator
from tidewheel.server.metrics import Metrics
from tidewheel.server.middleware import ABORT
from tidewheel.services.service import SystemClock, Wakeup
from tidewheel.views.events import EventDocuments

LOOK_SECONDS = 0.2  # not every change of the store wakes those who listen
REST_SECONDS = 0.02  # between two looks, however much news there is
TOKEN_SECONDS = 0.5  # a revocation counts within a second
LIFE_SECONDS = 10.0
TROUBLE_SECONDS = 1.0
PORTION = 100  # events handed out at once; buffers hold more
DELIVERIES_MAX = 10_000  # in one portion, so that heartbeats need not wait long
PATIENCE_SECONDS = 0.05  # for readers with little room, before the next portion
READING_MAX = 4  # that read of earlier times at once
PAGE_EVENTS = 200
_log = logging.getLogger("tidewheel.server")


class EventBroadcaster:
    """Sends the events of a store to all who follow them; a server has one."""

    def __init__(
        self,
        store: Store,
        documents: EventDocuments,
        authenticator: Authenticator,
        metrics: Metrics,
        stopping: asyncio.Event,
    ) -> None:
        self._store, self._documents = store, documents
        self._authenticator, self._metrics, self._stopping = authenticator, metrics, stopping
        self._followers: dict[Subscriber, None] = {}
        self._reading: asyncio.Task[None] | None = None
        self._cursor: EventCursor | None = None  # while it reads
        self._alarm = Wakeup(SystemClock())
        self._turns = asyncio.Semaphore(READING_MAX)
        self._tokens_at = self._life_at = 0.0

    # ---- one reader ----

    async def follow(
        self, which: EventFilter, token: TokenView, since: EventCursor | None
    ) -> AsyncIterator[bytes]:
        """Yields the texts to send to one reader, until the stream is over."""
        follower = Subscriber(
            which, token, since or self._cursor or await self._store.events_head()
        )
        try:
            # The first event tells the reader from where it reads.
            start = block("start", follower.cursor, b"{}")
            yield b"retry: %d\n%s" % (random.randint(*RETRY_MS), start)
            async for text in self._catching_up(follower, is_checked=since is None):
                yield text
            while text := await follower.take():
                yield text
        finally:
            self._followers.pop(follower, None)

    async def _catching_up(
        self, follower: Subscriber, *, is_checked: bool
    ) -> AsyncIterator[bytes]:
        """Yields earlier events until the follower has read as far as the hub, and joins it.
        The cursor with which a follower comes may be too old, or of another store."""
        is_at_end = is_checked
        while not (is_checked and self._joins(follower, is_at_end=is_at_end)):
            if self._stopping.is_set():
                follower.end(farewell())
                return
            if not await self._authenticator.is_valid(follower.token):
                follower.end()
                return
            async with self._turns:
                page = await self._store.events_after(
                    follower.cursor, follower.which, PAGE_EVENTS
                )
                told = await self._told(page, [e for e in page.events if follower.wants(e)])
            if page.is_lost:
                yield resync(page.next)
            if told:
                yield b"".join(one.text for one in told)
            follower.cursor, is_at_end, is_checked = page.next, page.is_last, True

    def _joins(self, follower: Subscriber, *, is_at_end: bool) -> bool:
        """Adds a reader that has read as far as the hub; returns False if it has not, or the
        hub stops.

        Nothing is awaited in between, so no event is missed.
        """
        if self._stopping.is_set():
            return False
        if self._cursor is None:
            if not is_at_end:
                return False
            self._cursor = follower.cursor
            self._reading = asyncio.create_task(self._run(), name="hub")
        elif (
            follower.is_behind(self._cursor.place)
            or follower.cursor.store != self._cursor.store
        ):
            return False
        self._followers[follower] = None
        return True

    # ---- all of them ----

    async def _run(self) -> None:
        def ring(_: Wake) -> None:
            self._alarm.ring()

        stop_listening = self._store.listen(ring)
        stopping = asyncio.create_task(self._stopping.wait())
        stopping.add_done_callback(lambda _: self._alarm.ring())
        try:
            while self._followers and not self._stopping.is_set():
                await self._look()
                await asyncio.sleep(REST_SECONDS)
        except Exception:
            _log.exception("the event stream broke off; clients that follow it connect again")
        finally:
            stop_listening()
            stopping.cancel()
            self._cursor = self._reading = None
            for follower in self._followers:
                follower.end(farewell())

    async def _look(self) -> None:
        """Makes one pass: checks tokens, hands out news, sends signs of life; then rests until
        there is more."""
        rest = LOOK_SECONDS
        try:
            await self._check_tokens()
            if not await self._read():
                rest = 0.0
        except Unavailable:
            rest = TROUBLE_SECONDS  # they stay: nothing happens that they could miss
        now = time.monotonic()
        if now - self._life_at >= LIFE_SECONDS and self._cursor is not None:
            self._life_at = now
            for follower in self._followers:
                if follower.is_idle and not follower.cursor.place > self._cursor.place:
                    here = b": here\nid: %s\n\n" % str(self._cursor).encode()
                    follower.put(here, self._cursor)
        if rest:
            await self._alarm.wait(rest)

    async def _read(self) -> bool:
        """Hands out the next page of events; says whether it was the last."""
        assert self._cursor is not None
        page = await self._store.events_after(self._cursor, EVERY_EVENT, PAGE_EVENTS)
        if page.is_lost:
            for follower in self._followers:
                follower.put(resync(page.next), page.next)
        told = await self._told(page, page.events)
        while told:
            begun = time.monotonic()
            portion = max(1, min(PORTION, DELIVERIES_MAX // max(1, len(self._followers))))
            self._hand_out(told[:portion], page.next.store)
            told = told[portion:]
            # Others get as much time as was spent, and crowded readers a moment to read.
            await asyncio.sleep(time.monotonic() - begun)
            if any(follower.is_crowded for follower in self._followers):
                await asyncio.sleep(PATIENCE_SECONDS)
        self._cursor = page.next
        return page.is_last

    def _hand_out(self, told: Sequence[Told], store: str) -> None:
        """Puts events into the buffers of the readers that want them, and moves the cursor
        along.

        Nothing is awaited in between, so that the next reader that joins misses nothing.
        """
        for event, text in told:
            self._cursor = EventCursor(store, event.place)
            for follower in self._followers:
                if follower.is_behind(event.place) and follower.wants(event):
                    follower.put(text, self._cursor)
        self._dismiss()

    def _dismiss(self) -> None:
        for follower in [one for one in self._followers if one.is_over]:
            self._metrics.streams_dropped += follower.is_slow
            del self._followers[follower]

    async def _told(self, page: EventPage, events: Sequence[Event]) -> list[Told]:
        told = []
        for event in events:
            text = msgspec.json.encode(await self._documents.of(event))
            cursor = EventCursor(page.next.store, event.place)
            told.append(Told(event, block(event.kind, cursor, text)))
            if isinstance(event, RunEvent):  # it may have changed thousands of tasks
                await asyncio.sleep(0)
        return told

    async def _check_tokens(self) -> None:
        """Ends the streams of readers whose token is no longer valid. It looks again after half
        a second at the earliest."""
        now = time.monotonic()
        if now - self._tokens_at < TOKEN_SECONDS:
            return
        tokens = {follower.token.number: follower.token for follower in self._followers}
        good = {
            number
            for number, token in tokens.items()
            if await self._authenticator.is_valid(token)
        }
        for follower in self._followers:
            if follower.token.number in tokens.keys() - good:
                follower.end()
        self._dismiss()
        self._tokens_at = now


# One reader of the event stream: what it may see, and a buffer of what it has not read yet.
#
# A buffer takes 256 events or 1 MiB. A reader that is too slow for that is told to look at the
# state anew, and its stream is closed; memory never grows with the number of unread events.

EVENTS_MAX = 256
BYTES_MAX = 1024 * 1024
RETRY_MS = (500, 3_000)  # not all at once


class Told(NamedTuple):
    """Holds an event with its text, which is encoded once for all followers."""

    event: Event
    text: bytes


def block(kind: str, cursor: EventCursor, data: bytes) -> bytes:
    """Returns the text of an event in a stream; JSON has no line ends of its own."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(cursor).encode(), kind.encode(), data)


def resync(cursor: EventCursor) -> bytes:
    """Returns the event for a reader that missed something.

    The reader has to read the state anew, and then goes on from this cursor.
    """
    return block("resync", cursor, b"{}")


class Subscriber:
    """Buffers events for the reader at the other end of a stream."""

    __slots__ = (
        *("_bytes", "_news", "_parts", "_sees_all"),
        *("cursor", "is_over", "is_slow", "token", "which"),
    )

    def __init__(self, which: EventFilter, token: TokenView, cursor: EventCursor) -> None:
        self.which, self.token = which, token
        self._sees_all = token.grant.covers_everything
        self.cursor = cursor  # up to here it has read, or will from its buffer
        self.is_over = self.is_slow = False
        self._parts: list[bytes] = []
        self._bytes = 0
        self._news = asyncio.Event()

    def wants(self, event: Event) -> bool:
        """Says whether the reader asked for this event, and may see it."""
        if not self.which.wants(event) or self._sees_all:
            return self.which.wants(event)
        if isinstance(event, TaskEvent):
            return covers(self.token.grant.names, queue_name(event.queue))
        return covers(self.token.grant.names, run_name(event.run))

    def is_behind(self, place: EventPlace) -> bool:
        return self.cursor.place < place

    @property
    def is_crowded(self) -> bool:
        """Says whether the buffer is over half full, so that what comes next may not fit."""
        return len(self._parts) > EVENTS_MAX // 2 or self._bytes > BYTES_MAX // 2

    @property
    def is_idle(self) -> bool:
        return not self._parts

    def put(self, text: bytes, cursor: EventCursor) -> None:
        """Adds an event; where there is no room, ends the stream with `resync` alone."""
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
        """Ends the stream; ``last`` is the last text that the reader gets."""
        if not self.is_over:
            self.is_over = True
            self._parts.append(last)
            self._news.set()

    async def take(self) -> bytes:
        """Waits for texts and returns all that there are; an empty one means the end."""
        while not self._parts and not self.is_over:
            await self._news.wait()
            self._news.clear()
        text = b"".join(self._parts)
        self._parts.clear()
        self._bytes = 0
        return text


def farewell() -> bytes:
    """Returns the last text of a server that stops; it tells the reader when to connect again.

    Another server, or the same one after its restart, goes on from where this one ended.
    """
    return b"retry: %d\n: the server stops\n\n" % random.randint(*RETRY_MS)


# An answer that stays open: sent as it comes, ended when nobody reads any more.

SEND_SECONDS_MAX = 30.0  # then nobody reads at the other end
HEADERS = {"x-accel-buffering": "no"}  # a proxy shall pass on each event at once


class EventStream(Response):
    """Sends server-sent events from an iterator, which is closed with the connection."""

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncIterator[bytes],
        metrics: Metrics,
        held: AbstractContextManager[None] | None = None,
    ) -> None:
        """Sets up a stream; ``held`` is entered while it is open."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events, self._metrics, self._held = events, metrics, held or nullcontext()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await self._send_until_gone(scope, receive, send)

    async def _send_until_gone(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort: Callable[[], None] = scope["extensions"][ABORT]["call"]
        sending = asyncio.ensure_future(self._send_all(send))
        gone = asyncio.ensure_future(_gone(receive))
        self._metrics.streams += 1
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            abort()  # a close would wait for a reader that does not read
            await gone
        finally:
            self._metrics.streams -= 1
            gone.cancel()
            sending.cancel()
            with suppress(asyncio.CancelledError, TimeoutError):
                await sending

    async def _send_all(self, send: Send) -> None:
        status, headers = self.status_code, self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        # If the store does not answer the stream ends; the reader connects again later.
        with suppress(Unavailable):
            async with aclosing(self._events) as events:  # type: ignore[type-var]
                async for text in events:
                    await self._send(send, text, more=True)
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, text: bytes, *, more: bool) -> None:
        async with asyncio.timeout(SEND_SECONDS_MAX):
            await send({"type": "http.response.body", "body": text, "more_body": more})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
