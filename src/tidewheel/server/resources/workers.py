"""Answers for workers: they register, sign off, take over from dead ones, can be looked at."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.api.operations import ORPHANS, WORKERS
from tidewheel.api.wire import Out, out_type, write
from tidewheel.core.queue.access import Scope, is_pattern
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Abilities, Claimed, HostProcess, NewWorker
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import LeaseLost, Refused
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.operation_routes import answer_type, routes_of
from tidewheel.server.routes import API, Needs, Route, no_queue, queue_of_task
from tidewheel.server.wire.validation import In
from tidewheel.server.wire.workers import LostAttempt, WorkerIn

WorkerIdOut = answer_type(next(row for row in WORKERS if row.name == "stop_worker"))


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


async def queues_served(call: Call) -> Iterable[str]:
    """Returns the queues that a worker wants to serve, after judging its patterns.

    A pattern is judged as a whole; the queues that it stands for are judged later.
    """
    wanted = call.body_as(WorkerIn).queues
    call.require_patterns(one for one in wanted if is_pattern(one))
    return [one for one in wanted if not is_pattern(one)]


async def register(call: Call) -> object:
    assert call.token is not None
    form = call.body_as(WorkerIn)
    named = [
        ("name", form.name),
        ("host", form.host or "-"),
        ("boot_id", form.boot_id),
        *_each("queues", form.queues),
    ]
    named += _each("labels", form.capacity.labels) + _each("handlers", form.handlers or ())
    findings = [finding for what, text in named if (finding := name_finding(what, text))]
    if findings:
        raise BadRequest(findings)
    worker = await call.store.register_worker(
        NewWorker(
            name=form.name,
            process=HostProcess(
                host=form.host or call.client or "-",
                boot_id=form.boot_id,
                pid=form.pid,
                started=form.started,
            ),
            queues=tuple(form.queues),
            slots=form.slots,
            capacity=form.capacity.value(),
            abilities=Abilities(
                commands=form.commands,
                handlers=None if form.handlers is None else frozenset(form.handlers),
                bare=form.bare,
            ),
        )
    )
    await call.store.assign_worker(worker, call.token.number)
    call.targets.append(worker)
    return Answer(body={"id": worker}, status=201)


def _each(what: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    return [(what, text) for text in texts]


async def orphans(call: Call) -> object:
    found = await call.store.orphans(call.query.host, call.query.boot_id)
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
        method="POST",
        path=f"{API}/workers",
        guard=Needs(scopes=(Scope.WORKER,), queues=queues_served),
        handler=register,
        says="Take a worker id from the store; it is this token's.",
        body=WorkerIn,
        answers=WorkerIdOut,
        status=201,
    ),
    *routes_of(WORKERS),
)
# A worker that died leaves jobs that go on. One that starts on the same host finds them, if the
# dead one said where it ran and was registered with the same token: to name a host proves
# nothing.
ADOPTION_ROUTES = (
    *routes_of([ORPHANS], {"orphans": orphans}),
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
