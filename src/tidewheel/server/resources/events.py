"""Answers with what happens in the store: a stream of events, and the state to begin with."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.api.runs import EventSnapshot
from tidewheel.core.operator.stream import EventFilter, EventKind, read_cursor
from tidewheel.core.queue.access import Scope
from tidewheel.errors import BadSetting
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, Overloaded
from tidewheel.server.event_broadcaster import EventStream
from tidewheel.server.routes import API, Needs, Route
from tidewheel.server.wire.validation import In
from tidewheel.views.events import queue_snapshot, run_snapshot


class WhereQuery(In):
    """A run with its submissions, by name or number, or a queue."""

    run: str | None = None
    queue: str | None = None


class EventsQuery(WhereQuery):
    """The parameters that select events: of which kind, and after which id.

    The header Last-Event-ID counts more than `since`.
    """

    kind: EventKind | None = None
    since: str | None = None


async def queue_asked(call: Call) -> Iterable[str]:
    """The queue that the query names, if any."""
    queue = call.query_as(WhereQuery).queue
    return () if queue is None else (queue,)


async def workflow_asked(call: Call) -> Iterable[str]:
    """The workflow of the run that the query names, if any."""
    run = call.query_as(WhereQuery).run
    if run is None:
        return ()
    call.run = await call.asking.find_run(run)
    return (call.run.workflow,)


async def follow(call: Call) -> object:
    """Every event is shown only if the token covers its queue or workflow."""
    assert call.token is not None
    if call.metrics.streams >= call.settings.followers_max or call.stopping.is_set():
        raise Overloaded()
    query = call.query_as(EventsQuery)
    given = call.last_event_id or query.since
    try:
        since = None if given is None else read_cursor(given)
    except BadSetting as error:
        raise BadRequest([str(error)]) from None
    run = None if call.run is None else call.run.name
    which = EventFilter(run=run, queue=query.queue, kind=query.kind)
    return EventStream(call.hub.follow(which, call.token, since), call.metrics)


async def snapshot(call: Call) -> object:
    """Answers with the state of a run or of a queue."""
    query = call.query_as(WhereQuery)
    if (query.run is None) == (query.queue is None):
        raise BadRequest(["name either a run or a queue"])
    if call.run is not None:
        home = call.settings.state_directory
        return await call.doors.apart(run_snapshot(call.store, call.run, home))
    assert query.queue is not None
    return await queue_snapshot(call.store, query.queue)


_READS = Needs(scopes=(Scope.READ,), queues=queue_asked, workflows=workflow_asked)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/events",
        guard=_READS,
        handler=follow,
        media_type=EventStream.media_type,
        says="Server-sent events: task, run, resync; ids for Last-Event-ID.",
        query=EventsQuery,
        answers=str,
    ),
    Route(
        method="GET",
        path=f"{API}/events/snapshot",
        guard=_READS,
        handler=snapshot,
        says="The state of a run or a queue, and the id from which its events go on.",
        query=WhereQuery,
        answers=EventSnapshot,
    ),
)
