"""Answers for queues: what waits in them, their settings, claims; and for the whole store."""

from __future__ import annotations

import asyncio
from typing import Any

from tidewheel.api.operations import MANY, PAUSES, QUEUES
from tidewheel.api.tasks import QueueView
from tidewheel.api.wire import answer, out_type, time_text, write
from tidewheel.client.async_client import AsyncClient
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    ANY_RESOURCES,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    Report,
)
from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.server.call import Call
from tidewheel.server.operation_routes import routes_of
from tidewheel.server.resources.events import NewsListener
from tidewheel.server.routes import API, Needs, Route, queue_of_path
from tidewheel.server.wire.workers import ClaimIn, QueueIn

POLL_SECONDS = 5.0  # a wake-up may be lost; this bounds the wait
DUE_SECONDS_MIN = 0.001  # to ask sooner would be in vain
CLAIM_SECONDS_MAX = 100.0  # longer than a claim may wait

QueueOut = out_type(QueueView)
ClaimsOut = answer(
    "ClaimsOut",
    "None is no error.",
    tasks=list[Claimed],
    next_due_s=(float | None, None),  # of a delayed task, if nothing else comes before
)


async def list_ready_queues(call: Call) -> object:
    found = await call.store.ready_queues()
    seen = {queue: priority for queue, priority in found.items() if call.covers(queue)}
    return {"queues": list(seen), "priorities": seen}


async def get_queue(call: Call) -> object:
    return write(await AsyncClient(call.store).queue(call.path["queue"]))


async def configure(call: Call) -> object:
    form = call.body_as(QueueIn)
    changes: dict[str, Any] = {
        name: value
        for name in ("paused", "aging", "fence_kill", "lease_seconds")
        if (value := getattr(form, name)) is not None
    }
    if form.limits is not None:
        changes["limits"] = tuple(limit.value() for limit in form.limits)
    await AsyncClient(call.store).configure_queue(call.path["queue"], **changes)
    return await get_queue(call)


async def claim(call: Call) -> object:
    form = call.body_as(ClaimIn)
    request = ClaimRequest(
        queue=call.path["queue"],
        worker=WorkerId(form.worker),
        count=form.n,
        lease_seconds=form.lease_s,
        free=form.resources.free() if form.resources else ANY_RESOURCES,
        commands=form.commands,
        handlers=None if form.handlers is None else frozenset(form.handlers),
        bare=form.bare,
    )
    wait = min(form.wait_s, call.settings.wait_seconds_max)
    found = await _claim_or_wait(call, request, wait)
    return write({"tasks": list(found), "next_due_s": found.next_due_seconds})


async def _claim_or_wait(call: Call, request: ClaimRequest, seconds: float) -> ClaimedTasks:
    found = await _claim_for_caller(call, request)
    if found or not seconds:
        return found
    end = asyncio.get_running_loop().time() + seconds
    with NewsListener(
        call, lambda wake: wake.everything or request.queue in wake.queues
    ) as ears:
        found = await _claim_for_caller(call, request)  # for what came before we listened
        while not found and (left := end - asyncio.get_running_loop().time()) > 0:
            due = found.next_due_seconds
            rest = POLL_SECONDS if due is None else max(due, DUE_SECONDS_MIN)
            await ears.heard(min(left, rest, POLL_SECONDS))
            if call.stopping.is_set() or await call.is_gone():
                return found
            found = await _claim_for_caller(call, request)
    return found


async def _claim_for_caller(call: Call, request: ClaimRequest) -> ClaimedTasks:
    """Claims nothing for a caller who hung up, be it before anything was asked of the store or
    while it answered: a task for nobody would wait until its lease is over, and lapse for
    nothing."""
    if await call.is_gone():
        return ClaimedTasks()
    found = await call.store.claim(request)
    if found and await call.is_gone():
        await call.store.report([_given_back(task, request.worker) for task in found])
        return ClaimedTasks()
    return found


def _given_back(task: Claimed, worker: WorkerId) -> Report:
    holder = Holder(task_id=task.id, attempt=task.attempt, worker=worker)
    return Report(holder=holder, end=End(ending=Ending.YIELDED))


async def get_many(call: Call) -> object:
    found = await call.store.get_many([TaskId(one) for one in call.body.ids])
    call.require_queues({task.queue for task in found})
    return write({"tasks": found})


async def store_facts(call: Call) -> object:
    return {"id": await call.store.store_id(), "now": time_text(await call.store.now())}


_QUEUE = f"{API}/queues/{{queue}}"
MANY_ROUTES = routes_of(MANY, {"get_many": get_many, "store_id": store_facts})
ROUTES = (
    *routes_of(QUEUES, {"ready_queues": list_ready_queues, "queue": get_queue}),
    Route(
        method="PATCH",
        path=_QUEUE,
        guard=Needs(scopes=(Scope.OPERATE,), queues=queue_of_path),
        handler=configure,
        says="Change how a queue behaves: aging, fence_kill, lease_seconds, limits.",
        body=QueueIn,
        answers=QueueOut,
    ),
    *routes_of(PAUSES, then={"pause_queue": get_queue}),
    Route(
        method="POST",
        path=f"{_QUEUE}/claim",
        guard=Needs(
            scopes=(Scope.WORKER,),
            queues=queue_of_path,
            worker=lambda call: call.body_as(ClaimIn).worker,
        ),
        handler=claim,
        says="Up to n tasks, the oldest of the highest priority; wait_s waits for some.",
        body=ClaimIn,
        answers=ClaimsOut,
        audited=False,  # in the history of each task
        seconds_max=CLAIM_SECONDS_MAX,
    ),
)
