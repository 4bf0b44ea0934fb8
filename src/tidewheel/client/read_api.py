"""Offers the requests that change nothing, waiting for tasks to end among them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence

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
from tidewheel.core.queue.requests import QueueSettings, Wake
from tidewheel.core.queue.task import TaskId
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.explain import reasons

# Progress and changes by other processes may come without a wake-up.
POLL_SECONDS_FIRST = 0.05
POLL_SECONDS_MAX = 0.5
TASKS_PER_CALL_MAX = 1_000


async def wait_for(
    store: TaskStore,
    task_ids: Sequence[TaskId],
    timeout: float | None,
    on_progress: Callable[[Task], None] | None,
) -> list[Task]:
    """The tasks once all have ended."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def ring(_: Wake) -> None:
        loop.call_soon_threadsafe(changed.set)

    stop_listening = store.listen(ring)
    try:
        async with asyncio.timeout(timeout):
            return await _watch(store, task_ids, changed, on_progress)
    finally:
        stop_listening()


async def _watch(
    store: TaskStore,
    task_ids: Sequence[TaskId],
    changed: asyncio.Event,
    on_progress: Callable[[Task], None] | None,
) -> list[Task]:
    seen: dict[TaskId, Task] = {}
    pause = POLL_SECONDS_FIRST
    while True:
        changed.clear()
        for now in await _look(store, [one for one in task_ids if not _ended(seen, one)]):
            before, seen[now.id] = seen.get(now.id), now
            if on_progress is not None and _moved(before, now):
                on_progress(now)
                pause = POLL_SECONDS_FIRST
        if all(seen[task_id].ended for task_id in task_ids):
            return [seen[task_id] for task_id in task_ids]
        await _rest(changed, pause)
        pause = min(pause * 1.5, POLL_SECONDS_MAX)


def _ended(seen: Mapping[TaskId, Task], task_id: TaskId) -> bool:
    return task_id in seen and seen[task_id].ended


async def _look(store: TaskStore, task_ids: Sequence[TaskId]) -> list[Task]:
    """Returns the tasks, in as few calls as may be: there may be a hundred thousand."""
    wanted = list(dict.fromkeys(task_ids))
    return [
        view
        for start in range(0, len(wanted), TASKS_PER_CALL_MAX)
        for view in await store.get_many(wanted[start : start + TASKS_PER_CALL_MAX])
    ]


def _moved(before: Task | None, now: Task) -> bool:
    if before is None:
        return True
    return (before.status, before.attempt, before.progress) != (
        now.status,
        now.attempt,
        now.progress,
    )


async def _rest(changed: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return


# The requests.


HISTORY_PAGE = 1_000


class ReadApi(Connection):
    """The methods of a client that only read."""

    async def get(self, task_id: str) -> Task:
        """One task; NotFound if there is none."""
        return await self.store.get(TaskId(task_id))

    async def peek(self, queue: str = QUEUE_DEFAULT, count: int = 10) -> list[Task]:
        """Returns the tasks that would be leased next, without taking them."""
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
        """Returns the samples of what the task used over time."""
        return await self.store.usage(TaskId(task_id))

    async def edges(self, task_id: str) -> list[EdgeView]:
        """Returns the edges of the task: what it waits for, and what waits for it."""
        return await self.store.edges(TaskId(task_id))

    async def why(self, task_id: str) -> list[str]:
        """Returns why the task does not run, in words; empty if nothing holds it back."""
        return await reasons(self.store, TaskId(task_id))

    async def wait(
        self,
        *task_ids: str,
        timeout: float | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> list[Task]:
        """Waits until all have ended, and returns them in the order asked for.

        TimeoutError if that takes longer than ``timeout``.

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
