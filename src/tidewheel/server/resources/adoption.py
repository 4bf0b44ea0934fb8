"""Answers workers of one host that look for jobs of dead ones to take over.

A worker that died leaves jobs that go on. One that starts on the same host finds them, if the
dead one said where it ran and was registered with the same token: to name a host proves
nothing.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.api.wire import Out, answer, out_type, write
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed, HeldLease
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import LeaseLost, Refused
from tidewheel.server.call import Call
from tidewheel.server.errors import NotAllowed
from tidewheel.server.routes import API, Needs, Route, no_queue, queue_of_task
from tidewheel.server.wire.validation import In
from tidewheel.server.wire.workers import LostAttempt


class OrphansQuery(In):
    """The host and the boot of which leases are asked for."""

    host: Annotated[str, msgspec.Meta(max_length=256)]
    boot_id: Annotated[str, msgspec.Meta(max_length=256)]


OrphansOut = answer("OrphansOut", leases=list[HeldLease])


class AdoptIn(In):
    """``worker`` takes over from ``owner``, whose process is dead."""

    worker: str
    attempt: LostAttempt
    owner: str


class CancellingOut(Out):
    """The leases that were asked to cancel."""

    leases: list[LeaseOut]


class LeaseOut(Out):
    id: str
    attempt: int


async def orphans(call: Call) -> object:
    query = call.query_as(OrphansQuery)
    found = await call.store.orphans(query.host, query.boot_id)
    owners = {lease.owner for lease in found}
    own = {owner for owner in owners if await call.speaks_for(owner)}
    shown = [one for one in found if one.owner in own and call.covers(one.task.queue)]
    return write({"leases": shown})


async def adopt(call: Call) -> object:
    form = call.body_as(AdoptIn)
    if not await call.speaks_for(form.owner):
        raise await _not_theirs(call, form)
    holder = Holder(
        task_id=TaskId(call.path["id"]), attempt=form.attempt, worker=WorkerId(form.owner)
    )
    return write(await call.store.adopt(holder, WorkerId(form.worker)))


async def _not_theirs(call: Call, form: AdoptIn) -> Refused:
    """Returns the refusal of a take-over: LeaseLost if the owner does not hold the task.

    It is told to every caller; only for a lease that is held does the token matter.
    """
    task = await call.found_task()
    if (task.owner, task.attempt) != (form.owner, form.attempt):
        held = (task.owner if task.status in LEASED else None, task.attempt)
        return LeaseLost(task.id, asked=(form.owner, form.attempt), held=held)
    return NotAllowed(
        f"worker {form.owner!r} was not registered with this token; "
        "only a worker of the same token takes over its tasks"
    )


async def cancelling(call: Call) -> object:
    found = await call.store.cancelling(WorkerId(call.path["id"]))
    return CancellingOut(leases=[LeaseOut(id=one, attempt=number) for one, number in found])


ROUTES = (
    Route(
        method="GET",
        path=f"{API}/orphans",
        guard=Needs(scopes=(Scope.WORKER,), queues=no_queue),
        handler=orphans,
        says="Leases of this token's workers on a host: what a new worker there may adopt.",
        query=OrphansQuery,
        answers=OrphansOut,
    ),
    Route(
        method="POST",
        path=f"{API}/tasks/{{id}}/adopt",
        guard=Needs(
            scopes=(Scope.WORKER,),
            queues=queue_of_task,
            worker=lambda call: call.body_as(AdoptIn).worker,
        ),
        handler=adopt,
        says="Take over the lease of a worker that died; the attempt stays.",
        body=AdoptIn,
        answers=out_type(Claimed),
        audited=False,  # in the history of the task
    ),
    Route(
        method="GET",
        path=f"{API}/workers/{{id}}/cancelling",
        guard=Needs(
            scopes=(Scope.WORKER,), queues=no_queue, worker=lambda call: call.path["id"]
        ),
        handler=cancelling,
        says="Which leases of a worker were asked to cancel.",
        answers=CancellingOut,
    ),
)
