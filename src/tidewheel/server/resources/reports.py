"""Answers the reports of workers: signs of life, starts, outputs, usage, ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidewheel.api.wire import out_type, write
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.lease import LeaseAnswer as BeatAnswer
from tidewheel.core.queue.requests import Beat, Claimed, Report, Reported
from tidewheel.core.queue.status import LEASED
from tidewheel.core.queue.steps import End, Ending
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import LeaseLost, WrongStatus
from tidewheel.server.call import Call
from tidewheel.server.errors import problem
from tidewheel.server.routes import API, Handler, Needs, Route, no_queue, queue_of_task
from tidewheel.server.wire.workers import (
    BeatIn,
    BeatOut,
    BeatsIn,
    BeatsOut,
    ClaimTaskIn,
    FinishIn,
    HolderIn,
    MessagesIn,
    ReportedOut,
    ReportsIn,
    ReportsOut,
    SamplesIn,
    StatusOut,
)


def holder(call: Call) -> Holder:
    """Returns the holder of the lease that the body names."""
    form = call.body_as(HolderIn)
    return Holder(
        task_id=TaskId(call.path["id"]), attempt=form.attempt, worker=WorkerId(form.worker)
    )


async def tell(call: Call, report: Report) -> StatusOut:
    """Passes a report on to the store; raises its refusal."""
    if report.end is not None:
        # Somebody may wait for the place that this end leaves; told too often is harmless.
        report = replace(report, frees=(await call.found_task()).queue)
    [answer] = await call.store.report([report])
    if answer.refused is not None:
        raise answer.refused
    assert answer.status is not None
    return StatusOut(id=report.holder.task_id, status=answer.status.value)


async def claim(call: Call) -> object:
    form = call.body_as(ClaimTaskIn)
    task = await call.found_task()
    taken = await call.store.claim_by_id(task.id, WorkerId(form.worker), form.lease_s)
    return write(taken)


async def started(call: Call) -> object:
    return await tell(call, Report(holder=holder(call), started=True))


async def outputs(call: Call) -> object:
    messages = call.body_as(MessagesIn).values()
    return await tell(call, Report(holder=holder(call), messages=messages))


async def usage(call: Call) -> object:
    samples = call.body_as(SamplesIn).values()
    return await tell(call, Report(holder=holder(call), usage=samples))


async def finish(call: Call) -> object:
    return await tell(call, Report(holder=holder(call), end=call.body_as(FinishIn).value()))


async def give_back(call: Call) -> object:
    return await tell(call, Report(holder=holder(call), end=End(ending=Ending.YIELDED)))


async def heartbeat(call: Call) -> object:
    """Extends a lease; one that was lost is a conflict, so that no client can overlook it."""
    held, form = holder(call), call.body_as(BeatIn)
    beat = Beat(task_id=held.task_id, attempt=held.attempt, progress=form.progress)
    [answer] = await call.store.heartbeat(held.worker, [beat])
    if answer is BeatAnswer.LOST:
        raise await _lost(call, held)
    return BeatOut(id=held.task_id, answer=answer.value)


async def _lost(call: Call, held: Holder) -> Exception:
    task = await call.store.get(held.task_id)
    if (task.owner, task.attempt) == (held.worker, held.attempt):
        return WrongStatus(task.id, "heartbeat", task.status, ["running"])
    owner = task.owner if task.status in LEASED else None
    return LeaseLost(task.id, asked=(held.worker, held.attempt), held=(owner, task.attempt))


async def heartbeats(call: Call) -> object:
    form = call.body_as(BeatsIn)
    beats = [
        Beat(task_id=TaskId(one.id), attempt=one.attempt, progress=one.progress)
        for one in form.beats
    ]
    answers = await call.store.heartbeat(WorkerId(form.worker), beats)
    told = zip(form.beats, answers, strict=True)
    return BeatsOut(answers=[BeatOut(id=one.id, answer=said.value) for one, said in told])


async def reports(call: Call) -> object:
    form = call.body_as(ReportsIn)
    given = [one.value(form.worker) for one in form.reports]
    answers = await call.store.report(given)
    return ReportsOut(answers=[_reported(call, one) for one in answers])


def _reported(call: Call, answer: Reported) -> ReportedOut:
    refused = None
    if answer.refused is not None:
        refused = problem(answer.refused, call.correlation)
    status = answer.status.value if answer.status else None
    return ReportedOut(id=answer.task_id, status=status, refused=refused)


async def queues_of_own_leases(call: Call) -> Iterable[str]:
    """Returns no queue to judge: a beat counts only for a lease of the caller's own worker."""
    return await no_queue(call)


def _worker_of_body(call: Call) -> str:
    worker: str = call.body.worker
    return worker


def _reporting(name: str, body: type, handler: Handler, answers: type, says: str) -> Route:
    return Route(
        method="POST",
        path=f"{API}/tasks/{{id}}/{name}",
        guard=Needs(scopes=(Scope.WORKER,), queues=queue_of_task, worker=_worker_of_body),
        handler=handler,
        says=says,
        body=body,
        answers=answers,
        audited=False,  # in the history and the attempts of the task
    )


ROUTES = (
    _reporting("claim", ClaimTaskIn, claim, out_type(Claimed), "Lease this task."),
    _reporting("started", HolderIn, started, StatusOut, "The work has begun."),
    _reporting("heartbeat", BeatIn, heartbeat, BeatOut, "Extend the lease; 409 if it is lost."),
    _reporting("outputs", MessagesIn, outputs, StatusOut, "Messages and outputs, numbered."),
    _reporting("usage", SamplesIn, usage, StatusOut, "What the work used."),
    _reporting("finish", FinishIn, finish, StatusOut, "How the attempt ended."),
    _reporting("yield", HolderIn, give_back, StatusOut, "Give the task back at once."),
    Route(
        method="POST",
        path=f"{API}/heartbeats",
        guard=Needs(
            scopes=(Scope.WORKER,), queues=queues_of_own_leases, worker=_worker_of_body
        ),
        handler=heartbeats,
        says="Extend all leases of a worker; one answer each: go_on, cancel or lost.",
        body=BeatsIn,
        answers=BeatsOut,
        audited=False,
    ),
    Route(
        method="POST",
        path=f"{API}/reports",
        guard=Needs(
            scopes=(Scope.WORKER,), queues=queues_of_own_leases, worker=_worker_of_body
        ),
        handler=reports,
        says="Whatever happened in attempts of a worker; one answer each, in order.",
        body=ReportsIn,
        answers=ReportsOut,
        audited=False,
    ),
)
