"""What clients ask of a remote store: tasks to be stored, changed, tied together, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tidewheel.api.tasks import Task
from tidewheel.api.wire import Fields, read, read_all
from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.requests import (
    Amendment,
    Cancelled,
    QueueSettings,
    Submitted,
    TaskFilter,
)
from tidewheel.core.queue.submission import refusal, run_refusal
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import BadSetting, Refused
from tidewheel.store.operations.queries import page_count
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
from tidewheel.store.remote.errors import Problem, error_from
from tidewheel.store.remote.transport import ServerPart


class Answered(msgspec.Struct):
    """What became of one task, on the wire."""

    id: str
    created: bool
    refused: Problem | None = None


class RemoteClients(ServerPart):
    """The part of a TaskStore that clients use."""

    async def submit(self, tasks: Sequence[NewTask], *, atomic: bool = True) -> list[Submitted]:
        """What breaks the rules is refused here, with the words of every store."""
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
