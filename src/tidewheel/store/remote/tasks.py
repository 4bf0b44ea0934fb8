"""Asks a server about tasks, and lets it store, change, tie together and cancel them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from tidewheel.api.wire import NULL, Fields, instant, out_type, read, read_all
from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.requests import (
    Amendment,
    Cancelled,
    KeysetPage,
    QueueSettings,
    Submitted,
    TaskFilter,
)
from tidewheel.core.queue.submission import refusal, run_refusal
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.errors import BadSetting, NotFound, Refused
from tidewheel.store.operations.queries import page_count
from tidewheel.store.remote.connection import Query, path_of
from tidewheel.store.remote.encode import (
    BODY_BYTES_MAX,
    amendment_body,
    check_tasks,
    filter_body,
    in_portions,
    is_findable,
    is_possible,
    json_list,
    queue_body,
    queue_path,
    task_body,
    task_path,
)
from tidewheel.store.remote.errors import ReceivedProblem, error_from
from tidewheel.store.remote.transport import ServerPart

if TYPE_CHECKING:
    from tidewheel.core.queue.statistics import EndedAttempt

PAGE_MAX = 1_000
TASK_FIELDS = ",".join(out_type(Task).__struct_fields__)


class _TaskPage(msgspec.Struct):
    """A page of tasks; ``next`` is null at the end."""

    tasks: list[Fields]
    next: int | None


class RemoteReads(ServerPart):
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
        """Returns what an attempt wrote from an offset on, as far as one answer goes."""
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
        path = task_path(task_id, "arm")
        return read(Task, await self.post_fields(path, again=False))

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

    async def pause_queue(self, queue: str, *, paused: bool) -> None:
        path = queue_path(queue, "pause" if paused else "resume")
        await self.transport.call("POST", path, again=True)


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
