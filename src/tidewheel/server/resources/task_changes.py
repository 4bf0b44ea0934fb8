"""Changes stored tasks: continuations, arm, cancel, amend, and Banyan's PATCH of a state.

A PATCH that asks for a state is the verb that leads there: `available` arms, `cancelled`
cancels, `running` claims, `terminated` finishes. Only workers may ask for the last two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec

from tidewheel.api.operation import SUBMIT, WORKER
from tidewheel.api.operations import ARM, RESUBMIT
from tidewheel.api.tasks import NO_SUCH_TASK, Resubmitted, Task
from tidewheel.api.wire import answer, out_type, write
from tidewheel.client.fields import amendment
from tidewheel.core.queue.access import Name, Scope, queue_name
from tidewheel.core.queue.requests import Cancelled, End, Ending, Report
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import TaskError, TaskId
from tidewheel.errors import DependencyCycle, Duplicate, NotFound, WrongStatus
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest, NotAllowed
from tidewheel.server.operation_routes import routes_of
from tidewheel.server.resources.reports import Attempt, ExitStatus, live_holder, tell
from tidewheel.server.resources.task_queries import FilterIn, filter_of
from tidewheel.server.resources.task_submission import (
    FlavouredNodesIn,
    RequestedResources,
    Text,
    our_fields,
    told_to,
)
from tidewheel.server.routes import Needs, RouteList, queue_of_task
from tidewheel.server.validation import Duration, In, Out, Size, read, read_many
from tidewheel.vocabulary import Vocabulary, statuses_named

EDGES_MAX = 10_000
Ids = Annotated[list[str], msgspec.Meta(min_length=1, max_length=EDGES_MAX)]
Edges = list[tuple[TaskId, TaskId]]
ROUTES = RouteList()
LACKS_HIDDEN = (
    "it needs a task that can no longer succeed; you may not see the queue of that task"
)
CANCELLERS = (Scope.SUBMIT, Scope.OPERATE)

# Continuations tie tasks together, one or many of them, as Banyan has them.


class ContinuationsIn(In):
    """The tasks that wait, or no longer wait, for the task in the path."""

    values: Ids


class BulkContinuationsIn(In):
    """Each task in ``values`` waits, or no longer waits, for each task in ``targets``."""

    targets: Ids
    values: Ids


class EdgesOut(Out):
    """The number of edges that the request named; those that were there already count, too."""

    edges: int


def one(call: Call) -> Edges:
    """Returns the edges from the task that the path names to those that the body names."""
    parent = TaskId(call.path["id"])
    return [(parent, TaskId(child)) for child in read(call.raw, ContinuationsIn).values]


def many(call: Call) -> Edges:
    """Returns the edges that a list of objects, or one object, describes."""
    listed = call.raw.lstrip()[:1] == b"["
    raws = [bytes(raw) for raw in read_many(call.raw)] if listed else [call.raw]
    forms = [read(raw, BulkContinuationsIn, f"[{index}]: ") for index, raw in enumerate(raws)]
    if sum(len(form.targets) * len(form.values) for form in forms) > EDGES_MAX:
        raise BadRequest([f"more than {EDGES_MAX} edges; send several requests"])
    return [
        (TaskId(parent), TaskId(child))
        for form in forms
        for parent in form.targets
        for child in form.values
    ]


async def queues_of_both_ends(call: Call) -> Iterable[Name]:
    """Raises NotFound unless the caller may see all tasks at both ends of the edges."""
    if not call.grant.covers_everything:
        ids = list(dict.fromkeys(end for edge in call.body_as(list) for end in edge))
        for start in range(0, len(ids), EDGES_MAX):
            await call.found_tasks(ids[start : start + EDGES_MAX])
    return ()


async def _tie(verb: str, call: Call) -> object:
    edges: Edges = call.body_as(list)
    call.targets.append(f"{len(edges)} edges")
    try:
        await getattr(call.store, verb)(edges)
    except DependencyCycle as refused:
        raise await told_to(call, refused) from None
    return EdgesOut(edges=len(edges))


for _word, _method, _says in (
    ("add_continuation", "add_edges", "Let tasks wait for {}."),
    ("remove_continuation", "remove_edges", "Let tasks no longer wait for {}."),
):
    for _name in (f"{_word}s", _word):  # the seed uses both
        for _path, _whom, _body, _parse in (
            ("/tasks", "others; a request can name many", list[BulkContinuationsIn], many),
            ("/tasks/{id}", "this task", ContinuationsIn, one),
        ):
            ROUTES.add(
                f"POST {_path}/{_name}",
                Needs(SUBMIT, queues_of_both_ends),
                _says.format(_whom),
                EdgesOut,
                body=_body,
                parse=_parse,
            )(partial(_tie, _method))

# Many tasks are cancelled at once.


class CancelIn(In):
    """Either ids or a filter; an empty filter selects every task, and needs ``all``."""

    ids: Annotated[list[str], msgspec.Meta(max_length=10_000)] | None = None
    filter: FilterIn | None = None
    all: bool = False
    count_max: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


async def queues_to_cancel(call: Call) -> Iterable[Name]:
    """Returns the queues to judge a cancel by: those of the tasks named by id, or that of the
    filter, which must name one unless the caller may use all queues."""
    form = call.body_as(CancelIn)
    if (form.ids is None) == (form.filter is None):
        raise BadRequest(["give either ids or a filter"])
    if form.filter == FilterIn() and not form.all:
        raise BadRequest(
            ['the filter is empty, so it selects every task; to confirm this, send "all": true']
        )
    if call.grant.covers_everything:
        return ()
    if form.ids is not None:
        await call.found_tasks([TaskId(one) for one in form.ids])
        return ()
    assert form.filter is not None
    if form.filter.queue is not None:
        return (queue_name(form.filter.queue),)
    raise NotAllowed("this token is not for all queues; name a queue: filter.queue")


@ROUTES.add(
    "POST /tasks/cancel",
    Needs(CANCELLERS, queues_to_cancel),
    "Cancel many tasks, by their ids or by a filter, and all tasks that need them.",
    answer("CancelledMany", cancelled=list[Cancelled]),
    body=CancelIn,
)
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


async def resubmit(call: Call) -> object:
    """Submits tasks again, of the queues that the caller may use. What was cancelled with them
    is named before anything is stored, so that it is judged, too."""
    asked, form = [TaskId(one) for one in call.body.ids], call.body
    call.only_tried = form.dry_run
    planned = await call.store.resubmit(asked, with_children=form.with_children, dry_run=True)
    own = {one.queue for one in planned if one.queue and call.covers_queue(one.queue)}
    named = set(asked)
    told = [
        one if one.queue in own else _not_there(one.again_of)
        for one in planned
        if one.queue in own or one.again_of in named
    ]
    if not own and not call.grant.covers_everything:
        raise NotFound("task", asked[0])
    if not form.dry_run:
        wanted = [one for one in told if one.id is not None]
        call.server.quotas.take_tasks(
            call.token, Counter(one.queue for one in wanted if one.created)
        )
        done = await call.store.resubmit([one.again_of for one in wanted]) if wanted else []
        by_id = {one.again_of: one for one in done}
        told = [by_id.get(one.again_of, one) for one in told]
    made = [one for one in told if one.created]
    call.targets += [f"{len(made)} tasks", *(str(one.id) for one in made[:5])]
    return write({"tasks": await _as_seen(call, told)})


async def _as_seen(call: Call, told: list[Resubmitted]) -> list[Resubmitted]:
    """Returns the answers without the names of tasks that the caller may not see."""
    if call.grant.covers_everything:
        return told
    tied = {each for one in told for each in (*one.needs, *one.children)}
    found = await call.store.find_each(sorted(tied)) if tied else []
    hidden = {one.id for one in found if not call.covers_queue(one.queue)}
    return [
        replace(
            one,
            needs=tuple(each for each in one.needs if each not in hidden),
            children=tuple(each for each in one.children if each not in hidden),
            refused=one.refused
            if one.refused is None or hidden.isdisjoint(one.needs)
            else LACKS_HIDDEN,
        )
        for one in told
    ]


def _not_there(task_id: TaskId) -> Resubmitted:
    nothing: dict[str, Any] = {"id": None, "created": False, "queue": "", "name": None}
    return Resubmitted(again_of=task_id, needs=(), children=(), refused=NO_SUCH_TASK, **nothing)


ROUTES += routes_of([ARM, RESUBMIT], {"resubmit": resubmit})


@ROUTES.add(
    "POST /tasks/{id}/cancel",
    Needs(CANCELLERS, queue_of_task),
    "Cancel a task, and all tasks that need it; repeating the request changes nothing.",
    out_type(Cancelled),
)
async def cancel(call: Call) -> object:
    [one] = await call.store.cancel([(await call.found_task()).id])
    return write(one)


# A PATCH changes fields of a task while it waits, or its state as seed 003 does.

_SCOPES: dict[Status, tuple[Scope, ...]] = {
    **dict.fromkeys((Status.CANCELLED, Status.CANCELLING), (*CANCELLERS, Scope.WORKER)),
    **dict.fromkeys((Status.RUNNING, Status.SUCCEEDED, Status.FAILED), WORKER),
}


class ExecutionInfoIn(In):
    """The facts that workers of Banyan send with a change of state."""

    worker: str | None = None
    exit_status: ExitStatus | None = None
    time_terminated: str | None = None  # the store's clock is what counts
    time_started: str | None = None


class TaskPatch(In):
    """The changes to a task; null leaves a field as it is."""

    state: str | None = None  # status, in any vocabulary
    status: str | None = None
    execution_info: ExecutionInfoIn | None = None
    attempt: Attempt | None = None
    name: Text | None = None
    command: str | None = None
    retries: int | None = None
    max_retry_count: int | None = None
    estimated_runtime: Duration | None = None
    max_termination: Duration | None = None
    max_termination_time: Duration | None = None
    cpu: float | None = None
    memory: Size | None = None
    gpu: int | None = None
    labels: list[str] | None = None
    nodes: int | None = None
    exclusive: bool | None = None
    buffer: Size | None = None
    flavours: list[FlavouredNodesIn] | None = None
    requested_resources: RequestedResources | None = None

    @property
    def word(self) -> str | None:
        """Returns the status that is asked for, in any vocabulary; None if none is."""
        return self.state if self.status is None else self.status

    @property
    def info(self) -> ExecutionInfoIn:
        return self.execution_info or ExecutionInfoIn()

    def amended(self) -> dict[str, Any]:
        """Returns the fields that shall change, in tidewheel's words."""
        for ours, theirs in (
            ("retries", "max_retry_count"),
            ("max_termination", "max_termination_time"),
            ("status", "state"),
        ):
            if getattr(self, ours) is not None and getattr(self, theirs) is not None:
                raise BadRequest([f"it has both {ours} and {theirs}; give one of them"])
        asked = ("state", "status", "execution_info", "attempt")
        return {name: value for name, value in our_fields(self).items() if name not in asked}


def scopes_for_patch(call: Call) -> tuple[Scope, ...]:
    """Returns the scopes that a PATCH needs, which depend on what it asks for (R003-75)."""
    form = call.body_as(TaskPatch)
    form.amended()  # two words for one thing are refused first
    return SUBMIT if form.word is None else _SCOPES.get(_wanted(form.word), SUBMIT)


def _wanted(word: str) -> Status:
    return statuses_named([word], Vocabulary.BANYAN)[0]


@ROUTES.add(
    "PATCH /tasks/{id}",
    Needs((*CANCELLERS, Scope.WORKER), queue_of_task, narrow=scopes_for_patch),
    "Change the fields of a task that waits; or change a state, as in the task server Banyan.",
    out_type(Task),
    body=TaskPatch,
)
async def patch(call: Call) -> object:
    form, task = call.body_as(TaskPatch), await call.found_task()
    changes = form.amended()
    if form.word is None and not changes and call.raw.strip() in (b"", b"{}"):
        raise BadRequest(["nothing to change was given"])
    if changes or form.word is None:
        try:
            await call.store.amend(task.id, amendment(task.id, changes))
        except Duplicate as refused:
            raise await told_to(call, refused) from None
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
            if (worker := form.info.worker) is None:
                raise BadRequest(
                    ["execution_info.worker is missing: give the id of the worker"]
                )
            await call.store.claim_by_id(task.id, await call.require_worker(worker))
        case Status.SUCCEEDED | Status.FAILED:
            holder = await live_holder(call, form.info.worker, form.attempt)
            await tell(call, Report(holder=holder, end=_end(form)))
        case Status.WAITING:
            raise WrongStatus(task.id, "going back to waiting", task.status, [])


async def _cancel_or_confirm(call: Call, task: Task, form: TaskPatch) -> None:
    """Cancels a task; if its own worker asks, which was told to cancel it, stores the end of
    the attempt instead."""
    if task.status is Status.CANCELLING and await call.speaks_for(task.owner):
        holder = await live_holder(call, form.info.worker, form.attempt)
        await tell(call, Report(holder=holder, end=_failure(form, "cancelled")))
    elif call.allows(CANCELLERS):
        await call.store.cancel([task.id])
    else:
        raise NotAllowed("a worker may not cancel a task; report a failure, or yield the task")


def _end(form: TaskPatch) -> End:
    """Returns how an attempt ended, from a PATCH; Banyan tells success by the exit status."""
    assert form.word is not None
    exit_status = form.info.exit_status
    if form.word == "terminated" and exit_status is None:
        raise BadRequest(
            ["execution_info.exit_status is missing: give the exit status of the job"]
        )
    failed = (
        exit_status != 0 if exit_status is not None else _wanted(form.word) is Status.FAILED
    )
    if failed:
        return _failure(form, "exit")
    return End(ending=Ending.SUCCEEDED, exit_status=exit_status)


def _failure(form: TaskPatch, code: str) -> End:
    exit_status = form.info.exit_status
    words = (
        "it ended without an exit status"
        if exit_status is None
        else f"it ended with exit status {exit_status}"
    )
    error = TaskError(code=code, description=words)
    return End(ending=Ending.FAILED, error=error, exit_status=exit_status)
