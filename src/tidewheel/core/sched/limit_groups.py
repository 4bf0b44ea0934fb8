"""How many tasks may be active at once, and which goes first (SEMANTICS §7)."""

from __future__ import annotations

from heapq import heappop, heappush

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.effects import CancelTimer, Submit
from tidewheel.core.sched.pool import LimitQueue
from tidewheel.core.sched.spawn import EXPIRY
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import Stage, Standing, Task

_READY, _ACTIVE, _PREPARING = Standing.READY, Standing.ACTIVE, Stage.PREPARING


def submit_ready(draft: Draft) -> None:
    """Submit what became ready, or what waited for the room that was made."""
    pool = draft.pool
    run = pool.run
    closed = run.paused or bool(run.stopping)
    ready = draft.ready
    if len(ready) > 1:
        ready.sort(key=_point_of)  # stable: then in the order of becoming ready
    for task in ready:
        if task.standing is not _READY or pool.tasks.get(task.key) is not task:
            continue
        queue = pool.queues[task.plan.limit]
        if closed or queue.heap or 0 < queue.limit <= queue.active:
            _queue(draft, queue, task)
        else:
            launch(draft, task)
    ready.clear()
    if draft.freed and not closed:
        for number in draft.freed:
            fill(draft, pool.queues[number])
    draft.freed.clear()


def fill(draft: Draft, queue: LimitQueue) -> None:
    """Submit queued tasks while there is room."""
    while queue.heap and not 0 < queue.limit <= queue.active:
        _, order, key = heappop(queue.heap)
        task = draft.pool.tasks.get(key)
        if task is not None and task.order == order and task.standing is _READY:
            launch(draft, task)


def launch(draft: Draft, task: Task) -> None:
    """Run a task once: a new submission."""
    pool = draft.pool
    key = task.key
    task.stage = _PREPARING
    task.submit += 1
    task.order = 0
    task.ended = ""
    pool.stand(task, _ACTIVE)
    pool.queues[task.plan.limit].active += 1
    draft.touched.tasks[key] = None
    draft.effects.append(Submit(key, task.submit, task.try_number, task.flows))
    if task.plan.expiry is not None:
        draft.effects.append(CancelTimer(key, EXPIRY))
    if not pool.run.has_submitted:
        pool.run.has_submitted = True
        draft.touched.run = True


def _queue(draft: Draft, queue: LimitQueue, task: Task) -> None:
    run = draft.pool.run
    if not task.order:
        run.order += 1
        task.order = run.order
        draft.touched.run = True
        draft.touched.tasks[task.key] = None
    heappush(queue.heap, (task.point, task.order, task.key))


def _point_of(task: Task) -> Point:
    return task.point
