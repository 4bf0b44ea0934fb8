"""What a request can name at all: the rest is answered here, with the words of a store.

A name that no task, queue or worker can have is in no store. Some of them could not even be
written into a request: half a character is no UTF-8, and a server bounds its URLs.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.queue.requests import TaskFilter
from tidewheel.core.queue.submission import name_finding
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import BadSetting, NotFound
from tidewheel.store.remote.address import path_of


def is_possible(*names: str | None) -> bool:
    """Whether something may have these names."""
    return all(name is None or name_finding("name", name) is None for name in names)


def is_findable(which: TaskFilter) -> bool:
    """Whether a filter can match anything."""
    names = (which.queue, which.worker, which.tag, which.name)
    return which.statuses != () and is_possible(*names)


def check_tasks(task_ids: Iterable[TaskId]) -> None:
    """NotFound for one that no task can have."""
    for task_id in task_ids:
        if not is_possible(task_id):
            raise NotFound("task", task_id)


def task_path(task_id: TaskId, *rest: str) -> str:
    """A path to a task, and what belongs to it."""
    check_tasks([task_id])
    return path_of("tasks", task_id, *rest)


def queue_path(queue: str, *rest: str) -> str:
    """A path to a queue that shall exist afterwards."""
    if finding := name_finding("queue", queue):
        raise BadSetting("queue", queue, finding)
    return path_of("queues", queue, *rest)


def worker_path(worker: str, *rest: str) -> str:
    """A path to a worker."""
    if not is_possible(worker):
        raise NotFound("worker", worker)
    return path_of("workers", worker, *rest)
