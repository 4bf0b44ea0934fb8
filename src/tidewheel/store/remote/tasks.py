"""Asks a server about tasks, and lets it store, change, tie together and cancel them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from tidewheel.api.tasks import (
    Task,
)
from tidewheel.api.wire import NULL, Fields, instant, out_type, read, read_all
from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.requests import (
    Amendment,
    Cancelled,
    KeysetPage,
    QueueSettings,
    Submitted,
    TaskFilter,
    page_count,
)
from tidewheel.core.queue.submission import refusal, run_refusal
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.errors import BadSetting, NotFound, Refused
from tidewheel.ports.tasks import TaskStore
from tidewheel.store.remote.connection import Query
from tidewheel.store.remote.encode import (
    BODY_BYTES_MAX,
    amendment_body,
    check_tasks,
    filter_body,
    in_portions,
    is_findable,
    json_list,
    queue_body,
    queue_path,
    task_body,
    task_path,
)
from tidewheel.store.remote.errors import ReceivedProblem, error_from
from tidewheel.store.remote.operations import ServerPart, asks

if TYPE_CHECKING:
    pass

PAGE_MAX = 1_000
TASK_FIELDS = ",".join(out_type(Task).__struct_fields__)


class _TaskPage(msgspec.Struct):
    """A page of tasks; ``next`` is null at the end."""

    tasks: list[Fields]
    next: int | None


class RemoteReads(ServerPart):
    """The part of a TaskStore that changes nothing."""

    history = asks(TaskStore.history)
    attempts = asks(TaskStore.attempts)
    outputs = asks(TaskStore.outputs)
    usage = asks(TaskStore.usage)
    edges = asks(TaskStore.edges)
    peek = asks(TaskStore.peek)
    ended_attempts = asks(TaskStore.ended_attempts)
    queues = asks(TaskStore.queues)
    ready_queues = asks(TaskStore.ready_queues)
    workers = asks(TaskStore.workers)
    verify = asks(TaskStore.verify)
    store_id = asks(TaskStore.store_id)

    async def get(self, task_id: TaskId) -> Task:
        response = await self.transport.call("GET", task_path(task_id))
        return read(Task, response.read(Fields))

    async def get_many(self, task_ids: Sequence[TaskId]) -> list[Task]:
        page_count(max(1, len(task_ids)))
        check_tasks(task_ids)
        body = {"ids": list(dict.fromkeys(task_ids))}
        response = await self.transport.call("POST", "/tasks/get", body=body, again=True)
        given = response.part("tasks", list[Fields])
        found = {view.id: view for view in read_all(Task, given)}
        return [found[task_id] for task_id in task_ids]

    async def list_tasks(self, which: TaskFilter, page: KeysetPage) -> list[Task]:
        """Returns tasks in as many requests as it takes: one gives at most a thousand."""
        page_count(page.count)
        if not is_findable(which):
            return []
        query = _query(which)
        found: list[Fields] = []
        before = page.before
        while (left := page.count - len(found)) > 0:
            query |= {"limit": min(left, PAGE_MAX), "before": before}
            response = await self.transport.call("GET", "/tasks", query=query)
            part = response.read(_TaskPage)
            found += part.tasks
            before = part.next
            if before is None:
                break
        return read_all(Task, found)

    async def values_of(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, str]:
        page_count(max(1, len(task_ids)))
        found: dict[TaskId, str] = {}
        for task_id in dict.fromkeys(task_ids):
            with suppress(NotFound):
                path = task_path(task_id, "outputs")
                said = (await self.transport.call("GET", path)).read(Fields)
                if (values := bytes(said["values"])) != NULL:
                    found[task_id] = values.decode()
        return found

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """Returns what an attempt wrote from an offset on, as far as one answer goes."""
        query: Query = {"attempt": attempt, "offset": offset}
        path = task_path(task_id, "logs", stream)
        try:
            return (await self.transport.call("GET", path, query=query)).body
        except NotFound as error:
            if error.kind != "log":
                raise
            return None

    async def now(self) -> Instant:
        return instant((await self.transport.call("GET", "/store")).part("now", str))


def _query(which: TaskFilter) -> dict[str, str | int | float | bool | None]:
    given = filter_body(which)
    status = given.pop("status")
    return {**given, "status": ",".join(status) if status else None, "fields": TASK_FIELDS}


# What clients change.


class Answered(msgspec.Struct):
    """The outcome of one task's submission, on the wire."""

    id: str
    created: bool
    refused: ReceivedProblem | None = None


class RemoteWrites(ServerPart):
    """The part of a TaskStore that clients use."""

    async def submit(self, tasks: Sequence[NewTask], *, atomic: bool = True) -> list[Submitted]:
        """Submits tasks; those that break a rule are refused here, as by every store."""
        if len(tasks) > self._limits.tasks_per_call_max:
            accepted = f"up to {self._limits.tasks_per_call_max} tasks in one call"
            raise BadSetting("tasks", len(tasks), accepted)
        refused: dict[int, Submitted] = {}
        good: list[NewTask] = []
        for position, task in enumerate(tasks):
            why = refusal(task, self._limits) or run_refusal(task)
            if why is None:
                good.append(task)
            elif atomic:
                raise why
            else:
                refused[position] = Submitted(id=task.id, refused=why)
        rest = iter(await self._submit(good, atomic=atomic))
        return [refused.get(position) or next(rest) for position in range(len(tasks))]

    async def _submit(self, tasks: list[NewTask], *, atomic: bool) -> list[Submitted]:
        query = {"atomic": "all" if atomic else "each", "in_order": True}
        answers: list[Answered] = []
        for body in _bodies(tasks, split=not atomic):
            # With ids of the caller's: the same tasks again are the same tasks.
            response = await self.transport.call(
                "POST", "/tasks", query=query, body=body, again=True
            )
            answers += response.part("answers", list[Answered])
        return [_submitted(one) for one in answers]

    async def arm(self, task_id: TaskId) -> Task:
        response = await self.transport.call("POST", task_path(task_id, "arm"))
        return read(Task, response.read(Fields))

    async def amend(self, task_id: TaskId, amendment: Amendment) -> Task:
        response = await self.transport.call(
            "PATCH", task_path(task_id), body=amendment_body(amendment), again=True
        )
        return read(Task, response.read(Fields))

    async def cancel(self, task_ids: Sequence[TaskId]) -> list[Cancelled]:
        check_tasks(task_ids)
        return await self._cancel({"ids": task_ids})

    async def cancel_matching(
        self, which: TaskFilter, count_max: int = 1000
    ) -> list[Cancelled]:
        page_count(count_max)
        if not is_findable(which):
            return []
        return await self._cancel(
            {"filter": filter_body(which), "all": True, "count_max": count_max}
        )

    async def _cancel(self, body: Mapping[str, object]) -> list[Cancelled]:
        """Named tasks may be cancelled twice; the next thousand of a filter are others."""
        response = await self.transport.call(
            "POST", "/tasks/cancel", body=body, again="ids" in body
        )
        return read_all(Cancelled, response.part("cancelled", list[Fields]))

    async def add_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._tie("add_continuations", edges)

    async def remove_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        await self._tie("remove_continuations", edges)

    async def _tie(self, verb: str, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
        check_tasks(end for edge in edges for end in edge)
        body = [{"targets": [parent], "values": [child]} for parent, child in edges]
        await self.transport.call("POST", f"/tasks/{verb}", body=body, again=True)

    async def configure_queue(self, queue: str, settings: QueueSettings) -> None:
        check_lease_seconds(settings.lease_seconds)
        await self.transport.call(
            "PATCH", queue_path(queue), body=queue_body(settings), again=True
        )

    pause_queue = asks(TaskStore.pause_queue)


def _bodies(tasks: list[NewTask], *, split: bool) -> list[bytes]:
    """Lists of tasks, each of a size that a server takes; one list unless they may be split."""
    portions = list(in_portions(msgspec.json.encode(task_body(task)) for task in tasks))
    if len(portions) > 1 and not split:
        seen = f"{len(tasks)} with more than {BODY_BYTES_MAX} bytes together"
        raise BadSetting("tasks", seen, "less in one call to a server; use several")
    return [json_list(portion) for portion in portions]


def _submitted(answer: Answered) -> Submitted:
    refused = error_from(answer.refused) if answer.refused else None
    assert refused is None or isinstance(refused, Refused), refused
    return Submitted(id=TaskId(answer.id), created=answer.created, refused=refused)
