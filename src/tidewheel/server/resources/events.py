"""Answers with events as they happen: streams, the channel of a worker, waiting for news."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeVar

import msgspec
from starlette.responses import StreamingResponse

from tidewheel.api.operation import READ, WORKER
from tidewheel.api.runs import EventSnapshot
from tidewheel.core.operator.stream import EventFilter, EventKind, read_cursor
from tidewheel.core.queue.access import Name, Served, run_name
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import BadSetting, NotFound, Unavailable
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, Overloaded
from tidewheel.server.event_broadcaster import EventStream
from tidewheel.server.routes import Needs, RouteList, no_name, queue_asked
from tidewheel.server.validation import In
from tidewheel.views.events import queue_snapshot, run_snapshot
from tidewheel.wiring.services import snapshot_in_process

ROUTES, CHANNEL_ROUTES = RouteList(), RouteList()


class WhereQuery(In):
    """Names a run, by name or number, with its submissions, or a queue."""

    run: str | None = None
    queue: str | None = None


class EventsQuery(WhereQuery):
    """Holds the parameters that select events: of which kind, and after which id.

    The header Last-Event-ID counts more than `since`.
    """

    kind: EventKind | None = None
    since: str | None = None


async def _asked(call: Call) -> Iterable[Name]:
    """Returns the names of the queue and of the run in the query, if it has some."""
    names, run = [*await queue_asked(call)], call.query_as(WhereQuery).run
    if run is not None:
        call.run = await call.run_called(run)
        names.append(run_name(call.run.name))
    return names


_READS = Needs(READ, _asked)


@ROUTES.add(
    "GET /events",
    _READS,
    "Server-sent events of tasks and runs. To continue after an interruption, send the id of "
    "the last event as Last-Event-ID.",
    str,
    query=EventsQuery,
    media_type=EventStream.media_type,
)
async def follow(call: Call) -> object:
    """Returns a stream of the events of what the token covers."""
    assert call.token is not None
    if (
        call.server.metrics.streams >= call.server.settings.followers_max
        or call.server.stopping.is_set()
    ):
        raise Overloaded()
    query = call.query_as(EventsQuery)
    given = call.last_event_id or query.since
    try:
        since = None if given is None else read_cursor(given)
    except BadSetting as error:
        raise BadRequest([str(error)]) from None
    run = None if call.run is None else call.run.name
    which = EventFilter(run=run, queue=query.queue, kind=query.kind)
    call.server.quotas.check_stream(call.token)
    held = call.server.quotas.held_stream(call.token)
    return EventStream(
        call.server.hub.follow(which, call.token, since), call.server.metrics, held
    )


@ROUTES.add(
    "GET /events/snapshot",
    _READS,
    "The state of a run or a queue, and the id from which its events continue.",
    EventSnapshot,
    query=WhereQuery,
)
async def snapshot(call: Call) -> object:
    """Answers with the state of a run or of a queue, and the id from which events go on."""
    query = call.query_as(WhereQuery)
    if (query.run is None) == (query.queue is None):
        raise BadRequest(["name either a run or a queue"])
    if call.run is not None:
        store, run, home = call.store, call.run, call.server.settings.state_directory
        giant: Any = partial(snapshot_in_process, home=home, run=run)
        return await call.doors.view(run.name, lambda: run_snapshot(store, run, home), giant)
    assert query.queue is not None
    return await queue_snapshot(call.store, query.queue)


# The channel of a worker: it hears at once what to cancel and where there is work (003).
#
# Server-sent events: `cancel` {id, attempt}, once for each lease; `wake`, when tasks may have
# become ready in one of the worker's queues. A channel that was lost costs nothing but time:
# the next heartbeat says the same, and a new channel begins with every cancel that is open.

LOOK_SECONDS = 0.5  # whether the token is still good
SIGN_OF_LIFE_LOOKS = 20  # then a comment keeps the connection open
RETRY_MS = 1000


@CHANNEL_ROUTES.add(
    "GET /workers/{id}/channel",
    Needs(WORKER, no_name, worker=lambda call: call.path["id"]),
    "Server-sent events for a worker: `cancel` for jobs that must end, `wake` for new tasks.",
    str,
    media_type="text/event-stream",
)
async def channel(call: Call) -> object:
    if call.server.metrics.channels >= call.server.settings.channels_max:
        raise Overloaded()
    worker = WorkerId(call.path["id"])
    known = [one for one in await call.store.workers() if one.id == worker]
    if not known:
        raise NotFound("live worker", worker)

    async def counted() -> AsyncIterator[bytes]:
        call.server.metrics.channels += 1
        try:
            async for event in _worker_events(call, worker, Served(known[0].queues)):
                yield event
        finally:
            call.server.metrics.channels -= 1

    return StreamingResponse(counted(), media_type="text/event-stream")


async def _worker_events(call: Call, worker: WorkerId, served: Served) -> AsyncIterator[bytes]:
    told: set[tuple[str, int]] = set()
    work = True  # for all that came while nobody listened

    def is_served(queue: str) -> bool:
        # A worker may serve more by pattern than it may claim: it hears nothing of the rest.
        return queue in served and call.covers_queue(queue)

    def concerns(wake: Wake) -> bool:
        nonlocal work
        work = work or wake.everything or any(map(is_served, wake.queues))
        return work or worker in wake.workers

    yield f"retry: {RETRY_MS}\n\n".encode()
    with NewsListener(call, concerns) as ears:
        looks, heard = 0, True
        while not call.server.stopping.is_set() and await _may_listen(call):
            if heard or looks % SIGN_OF_LIFE_LOOKS == 0:  # news may be lost on their way
                asked = told
                with suppress(Unavailable):
                    asked = set(await call.store.cancelling(worker))
                for task_id, attempt in sorted(asked - told):
                    yield _event("cancel", {"id": task_id, "attempt": attempt})
                told = asked
            if work:
                work = False
                yield _event("wake", {})
            elif looks % SIGN_OF_LIFE_LOOKS == 0:
                yield b": still here\n\n"
            looks += 1
            heard = await ears.heard(LOOK_SECONDS)


async def _may_listen(call: Call) -> bool:
    assert call.token is not None
    try:
        return await call.server.authenticator.is_valid(call.token)
    except Unavailable:
        return False  # it comes back, and is told everything then


def _event(name: str, body: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(body))


# Waiting for news of the store, for as long as the server goes on.


class NewsListener:
    """Listens to the store for news that concern a request, for as long as the block lasts.

    Use: ``with NewsListener(call, concerns) as ears: await ears.heard(seconds)``.
    """

    def __init__(self, call: Call, concerns: Callable[[Wake], bool]) -> None:
        self._call, self._concerns = call, concerns
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._stop_listening: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._stop_listening = self._call.store.listen(self._ring)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_listening()

    def _ring(self, wake: Wake) -> None:
        if self._concerns(wake):
            self._loop.call_soon_threadsafe(self._woken.set)

    async def heard(self, seconds: float) -> bool:
        """Waits for news; returns False if the time ends or the server stops before any."""
        news = asyncio.create_task(self._woken.wait())
        end = asyncio.create_task(self._call.server.stopping.wait())
        try:
            with suppress(TimeoutError), self._call.place.resting():
                await asyncio.wait(
                    (news, end), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            news.cancel()
            end.cancel()
        was_heard = self._woken.is_set()
        self._woken.clear()
        return was_heard


Result = TypeVar("Result")


async def unless_stopping(call: Call, work: Coroutine[Any, Any, Result]) -> Result | None:
    """Returns the result of the work; None if the server was told to stop before.

    While it waits, the request does not count among those that are under way.
    """
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(call.server.stopping.wait())
    try:
        with call.place.resting():
            await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for one in (doing, stopping):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one
