"""Whether the server lives, whether it can work, and figures for machines that watch it."""

from __future__ import annotations

import asyncio

from tidewheel.core.tasks.access import Scope
from tidewheel.errors import TidewheelError
from tidewheel.server import metrics
from tidewheel.server.call import Answer, Call
from tidewheel.server.routes import Needs, Open, Route, no_queue
from tidewheel.server.wire.forms import Out

READY_SECONDS_MAX = 2.0


class Health(Out):
    """ok, or what is wrong."""

    status: str


async def live(call: Call) -> object:
    del call
    return Health(status="ok")


async def ready(call: Call) -> object:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX):
            await call.store.now()
    except (TidewheelError, TimeoutError):
        return Answer(body=Health(status="the store does not answer"), status=503)
    return Health(status="ok")


async def figures(call: Call) -> object:
    queues = [view for view in await call.store.queues() if call.covers(view.queue)]
    workers = await call.store.workers()
    text = metrics.text(call.metrics, queues, workers)
    return Answer(body=text, media_type=metrics.MEDIA_TYPE)


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        guard=Open(because="a supervisor has no token"),
        handler=live,
        says="Whether the process answers.",
        answers=Health,
    ),
    Route(
        method="GET",
        path="/readyz",
        guard=Open(because="a load balancer has no token"),
        handler=ready,
        says="Whether the store answers; 503 if not.",
        answers=Health,
    ),
    Route(
        method="GET",
        path="/metrics",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=figures,
        media_type="text/plain",
        says="Figures for Prometheus: depth and age of queues, workers, leases, requests.",
        answers=str,
    ),
)
