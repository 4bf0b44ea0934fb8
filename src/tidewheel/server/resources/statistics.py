"""Answers with statistics of attempts: all together, per queue, per name of a task (Banyan)."""

from __future__ import annotations

import asyncio
from typing import Literal

from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.statistics import (
    ATTEMPTS_MAX,
    EndedAttempt,
    Statistics,
    grouped,
    statistics,
)
from tidewheel.server.call import Call
from tidewheel.server.routes import API, Needs, Route, no_queue, queue_of_task
from tidewheel.server.wire.validation import In, Out


class StatisticsQuery(In):
    """The parameters that select attempts, and how they are grouped."""

    queue: str | None = None
    name: str | None = None
    by: Literal["queue", "name"] | None = None


class StatisticsOut(Out):
    """The statistics of the newest 10,000 attempts that are over and the caller may see."""

    all: Statistics
    groups: dict[str, Statistics]


async def of_everything(call: Call) -> object:
    query = call.query_as(StatisticsQuery)
    found = [
        one
        for one in await call.store.ended_attempts(ATTEMPTS_MAX)
        if call.covers(one.queue)
        and query.queue in (None, one.queue)
        and query.name in (None, one.name)
    ]
    return await asyncio.to_thread(_told, found, query.by)


def _told(found: list[EndedAttempt], by: str | None) -> StatisticsOut:
    groups: dict[str, Statistics] = {}
    if by is not None:
        groups = grouped(found, lambda one: one.queue if by == "queue" else one.name)
    return StatisticsOut(all=statistics(found), groups=groups)


async def of_one(call: Call) -> object:
    """Answers with the statistics of the tasks of the same name in the same queue.

    A task without a name has none.
    """
    task = await call.found_task()
    found = [
        one
        for one in await call.store.ended_attempts(ATTEMPTS_MAX)
        if (one.queue, one.name) == (task.queue, task.name) and task.name is not None
    ]
    return StatisticsOut(all=statistics(found), groups={})


ROUTES = (
    Route(
        method="GET",
        path=f"{API}/statistics",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=of_everything,
        says="How attempts ended, waited, ran, and what they used; by=queue or by=name groups.",
        query=StatisticsQuery,
        answers=StatisticsOut,
    ),
    Route(
        method="GET",
        path=f"{API}/tasks/{{id}}/statistics",
        guard=Needs(scopes=(Scope.READ,), queues=queue_of_task),
        handler=of_one,
        says="The same for the attempts of tasks with this one's name in its queue.",
        answers=StatisticsOut,
    ),
)
