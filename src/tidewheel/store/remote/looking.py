"""What anybody asks of a remote store: tasks, and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING

import msgspec

from tidewheel.api.tasks import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    QueueView,
    Task,
    UsageView,
    Violation,
    WorkerView,
)
from tidewheel.api.wire import NULL, Fields, instant, read, read_all
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.errors import NotFound
from tidewheel.store.operations.queries import page_count
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.encode import (
    check_tasks,
    filter_body,
    is_findable,
    is_possible,
    task_path,
)
from tidewheel.store.remote.transport import ServerPart

if TYPE_CHECKING:
    from tidewheel.core.queue.statistics import EndedAttempt

PAGE_MAX = 1_000
TASK_FIELDS = ",".join((*(field.name for field in fields(Task)), "spec_text"))


class TaskPage(msgspec.Struct):
    """A page of tasks; ``next`` is null at the end."""

    tasks: list[Fields]
    next: int | None


class RemoteLooking(ServerPart):
    """The part of a TaskStore that changes nothing."""

    async def get(self, task_id: TaskId) -> Task:
        return read(Task, await self.get_fields(task_path(task_id)))

    async def get_many(self, task_ids: Sequence[TaskId]) -> list[Task]:
        page_count(max(1, len(task_ids)))
        check_tasks(task_ids)
        body = {"ids": list(dict.fromkeys(task_ids))}
        response = await self.transport.call("POST", "/tasks/get", body=body, again=True)
        given = response.part("tasks", list[Fields])
        found = {view.id: view for view in read_all(Task, given)}
        return [found[task_id] for task_id in task_ids]

    async def list_tasks(self, which: TaskFilter, page: KeysetPage) -> list[Task]:
        """In as many requests as it takes: a server gives at most a thousand at once."""
        page_count(page.count)
        if not is_findable(which):
            return []
        query = _query(which)
        found: list[Fields] = []
        before = page.before
        while (left := page.count - len(found)) > 0:
            query |= {"limit": min(left, PAGE_MAX), "before": before}
            response = await self.transport.call("GET", "/tasks", query=query)
            part = response.read(TaskPage)
            found += part.tasks
            before = part.next
            if before is None:
                break
        return read_all(Task, found)

    async def peek(self, queue: str, count: int) -> list[Task]:
        page_count(count)
        if not is_possible(queue):
            return []
        path = path_of("queues", queue, "peek")
        return await self.get_all(Task, path, "tasks", {"count": count})

    async def history(
        self, task_id: TaskId, after: int = 0, count: int = 100
    ) -> list[HistoryEntry]:
        page_count(count)
        found: list[HistoryEntry] = []
        while (left := count - len(found)) > 0:
            asked = min(left, PAGE_MAX)
            query: Query = {"after": after, "limit": asked}
            path = task_path(task_id, "history")
            part = await self.get_all(HistoryEntry, path, "history", query)
            found += part
            if len(part) < asked:
                break
            after = part[-1].seq
        return found

    async def attempts(self, task_id: TaskId) -> list[AttemptView]:
        path = task_path(task_id, "attempts")
        return await self.get_all(AttemptView, path, "attempts")

    async def outputs(self, task_id: TaskId) -> list[OutputView]:
        return await self.get_all(OutputView, task_path(task_id, "outputs"), "outputs")

    async def values_of(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, str]:
        page_count(max(1, len(task_ids)))
        found: dict[TaskId, str] = {}
        for task_id in dict.fromkeys(task_ids):
            with suppress(NotFound):
                fields = await self.get_fields(task_path(task_id, "outputs"))
                if (values := bytes(fields["values"])) != NULL:
                    found[task_id] = values.decode()
        return found

    async def usage(self, task_id: TaskId) -> list[UsageView]:
        return await self.get_all(UsageView, task_path(task_id, "usage"), "usage")

    async def task_log(
        self, task_id: TaskId, stream: str, attempt: int, offset: int
    ) -> bytes | None:
        """What an attempt wrote from an offset on, as far as one answer goes."""
        query: Query = {"attempt": attempt, "offset": offset}
        path = task_path(task_id, "logs", stream)
        try:
            return (await self.transport.call("GET", path, query=query)).body
        except NotFound as error:
            if error.kind != "log":
                raise
            return None

    async def edges(self, task_id: TaskId) -> list[EdgeView]:
        return await self.get_all(EdgeView, task_path(task_id, "graph"), "edges")

    async def ended_attempts(self, count: int) -> list[EndedAttempt]:
        from tidewheel.core.queue.statistics import EndedAttempt  # noqa: PLC0415 - for figures

        return await self.get_all(EndedAttempt, "/ended-attempts", "attempts", {"limit": count})

    async def queues(self) -> list[QueueView]:
        return await self.get_all(QueueView, "/queues", "queues")

    async def ready_queues(self) -> Mapping[str, int]:
        response = await self.transport.call("GET", "/ready-queues")
        return response.part("priorities", dict[str, int])

    async def workers(self, *, live_only: bool = True) -> list[WorkerView]:
        return await self.get_all(WorkerView, "/workers", "workers", {"all": not live_only})

    async def verify(self) -> list[Violation]:
        return await self.get_all(Violation, "/verify", "violations")

    async def now(self) -> Instant:
        return instant(await self._fact("now"))

    async def store_id(self) -> str:
        return await self._fact("id")

    async def _fact(self, name: str) -> str:
        return msgspec.json.decode((await self.get_fields("/store"))[name], type=str)


def _query(which: TaskFilter) -> dict[str, str | int | float | bool | None]:
    given = filter_body(which)
    status = given.pop("status")
    return {**given, "status": ",".join(status) if status else None, "fields": TASK_FIELDS}
