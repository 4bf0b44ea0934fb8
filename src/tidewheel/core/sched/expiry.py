"""Tasks that are no longer wanted because their time has passed (SEMANTICS §4.9).

The timer tells of it; a task that becomes ready does not wait to be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop

from tidewheel.core.graph.outputs import EXPIRED
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.ending import end
from tidewheel.core.sched.spawning import clock_at
from tidewheel.core.sched.states import Stage, Standing, Task


def expire(draft: Draft, task: Task) -> None:
    """Fires while the task waits, for whatever reason, unless it was triggered by hand."""
    if task.stage is not Stage.WAITING or task.manual:
        return
    draft.notice("expired", task.key, f"{draft.name_of(task.key)} expired")
    end(draft, task, EXPIRED)


def expire_ready(draft: Draft) -> bool:
    """Of the tasks that are ready those expire whose time has passed; says if any did.

    Where a limit group has room again, only its next tasks are looked at: they are the oldest.
    """
    late = [task for task in draft.ready if _is_late(draft, task)]
    late += [task for number in draft.freed for task in _late_in(draft, number)]
    for task in late:
        expire(draft, task)
    return bool(late)


def _late_in(draft: Draft, number: int) -> Iterator[Task]:
    """The first tasks of a limit group, as long as they are late; they leave its queue."""
    pool = draft.pool
    heap = pool.queues[number].heap
    while heap:
        _, order, key = heap[0]
        task = pool.tasks.get(key)
        if task is None or task.order != order or task.standing is not Standing.READY:
            heappop(heap)
        elif _is_late(draft, task):
            heappop(heap)
            yield task
        else:
            return


def _is_late(draft: Draft, task: Task) -> bool:
    after = task.plan.expiry
    return (
        after is not None
        and task.standing is Standing.READY
        and draft.pool.tasks.get(task.key) is task
        and not task.manual
        and draft.now >= clock_at(draft.pool, task.point, after)
    )
