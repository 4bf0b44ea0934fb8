"""Waiting for tasks to end: told by the store where it can, asking again where it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from tidewheel.api.tasks import Task
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import TaskId
from tidewheel.ports.tasks import TaskStore

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
    """In as few calls as may be: somebody may wait for a hundred thousand tasks."""
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
