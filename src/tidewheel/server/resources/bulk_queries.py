"""Answers for many things at once: tasks by their ids, what comes next, the whole store."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.api.tasks import Task, Violation
from tidewheel.api.wire import Out, answer, time_text, write
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.statistics import ATTEMPTS_MAX, EndedAttempt
from tidewheel.core.queue.task import TaskId
from tidewheel.server.call import Call
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.routes import API, Needs, Route, no_queue, queue_of_path
from tidewheel.server.wire.validation import In


class IdsIn(In):
    """The ids of tasks."""

    ids: list[str]  # up to 10,000


class PeekQuery(In):
    """The parameter that limits how many tasks are shown."""

    count: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10


class EndedQuery(In):
    """The parameter that limits how many ends of attempts are shown."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=ATTEMPTS_MAX)] = 1_000


TasksOut = answer("TasksOut", "Tasks with every field.", tasks=list[Task])


class EndedOut(Out):
    """Attempts that are over, newest first, as far as figures need them."""

    attempts: list[EndedAttempt]


class StoreOut(Out):
    """The id of the store, and the time by its clock."""

    id: str
    now: str | None


class ViolationsOut(Out):
    """Every row that breaks a promise; none is the right answer."""

    violations: list[Violation]


async def get_many(call: Call) -> object:
    found = await call.store.get_many([TaskId(one) for one in call.body_as(IdsIn).ids])
    call.require_queues({task.queue for task in found})
    return write({"tasks": found})


async def peek(call: Call) -> object:
    found = await call.store.peek(call.path["queue"], call.query_as(PeekQuery).count)
    return write({"tasks": found})


async def ended_attempts(call: Call) -> object:
    found = await call.store.ended_attempts(call.query_as(EndedQuery).limit)
    return EndedOut(attempts=[one for one in found if call.covers(one.queue)])


async def store(call: Call) -> object:
    return StoreOut(id=await call.store.store_id(), now=time_text(await call.store.now()))


async def verify(call: Call) -> object:
    return ViolationsOut(violations=await call.store.verify())


_READS = Needs(scopes=(Scope.READ,), queues=no_queue)
ROUTES = (
    Route(
        method="POST",
        path=f"{API}/tasks/get",
        guard=_READS,  # and the handler looks at the queue of each
        handler=get_many,
        says="Many tasks by their ids, as they are at one moment, in this order.",
        body=IdsIn,
        answers=TasksOut,
        audited=False,
        urgency=Urgency.READ,
    ),
    Route(
        method="GET",
        path=f"{API}/queues/{{queue}}/peek",
        guard=Needs(scopes=(Scope.READ,), queues=queue_of_path),
        handler=peek,
        says="What would be claimed next from a queue, without taking it.",
        query=PeekQuery,
        answers=TasksOut,
    ),
    Route(
        method="GET",
        path=f"{API}/ended-attempts",
        guard=_READS,
        handler=ended_attempts,
        says="The newest attempts that are over, one by one, for figures of your own.",
        query=EndedQuery,
        answers=EndedOut,
    ),
    Route(
        method="GET",
        path=f"{API}/store",
        guard=_READS,
        handler=store,
        says="Which store the server stands before, and the time by its clock.",
        answers=StoreOut,
    ),
    Route(
        method="GET",
        path=f"{API}/verify",
        guard=Needs(scopes=(Scope.ADMIN,), queues=no_queue),
        handler=verify,
        says="Every row of the store that breaks a promise.",
        answers=ViolationsOut,
    ),
)
