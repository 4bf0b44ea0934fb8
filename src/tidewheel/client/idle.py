"""When a worker has nothing left to do, and what it leaves."""

from __future__ import annotations

import asyncio
from collections import Counter

from tidewheel.api.tasks import QueueView, Task
from tidewheel.client.fields import QUEUE_DEFAULT
from tidewheel.config import WorkerSettings
from tidewheel.core.queue.requests import Page, TaskFilter
from tidewheel.core.queue.resources import Resources, fits
from tidewheel.core.queue.serving import Served, is_pattern
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.ports.tasks import TaskStore
from tidewheel.quantities import show_instant

LOOK_SECONDS = 0.1
TASKS_LOOKED_AT_MAX = 1_000


async def until_idle(
    store: TaskStore, settings: WorkerSettings, handlers: frozenset[str]
) -> None:
    """Until no open queue of this worker has a task that runs, or that it could run."""
    while await _has_work(store, settings, handlers):
        await asyncio.sleep(LOOK_SECONDS)


async def left_behind(
    store: TaskStore, settings: WorkerSettings, handlers: frozenset[str]
) -> Counter[str]:
    """Why tasks of its queues that need nothing more are left by a worker that goes, with how
    many each; of those that anybody could take now nothing is said."""
    found: Counter[str] = Counter()
    for view in await _served(store, settings):
        if view.settings.paused:
            found[f"queue {view.queue!r} is paused"] += view.counts.get(Status.READY, 0)
            continue
        for task in await _ready(store, view):
            if reason := _why_not(task, settings, handlers) or _delay(task):
                found[reason] += 1
    return +found


async def unknown_queues(store: TaskStore, settings: WorkerSettings) -> list[str]:
    """Queues of which the store has neither a task nor a setting, so that their names may be
    mistaken; the default one is nobody's mistake."""
    known = {view.queue for view in await store.queues()} | {QUEUE_DEFAULT}
    named = [one for one in settings.queues if not is_pattern(one) and one not in known]
    return [
        one for one in named if not await store.list_tasks(TaskFilter(queue=one), Page(count=1))
    ]


async def _has_work(
    store: TaskStore, settings: WorkerSettings, handlers: frozenset[str]
) -> bool:
    for view in await _served(store, settings):
        if any(view.counts.get(status) for status in LEASED):
            return True
        if await _has_ready(store, view, settings, handlers):
            return True
    return False


async def _served(store: TaskStore, settings: WorkerSettings) -> list[QueueView]:
    served = Served(settings.queues)
    return [view for view in await store.queues() if view.queue in served]


async def _has_ready(
    store: TaskStore, view: QueueView, settings: WorkerSettings, handlers: frozenset[str]
) -> bool:
    counted = view.counts.get(Status.READY, 0)
    if view.settings.paused or not counted:
        return False
    ready = await _ready(store, view)
    if len(ready) < min(counted, TASKS_LOOKED_AT_MAX):
        return True  # some were taken since they were counted, and may run now
    return not all(_why_not(task, settings, handlers) for task in ready)


async def _ready(store: TaskStore, view: QueueView) -> list[Task]:
    which = TaskFilter(statuses=(Status.READY,), queue=view.queue)
    return await store.list_tasks(which, Page(count=TASKS_LOOKED_AT_MAX))


def _why_not(task: Task, settings: WorkerSettings, handlers: frozenset[str]) -> str:
    """What this worker lacks to run a task; empty if nothing."""
    if task.command is None and task.handler not in handlers:
        return f"no handler {task.handler!r}" if task.handler else "neither command nor handler"
    if fits(task.resources, settings.capacity):
        return ""
    return _lack(task.resources, settings.capacity)


def _delay(task: Task) -> str:
    """Until when it waits; empty if it does not."""
    return "" if task.due_at is None else f"due at {show_instant(int(task.due_at))}"


def _lack(asked: Resources, offered: Resources) -> str:
    if absent := sorted(asked.labels - offered.labels):
        return f"no label {', '.join(map(repr, absent))}"
    amounts = {
        "cpu": (asked.cpu, offered.cpu),
        "memory": (asked.memory_bytes, offered.memory_bytes),
        "gpu": (asked.gpu, offered.gpu),
        "nodes": (asked.nodes, offered.nodes),
        "buffer": (asked.buffer_bytes, offered.buffer_bytes),
    }
    short = [name for name, (wanted, there) in amounts.items() if wanted > there]
    return f"too little {', '.join(short) or 'of what they ask for'} (tidewheel worker --help)"
