"""The channel of a worker: it hears at once what to cancel and where there is work (003).

Server-sent events: `cancel` {id, attempt}, once for each lease; `wake`, when tasks may have
become ready in one of the worker's queues. A channel that was lost costs nothing but time: the
next heartbeat says the same, and a new channel begins with every cancel that is open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

from tidewheel.core.queue.access import Scope, Served
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import NotFound, Unavailable
from tidewheel.server.call import Call
from tidewheel.server.errors import Overloaded
from tidewheel.server.long_poll import NewsListener
from tidewheel.server.routes import API, Needs, Route, no_queue

LOOK_SECONDS = 0.5  # whether the token is still good
SIGN_OF_LIFE_LOOKS = 20  # then a comment keeps the connection open
RETRY_MS = 1000


async def channel(call: Call) -> object:
    if call.metrics.channels >= call.settings.channels_max:
        raise Overloaded()
    worker = WorkerId(call.path["id"])
    known = [one for one in await call.store.workers() if one.id == worker]
    if not known:
        raise NotFound("live worker", worker)
    stream = _counted(call, _events(call, worker, Served(known[0].queues)))
    return StreamingResponse(stream, media_type="text/event-stream")


async def _counted(call: Call, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    call.metrics.channels += 1
    try:
        async for event in events:
            yield event
    finally:
        call.metrics.channels -= 1


async def _events(call: Call, worker: WorkerId, served: Served) -> AsyncIterator[bytes]:
    told: set[tuple[str, int]] = set()
    work = True  # for all that came while nobody listened

    def concerns(wake: Wake) -> bool:
        nonlocal work
        work = work or wake.everything or served.any_of(wake.queues)
        return work or worker in wake.workers

    yield f"retry: {RETRY_MS}\n\n".encode()
    with NewsListener(call, concerns) as ears:
        looks, heard = 0, True
        while not call.stopping.is_set() and await _may_listen(call):
            if heard or looks % SIGN_OF_LIFE_LOOKS == 0:  # news may be lost on their way
                asked = await _asked(call, worker, told)
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
        return await call.authenticator.is_valid(call.token)
    except Unavailable:
        return False  # it comes back, and is told everything then


async def _asked(
    call: Call, worker: WorkerId, told: set[tuple[str, int]]
) -> set[tuple[str, int]]:
    try:
        return set(await call.store.cancelling(worker))
    except Unavailable:
        return told


def _event(name: str, body: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(body))


ROUTES = (
    Route(
        method="GET",
        path=f"{API}/workers/{{id}}/channel",
        guard=Needs(
            scopes=(Scope.WORKER,), queues=no_queue, worker=lambda call: call.path["id"]
        ),
        handler=channel,
        media_type="text/event-stream",
        says="Server-sent events for a worker: cancel, at once; wake, when there may be work.",
        answers=str,
    ),
)
