"""Answers whether the server lives, whether it can work, and with figures for monitoring."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from tidewheel.core.queue.access import Scope, covers_workflow
from tidewheel.errors import TidewheelError
from tidewheel.ports.store import Store
from tidewheel.server import metrics
from tidewheel.server.call import Answer, Call
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.metrics import StoreFigures
from tidewheel.server.routes import Needs, Open, Route, no_queue
from tidewheel.server.wire.validation import Out

READY_SECONDS_MAX = 2.0
RUNS_MAX = 1_000


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
    body = metrics.text(call.metrics, await seen_by(call))
    return Answer(body=body, media_type=metrics.MEDIA_TYPE)


async def seen_by(call: Call) -> StoreFigures:
    """Returns what the store knew a moment ago, as far as this caller may see it."""
    seen = await call.metrics.seen(partial(_look, call.store))
    return replace(
        seen,
        queues=[one for one in seen.queues if call.covers(one.queue)],
        workers=[one for one in seen.workers if call.sees(one)],
        runs=[one for one in seen.runs if covers_workflow(call.grant, one.workflow)],
    )


async def _look(store: Store) -> StoreFigures:
    return StoreFigures(
        queues=await store.queues(),
        workers=await store.workers(),
        runs=await store.runs(count=RUNS_MAX),
        figures=await store.figures(),
    )


ROUTES = (
    Route(
        method="GET",
        path="/healthz",
        guard=Open(because="a supervisor has no token"),
        handler=live,
        says="Whether the process answers.",
        answers=Health,
        urgency=Urgency.REPORT,  # else a server that has much to do would be ended for it
    ),
    Route(
        method="GET",
        path="/readyz",
        guard=Open(because="a load balancer has no token"),
        handler=ready,
        says="Whether the store answers; 503 if not.",
        answers=Health,
        urgency=Urgency.REPORT,
    ),
    Route(
        method="GET",
        path="/metrics",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=figures,
        media_type="text/plain",
        says="Figures for Prometheus: queues, workers, runs, database, requests.",
        answers=str,
    ),
)
