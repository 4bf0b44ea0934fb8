"""When a worker has nothing left to do."""

from __future__ import annotations

import asyncio

from tidewheel.config import WorkerSettings
from tidewheel.core.tasks.requests import Page, TaskFilter
from tidewheel.core.tasks.resources import fits
from tidewheel.core.tasks.serving import Served
from tidewheel.core.tasks.status import LEASED, Status
from tidewheel.core.tasks.views import QueueView, TaskView
from tidewheel.ports.tasks import TaskStore

LOOK_SECONDS = 0.1
TASKS_LOOKED_AT_MAX = 1_000


async def until_idle(
    store: TaskStore, settings: WorkerSettings, handlers: frozenset[str]
) -> None:
    """Until no open queue of this worker has a task that runs, or that it could run."""
    while await _has_work(store, settings, handlers):
        await asyncio.sleep(LOOK_SECONDS)


async def _has_work(
    store: TaskStore, settings: WorkerSettings, handlers: frozenset[str]
) -> bool:
    served = Served(settings.queues)
    for view in await store.queues():
        if view.queue not in served:
            continue
        if any(view.counts.get(status) for status in LEASED):
            return True
        if await _has_ready(store, view, settings, handlers):
            return True
    return False


async def _has_ready(
    store: TaskStore, view: QueueView, settings: WorkerSettings, handlers: frozenset[str]
) -> bool:
    counted = view.counts.get(Status.READY, 0)
    if view.settings.paused or not counted:
        return False
    which = TaskFilter(statuses=(Status.READY,), queue=view.queue)
    ready = await store.list_tasks(which, Page(count=TASKS_LOOKED_AT_MAX))
    if len(ready) < min(counted, TASKS_LOOKED_AT_MAX):
        return True  # some were taken since they were counted, and may run now
    return any(
        fits(task.resources, settings.capacity) and _can_run(task, handlers) for task in ready
    )


def _can_run(task: TaskView, handlers: frozenset[str]) -> bool:
    return task.command is not None or task.handler in handlers
