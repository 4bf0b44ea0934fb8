"""Answers for Banyan's virtual resources: the current attempt, reports on it, statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypedDict

from tidewheel.api.operation import READ, WORKER
from tidewheel.api.wire import answer
from tidewheel.core.queue.requests import Report, UsageSample
from tidewheel.core.queue.statistics import (
    ATTEMPTS_MAX,
    EndedAttempt,
    Statistics,
    grouped,
    statistics,
)
from tidewheel.errors import NotFound
from tidewheel.exact_json import encode
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.reports import (
    Attempt,
    Bytes,
    Percent,
    StatusOut,
    live_holder,
    tell,
)
from tidewheel.server.routes import READS, Handler, Needs, RouteList, queue_of_task
from tidewheel.server.validation import In
from tidewheel.vocabulary import execution_info

ROUTES, STATISTICS_ROUTES = RouteList(), RouteList()
_READS_TASK = Needs(READ, queue_of_task)


class BytesAt(TypedDict):
    """The memory that an attempt used at one moment."""

    time: str
    bytes: int


class PercentAt(TypedDict):
    """The CPU load of an attempt at one moment."""

    time: str
    percent: float


class GpuAt(TypedDict):
    """The load and the memory of an attempt's GPUs at one moment."""

    time: str
    percent: float | None
    bytes: int | None


class ExecutionInfo(TypedDict, total=False):
    """An attempt, with the field names of the task server Banyan. The answer to a request for
    one field has only that field."""

    worker: str | None
    exit_status: int | None
    time_started: str | None
    time_terminated: str | None
    memory_usage: list[BytesAt]
    cpu_utilization: list[PercentAt]
    gpu_usage: list[GpuAt]


FIELDS = tuple(ExecutionInfo.__annotations__)


class CurrentHistory(TypedDict):
    """The attempts at a task, the current one last, with the field names of the task server
    Banyan."""

    _id: str
    history: list[ExecutionInfo]


class ReportIn(In):
    """The worker and the attempt of a report.

    By default these are the owner, if it is a worker of the caller, and the last attempt.
    """

    worker: str | None = None
    attempt: Attempt | None = None


class StartIn(ReportIn):
    """The start of an attempt; the time is that of the store's clock."""

    time_started: str | None = None


class MemoryIn(ReportIn, kw_only=True):
    bytes: Bytes


class CpuIn(ReportIn, kw_only=True):
    """The CPU that a job uses, in percent of one core: two busy cores are 200."""

    percent: Percent


class GpuIn(ReportIn):
    percent: Percent | None = None
    bytes: Bytes | None = None


@ROUTES.add(
    "GET /tasks/{id}/current_history",
    _READS_TASK,
    "Every attempt, with the field names of the task server Banyan.",
    CurrentHistory,
)
async def current_history(call: Call) -> object:
    """Returns every attempt in Banyan's words, the current one last."""
    task = await call.found_task()
    usage = await call.store.usage(task.id)
    found = [execution_info(one, usage) for one in await call.store.attempts(task.id)]
    return Answer(body=encode({"_id": task.id, "history": found}))


@ROUTES.add(
    "GET /tasks/{id}/execution_info",
    _READS_TASK,
    "The current attempt, with the field names of the task server Banyan.",
    ExecutionInfo,
)
async def whole(call: Call) -> object:
    return Answer(body=encode(await _info(call)))


@ROUTES.add(
    "GET /tasks/{id}/execution_info/{field}",
    _READS_TASK,
    "One field of the current attempt: " + ", ".join(f"`{name}`" for name in FIELDS) + ".",
    ExecutionInfo,
)
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


def _reporting(says: Callable[[Any], dict[str, Any]]) -> Handler:
    async def report(call: Call) -> object:
        form = call.body_as(ReportIn)
        holder = await live_holder(call, form.worker, form.attempt)
        return await tell(call, Report(holder=holder, **says(form)))

    return report


def _sampling(sample: Callable[[Any], UsageSample]) -> Handler:
    return _reporting(lambda form: {"usage": (sample(form),)})


for _name, _body, _handler, _says in (
    (
        "time_started",
        StartIn,
        _reporting(lambda _: {"started": True}),
        "Report that the work has begun.",
    ),
    (
        "report_memory_usage",
        MemoryIn,
        _sampling(lambda form: UsageSample(memory_bytes=form.bytes)),
        "Append a value to the series `memory_usage` of the attempt.",
    ),
    (
        "report_cpu_utilization",
        CpuIn,
        _sampling(lambda form: UsageSample(cpu_percent=form.percent)),
        "Append a value to the series `cpu_utilization` of the attempt.",
    ),
    (
        "report_gpu_usage",
        GpuIn,
        _sampling(
            lambda form: UsageSample(gpu_percent=form.percent, gpu_memory_bytes=form.bytes)
        ),
        "Append a value to the series `gpu_usage` of the attempt.",
    ),
):
    for _method in ("POST", "PATCH"):
        ROUTES.add(
            f"{_method} /tasks/{{id}}/execution_info/{_name}",
            Needs(WORKER, queue_of_task),
            _says,
            StatusOut,
            body=_body,
            audited=False,
        )(_handler)

# Statistics of attempts: all together, per queue, per name of a task.


class StatisticsQuery(In):
    """Holds the parameters that select attempts, and how these are grouped."""

    queue: str | None = None
    name: str | None = None
    by: Literal["queue", "name"] | None = None


StatisticsOut = answer(
    "StatisticsOut",
    "The statistics of attempts that have ended: the newest 10,000 that the caller may see.",
    all=Statistics,
    groups=dict[str, Statistics],
)


@STATISTICS_ROUTES.add(
    "GET /statistics",
    READS,
    "How attempts ended, how long they waited and ran, and what they used; by=queue or "
    "by=name groups them.",
    StatisticsOut,
    query=StatisticsQuery,
)
async def of_everything(call: Call) -> object:
    query = call.query_as(StatisticsQuery)
    found = [
        one
        for one in await call.store.ended_attempts(ATTEMPTS_MAX, call.grant.names)
        if query.queue in (None, one.queue) and query.name in (None, one.name)
    ]
    return await asyncio.to_thread(_told, found, query.by)


def _told(found: list[EndedAttempt], by: str | None) -> object:
    groups: dict[str, Statistics] = {}
    if by is not None:
        groups = grouped(found, lambda one: one.queue if by == "queue" else one.name)
    return {"all": statistics(found), "groups": groups}


@STATISTICS_ROUTES.add(
    "GET /tasks/{id}/statistics",
    _READS_TASK,
    "The statistics of the attempts of all tasks with the name and the queue of this task.",
    StatisticsOut,
)
async def of_one(call: Call) -> object:
    """Answers with the statistics of the tasks of the same name in the same queue.

    For a task without a name these are empty.
    """
    task = await call.found_task()
    found = [
        one
        for one in await call.store.ended_attempts(ATTEMPTS_MAX, call.grant.names)
        if (one.queue, one.name) == (task.queue, task.name) and task.name is not None
    ]
    return {"all": statistics(found), "groups": {}}
