"""Answers for Banyan's virtual resources: facts about the current attempt, reports on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import msgspec

from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Report, UsageSample
from tidewheel.errors import NotFound, WrongStatus
from tidewheel.exact_json import encode
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.reports import tell
from tidewheel.server.routes import API, Handler, Needs, Route, queue_of_task
from tidewheel.server.wire.validation import In
from tidewheel.server.wire.workers import Bytes, Percent, StatusOut
from tidewheel.vocabulary import execution_info


class BytesAt(TypedDict):
    """The memory that an attempt used at a time."""

    time: str
    bytes: int


class PercentAt(TypedDict):
    """The load of the cores of an attempt at a time."""

    time: str
    percent: float


class GpuAt(TypedDict):
    """The load and the memory of the GPUs of an attempt at a time."""

    time: str
    percent: float | None
    bytes: int | None


class ExecutionInfo(TypedDict, total=False):
    """An attempt in seed 003's words; a field that is asked for comes alone."""

    worker: str | None
    exit_status: int | None
    time_started: str | None
    time_terminated: str | None
    memory_usage: list[BytesAt]
    cpu_utilization: list[PercentAt]
    gpu_usage: list[GpuAt]


FIELDS = tuple(ExecutionInfo.__annotations__)


class CurrentHistory(TypedDict):
    """The attempts of a task in seed 003's words, the current one last."""

    _id: str
    history: list[ExecutionInfo]


class ReportIn(In):
    """The worker and the attempt that are spoken of.

    By default they are the owner, if it is the caller's, and the last attempt.
    """

    worker: str | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class StartIn(ReportIn):
    """The time is the store's."""

    time_started: str | None = None


class MemoryIn(ReportIn, kw_only=True):
    bytes: Bytes


class CpuIn(ReportIn, kw_only=True):
    """The CPU that a job uses, in percent of one core: two busy cores are 200."""

    percent: Percent


class GpuIn(ReportIn):
    percent: Percent | None = None
    bytes: Bytes | None = None


async def current_history(call: Call) -> object:
    """Returns every attempt in Banyan's words, the current one last."""
    task = await call.found_task()
    usage = await call.store.usage(task.id)
    found = [execution_info(one, usage) for one in await call.store.attempts(task.id)]
    return Answer(body=encode({"_id": task.id, "history": found}))


async def whole(call: Call) -> object:
    return Answer(body=encode(await _info(call)))


async def part(call: Call) -> object:
    name = call.path["field"]
    if name not in FIELDS:
        raise NotFound("field of execution_info", name)
    return Answer(body=encode({name: (await _info(call))[name]}))


async def _info(call: Call) -> dict[str, Any]:
    task = await call.found_task()
    attempts = await call.store.attempts(task.id)
    if not attempts:
        raise NotFound("attempt of task", task.id)
    return execution_info(attempts[-1], await call.store.usage(task.id))


async def _holder(call: Call) -> Holder:
    form, task = call.body_as(ReportIn), await call.found_task()
    worker = form.worker or task.owner
    if worker is None:
        raise WrongStatus(task.id, "a report", task.status, ["running"])
    attempt = task.attempt if form.attempt is None else form.attempt
    own = await call.require_worker(worker)
    return Holder(task_id=task.id, attempt=attempt, worker=own)


async def started(call: Call) -> object:
    return await tell(call, Report(holder=await _holder(call), started=True))


def _sampling(sample: Callable[[Any], UsageSample]) -> Handler:
    async def report(call: Call) -> object:
        return await tell(call, Report(holder=await _holder(call), usage=(sample(call.body),)))

    return report


_INFO = f"{API}/tasks/{{id}}/execution_info"
_READS = Needs(scopes=(Scope.READ,), queues=queue_of_task)
_REPORTS = Needs(scopes=(Scope.WORKER,), queues=queue_of_task)
_REPORTED: tuple[tuple[str, type, Handler, str], ...] = (
    ("time_started", StartIn, started, "The work has begun."),
    (
        "report_memory_usage",
        MemoryIn,
        _sampling(lambda form: UsageSample(memory_bytes=form.bytes)),
        "Append to the series memory_usage.",
    ),
    (
        "report_cpu_utilization",
        CpuIn,
        _sampling(lambda form: UsageSample(cpu_percent=form.percent)),
        "Append to the series cpu_utilization.",
    ),
    (
        "report_gpu_usage",
        GpuIn,
        _sampling(
            lambda form: UsageSample(gpu_percent=form.percent, gpu_memory_bytes=form.bytes)
        ),
        "Append to the series gpu_usage.",
    ),
)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/tasks/{{id}}/current_history",
        guard=_READS,
        handler=current_history,
        says="Every attempt in Banyan's words.",
        answers=CurrentHistory,
    ),
    Route(
        method="GET",
        path=_INFO,
        guard=_READS,
        handler=whole,
        says="The current attempt in Banyan's words.",
        answers=ExecutionInfo,
    ),
    Route(
        method="GET",
        path=f"{_INFO}/{{field}}",
        guard=_READS,
        handler=part,
        says="One field of the current attempt: " + ", ".join(FIELDS) + ".",
        answers=ExecutionInfo,
    ),
    *(
        Route(
            method=method,
            path=f"{_INFO}/{name}",
            guard=_REPORTS,
            handler=handler,
            says=says,
            body=body,
            answers=StatusOut,
            audited=False,
        )
        for name, body, handler, says in _REPORTED
        for method in ("POST", "PATCH")
    ),
)
