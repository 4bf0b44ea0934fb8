"""A limit group says how many tasks may be active at once; the oldest go first (§7)."""

from __future__ import annotations

from heapq import heappop, heappush

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.effects import CancelTimer, Submit
from tidewheel.core.sched.pool import LimitQueue
from tidewheel.core.sched.spawn import EXPIRY
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import JobPhase, PooledTask, PoolState

_READY, _ACTIVE, _PREPARING = PoolState.READY, PoolState.ACTIVE, JobPhase.PREPARING


def submit_ready(context: StepContext) -> None:
    """Submit what became ready, or what waited for the room that was made."""
    pool = context.pool
    run = pool.run
    closed = run.paused or bool(run.stopping)
    ready = context.ready
    if len(ready) > 1:
        ready.sort(key=_point_of)  # stable: then in the order of becoming ready
    for task in ready:
        if task.standing is not _READY or pool.tasks.get(task.key) is not task:
            continue
        queue = pool.queues[task.plan.limit]
        if closed or queue.heap or 0 < queue.limit <= queue.active:
            _queue(context, queue, task)
        else:
            launch(context, task)
    ready.clear()
    if context.freed and not closed:
        for number in context.freed:
            fill(context, pool.queues[number])
    context.freed.clear()


def fill(context: StepContext, queue: LimitQueue) -> None:
    """Submit queued tasks while there is room."""
    while queue.heap and not 0 < queue.limit <= queue.active:
        _, order, key = heappop(queue.heap)
        task = context.pool.tasks.get(key)
        if task is not None and task.order == order and task.standing is _READY:
            launch(context, task)


def launch(context: StepContext, task: PooledTask) -> None:
    """Run a task once: a new submission."""
    pool = context.pool
    key = task.key
    task.stage = _PREPARING
    task.submit += 1
    task.order = 0
    task.ended = ""
    pool.stand(task, _ACTIVE)
    pool.queues[task.plan.limit].active += 1
    context.touched.tasks[key] = None
    context.effects.append(Submit(key, task.submit, task.try_number, task.flows))
    if task.plan.expiry is not None:
        context.effects.append(CancelTimer(key, EXPIRY))
    if not pool.run.has_submitted:
        pool.run.has_submitted = True
        context.touched.run = True


def _queue(context: StepContext, queue: LimitQueue, task: PooledTask) -> None:
    run = context.pool.run
    if not task.order:
        run.order += 1
        task.order = run.order
        context.touched.run = True
        context.touched.tasks[task.key] = None
    heappush(queue.heap, (task.point, task.order, task.key))


def _point_of(task: PooledTask) -> Point:
    return task.point
