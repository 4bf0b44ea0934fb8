"""The requests that change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

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
from tidewheel.client.connection import Connection
from tidewheel.client.fields import QUEUE_DEFAULT
from tidewheel.client.waiting import wait_for
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.task import TaskId
from tidewheel.services.explain import reasons

HISTORY_PAGE = 1_000


class Looking(Connection):
    """What anybody may ask."""

    async def get(self, task_id: str) -> Task:
        """One task; NotFound if there is none."""
        return await self.store.get(TaskId(task_id))

    async def peek(self, queue: str = QUEUE_DEFAULT, count: int = 10) -> list[Task]:
        """What would be leased next, without taking it."""
        return await self.store.peek(queue, count)

    async def history(self, task_id: str) -> list[HistoryEntry]:
        """The whole life of a task, oldest first."""
        entries: list[HistoryEntry] = []
        while True:
            after = entries[-1].seq if entries else 0
            page = await self.store.history(TaskId(task_id), after, HISTORY_PAGE)
            entries += page
            if len(page) < HISTORY_PAGE:
                return entries

    async def attempts(self, task_id: str) -> list[AttemptView]:
        """Every attempt, the live one last."""
        return await self.store.attempts(TaskId(task_id))

    async def outputs(self, task_id: str) -> list[OutputView]:
        """Messages and outputs in the order in which they were made."""
        return await self.store.outputs(TaskId(task_id))

    async def values(self, task_id: str) -> dict[str, object] | None:
        """The object that the task hands to those after it; None: it hands on nothing."""
        found = await self.store.values_of([TaskId(task_id)])
        text = found.get(TaskId(task_id))
        return None if text is None else json.loads(text)

    async def usage(self, task_id: str) -> list[UsageView]:
        """What the task used over time."""
        return await self.store.usage(TaskId(task_id))

    async def edges(self, task_id: str) -> list[EdgeView]:
        """What the task waits for, and what waits for it."""
        return await self.store.edges(TaskId(task_id))

    async def why(self, task_id: str) -> list[str]:
        """Why the task does not run, in words; empty if nothing holds it back."""
        return await reasons(self.store, TaskId(task_id))

    async def wait(
        self,
        *task_ids: str,
        timeout: float | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> list[Task]:
        """Until all have ended, in the order asked for; TimeoutError if that takes longer.

        ``on_progress`` hears of each task at first and whenever its status, attempt or
        progress changed.
        """
        return await wait_for(
            self.store, [TaskId(task_id) for task_id in task_ids], timeout, on_progress
        )

    async def queues(self) -> list[QueueView]:
        """Every queue that has settings or tasks that have not ended."""
        return await self.store.queues()

    async def queue(self, name: str) -> QueueView:
        """One queue; a queue nobody has named yet has the settings that all begin with."""
        for view in await self.store.queues():
            if view.queue == name:
                return view
        settings = QueueSettings()
        return QueueView(queue=name, settings=settings, counts={}, oldest_ready_seconds=None)

    async def workers(self, *, live_only: bool = True) -> list[WorkerView]:
        """Workers with what they hold, newest first."""
        return await self.store.workers(live_only=live_only)

    async def verify(self) -> list[Violation]:
        """Every row of the store that breaks a promise; none is the right answer."""
        return await self.store.verify()
