"""The state from which a follower of events begins, with the cursor from which to go on.

The cursor is read first: the state is at least as new as it. What is told after the cursor may
be in the state already; since an event holds the state after it, applying one again is no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tidewheel.api.tasks import Task
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.ports.store import Store
from tidewheel.views.events import pooled_document
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, gather
from tidewheel.views.status_text import words_of

TASKS_MAX = 10_000
OPEN = tuple(status for status in Status if status not in FINAL)


async def queue_snapshot(store: Store, queue: str) -> Document:
    """The tasks of a queue that have not ended."""
    cursor = await store.events_head()
    found = await _open_tasks(store, queue)
    return {"id": str(cursor), "run": None, "pool": []} | _told(found)


async def run_snapshot(store: Store, view: RunView, home: Path) -> Document:
    """A run, its pool, and those of its submissions that have not ended."""
    cursor = await store.events_head()
    looked = await gather(store, view, home, recall=False)
    found = await _open_tasks(store, looked.view.queue)
    own = [one for one in found if one.id.startswith(f"{looked.view.name}/")]
    run = {
        "run": looked.view.name,
        "number": looked.view.number,
        "workflow": looked.view.workflow,
        "status": looked.view.status,
        "reason": looked.view.reason,
        "batch": looked.view.batch,
    }
    return {"id": str(cursor), "run": run, "pool": _pool(looked)} | _told(own)


async def _open_tasks(store: Store, queue: str) -> list[Task]:
    which = TaskFilter(statuses=OPEN, queue=queue)
    return await store.list_tasks(which, KeysetPage(count=TASKS_MAX))


def _told(found: Sequence[Task]) -> Document:
    return {
        "tasks": [_task_document(one) for one in found],
        "cut": len(found) == TASKS_MAX,  # there may be older ones
    }


def _task_document(task: Task) -> Document:
    return {
        "id": task.id,
        "queue": task.queue,
        "name": task.name,
        "status": task.status.value,
        "attempt": task.attempt,
        "worker": task.owner,
        "progress": task.progress,
    }


def _pool(looked: RunSnapshot) -> list[Document]:
    return [
        pooled_document(
            looked.pool.plan.text(task.point),
            task.plan.name,
            words_of(looked.pool, key),
            task.submit,
        )
        for key, task in sorted(looked.pool.tasks.items())
    ]
