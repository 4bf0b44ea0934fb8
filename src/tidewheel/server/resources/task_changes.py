"""Changes stored tasks: arm, cancel, amend, and Banyan's PATCH of a state.

A PATCH that asks for a state is the verb that leads there: `available` arms, `cancelled`
cancels, `running` claims, `terminated` finishes. Only workers may ask for the last two.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.api.tasks import Task
from tidewheel.api.wire import answer, out_type, write
from tidewheel.client.fields import amendment
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Cancelled, Report
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskError, TaskId, WorkerId
from tidewheel.errors import WrongStatus
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.resources.reports import tell
from tidewheel.server.routes import API, Needs, Route, queue_of_task
from tidewheel.server.wire.tasks import CancelIn, FilterIn, TaskPatch, filter_of
from tidewheel.vocabulary import Vocabulary, statuses_named

TaskOut = out_type(Task)
CancelledOut = out_type(Cancelled)
CancelledMany = answer("CancelledMany", cancelled=list[Cancelled])


async def arm(call: Call) -> object:
    return write(await call.store.arm((await call.found_task()).id))


async def cancel(call: Call) -> object:
    [one] = await call.store.cancel([(await call.found_task()).id])
    return write(one)


# ---- many at once ----


async def queues_to_cancel(call: Call) -> Iterable[str]:
    """Returns the queues of the tasks named by id, or of the filter, which must name its queue
    unless the caller may use all queues."""
    form = call.body_as(CancelIn)
    if (form.ids is None) == (form.filter is None):
        raise BadRequest(["give either ids or a filter"])
    if form.filter == FilterIn() and not form.all:
        raise BadRequest(['filter names nothing, and so every task; say so: "all": true'])
    if call.covers_everything:
        return ()
    if form.ids is not None:
        ids = [TaskId(one) for one in form.ids]
        return {task.queue for task in await call.store.get_many(ids)}
    assert form.filter is not None
    if form.filter.queue is not None:
        return (form.filter.queue,)
    # A queue of a run is its workflow's, too: one that is for every queue need not be for it.
    raise NotAllowed("this token is not for every queue and workflow; name one: filter.queue")


async def cancel_many(call: Call) -> object:
    form = call.body_as(CancelIn)
    if form.ids is not None:
        done = await call.store.cancel([TaskId(one) for one in form.ids])
    else:
        assert form.filter is not None
        which = filter_of(form.filter)
        done = await call.store.cancel_matching(which, form.count_max)
    call.targets += [f"{len(done)} tasks", *(one.id for one in done[:5])]
    return write({"cancelled": done})


# ---- PATCH ----

_CLIENTS = (Scope.SUBMIT,)
_CANCELLERS = (Scope.SUBMIT, Scope.OPERATE, Scope.WORKER)
_WORKERS = (Scope.WORKER,)
_SCOPES: dict[Status, tuple[Scope, ...]] = {
    Status.CANCELLED: _CANCELLERS,
    Status.CANCELLING: _CANCELLERS,
    Status.RUNNING: _WORKERS,
    Status.SUCCEEDED: _WORKERS,
    Status.FAILED: _WORKERS,
}


def scopes_for_patch(call: Call) -> tuple[Scope, ...]:
    """Returns the scopes that a PATCH needs, which depend on what it asks for (R003-75)."""
    form = call.body_as(TaskPatch)
    form.amended()  # two words for one thing are refused first
    return _CLIENTS if form.word is None else _SCOPES.get(_wanted(form.word), _CLIENTS)


def _wanted(word: str) -> Status:
    return statuses_named([word], Vocabulary.BANYAN)[0]


async def patch(call: Call) -> object:
    form, task = call.body_as(TaskPatch), await call.found_task()
    changes = form.amended()
    if form.word is None and not changes and call.raw.strip() in (b"", b"{}"):
        raise BadRequest(["nothing to change was given"])
    if changes or form.word is None:
        await call.store.amend(task.id, amendment(task.id, changes))
    if form.word is not None:
        await _transition(call, task, form)
    return write(await call.store.get(task.id))


async def _transition(call: Call, task: Task, form: TaskPatch) -> None:
    assert form.word is not None
    match _wanted(form.word):
        case Status.READY:
            await call.store.arm(task.id)
        case Status.CANCELLED | Status.CANCELLING:
            await _cancel_or_confirm(call, task, form)
        case Status.RUNNING:
            await _claim(call, task, form)
        case Status.SUCCEEDED | Status.FAILED:
            await tell(call, Report(holder=await _holder(call, task, form), end=_end(form)))
        case Status.WAITING:
            raise WrongStatus(task.id, "going back to waiting", task.status, [])


async def _claim(call: Call, task: Task, form: TaskPatch) -> None:
    worker = form.execution_info.worker if form.execution_info else None
    if worker is None:
        raise BadRequest(["execution_info.worker is missing: who claims it?"])
    await call.store.claim_by_id(task.id, await call.require_worker(worker))


async def _cancel_or_confirm(call: Call, task: Task, form: TaskPatch) -> None:
    """Cancels a task; from the worker that was told to cancel it, takes the end instead."""
    if task.status is Status.CANCELLING and await call.speaks_for(task.owner):
        holder = await _holder(call, task, form)
        await tell(call, Report(holder=holder, end=_failure(form, "cancelled")))
    elif call.allows((Scope.SUBMIT, Scope.OPERATE)):
        await call.store.cancel([task.id])
    else:
        raise NotAllowed("a worker cancels nothing by itself; fail or yield it instead")


async def _holder(call: Call, task: Task, form: TaskPatch) -> Holder:
    """Returns the lease that is reported on: the one that is named, else the live one."""
    info = form.execution_info
    worker = (info.worker if info else None) or task.owner
    if worker is None:
        raise WrongStatus(task.id, "a report", task.status, [Status.RUNNING.value])
    own = await call.require_worker(worker)
    attempt = task.attempt if form.attempt is None else form.attempt
    return Holder(task_id=task.id, attempt=attempt, worker=WorkerId(own))


def _end(form: TaskPatch) -> End:
    """Returns how an attempt ended; Banyan tells success by the exit status."""
    assert form.word is not None
    exit_status = form.execution_info.exit_status if form.execution_info else None
    if form.word == "terminated" and exit_status is None:
        raise BadRequest(["execution_info.exit_status is missing: how did it end?"])
    failed = (
        exit_status != 0 if exit_status is not None else _wanted(form.word) is Status.FAILED
    )
    if failed:
        return _failure(form, "exit")
    return End(ending=Ending.SUCCEEDED, exit_status=exit_status)


def _failure(form: TaskPatch, code: str) -> End:
    exit_status = form.execution_info.exit_status if form.execution_info else None
    words = "it ended" if exit_status is None else f"it ended with exit status {exit_status}"
    error = TaskError(code=code, description=words)
    return End(ending=Ending.FAILED, error=error, exit_status=exit_status)


ROUTES = (
    Route(
        method="POST",
        path=f"{API}/tasks/cancel",
        guard=Needs(scopes=(Scope.SUBMIT, Scope.OPERATE), queues=queues_to_cancel),
        handler=cancel_many,
        says="Cancel many tasks, by their ids or by a filter, and whatever needs them.",
        body=CancelIn,
        answers=CancelledMany,
    ),
    Route(
        method="POST",
        path=f"{API}/tasks/{{id}}/arm",
        guard=Needs(scopes=(Scope.SUBMIT,), queues=queue_of_task),
        handler=arm,
        says="Let a task that was created unarmed run.",
        answers=TaskOut,
    ),
    Route(
        method="POST",
        path=f"{API}/tasks/{{id}}/cancel",
        guard=Needs(scopes=(Scope.SUBMIT, Scope.OPERATE), queues=queue_of_task),
        handler=cancel,
        says="Cancel a task and whatever needs it; again changes nothing.",
        answers=CancelledOut,
    ),
    Route(
        method="PATCH",
        path=f"{API}/tasks/{{id}}",
        guard=Needs(
            scopes=(Scope.SUBMIT, Scope.OPERATE, Scope.WORKER),
            queues=queue_of_task,
            narrow=scopes_for_patch,
        ),
        handler=patch,
        says="Change a task that waits, or ask for a state as Banyan does.",
        body=TaskPatch,
        answers=TaskOut,
    ),
)
