"""Reports of jobs, timers and xtriggers become outputs and ends (SEMANTICS §6, 4.9).

A report counts only for the submission that is current: what an older one says is ignored. A
timer tells that a task's time has passed; a task that becomes ready does not wait to be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop

from tidewheel.core.graph.outputs import (
    EXPIRED,
    FAILED,
    STANDARD,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
)
from tidewheel.core.sched.completion import deactivate, end, try_again
from tidewheel.core.sched.events import (
    JobEnd,
    JobEnded,
    JobSubmitted,
    OutputMade,
    TimerFired,
    XtriggerSatisfied,
)
from tidewheel.core.sched.lifecycle import give_up
from tidewheel.core.sched.pool import StepContext
from tidewheel.core.sched.propagation import complete_output
from tidewheel.core.sched.spawn import EXPIRY, clock_at, no_longer_waits, settle
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask, PoolState

_ACTIVE, _RUNNING = PoolState.ACTIVE, JobPhase.RUNNING
_SUCCEEDED = JobEnd.SUCCEEDED
_STANDARD = frozenset(STANDARD)


def current(context: StepContext, key: Key, submit: int) -> PooledTask | None:
    """Returns the task whose job this is; None if the report comes too late."""
    task = context.pool.tasks.get(key)
    if task is None or task.submit != submit or task.standing is not _ACTIVE:
        context.notice(
            "late", key, f"a late report of {context.name_of(key)}/{submit} was ignored"
        )
        return None
    return task


def job_submitted(context: StepContext, event: JobSubmitted) -> None:
    task = current(context, event.task, event.submit)
    if task is not None:
        task.stage = max(task.stage, JobPhase.SUBMITTED)
        context.touched.tasks[event.task] = None
        complete_output(context, task, SUBMITTED)


def output_made(context: StepContext, event: OutputMade) -> None:
    task = current(context, event.task, event.submit)
    if task is None:
        return
    if event.output not in _STANDARD and not _is_declared(task, event.output):
        name, output = context.name_of(event.task), event.output
        context.notice("unknown output", event.task, f"{name} has no output {output}: ignored")
        return
    context.touched.tasks[event.task] = None
    if event.output == SUBMITTED:
        task.stage = max(task.stage, JobPhase.SUBMITTED)
    else:
        task.stage = JobPhase.RUNNING
        if STARTED not in task.outputs:
            complete_output(context, task, STARTED)
    complete_output(context, task, event.output)


def _is_declared(task: PooledTask, output: str) -> bool:
    return any(output == name for name, _ in task.plan.definition.outputs)


def job_ended(context: StepContext, event: JobEnded) -> None:
    task = current(context, event.task, event.submit)
    if task is None:
        return
    started = task.stage is _RUNNING
    deactivate(context, task)
    if event.how is _SUCCEEDED:
        end(context, task, SUCCEEDED)
        return
    output = FAILED if started and event.how is not JobEnd.NOT_STARTED else SUBMIT_FAILED
    killed = event.how is JobEnd.KILLED
    task.held |= killed
    may_retry = not killed or context.plan.policy.killed_keeps_its_retries
    if may_retry and try_again(context, task, output, event.retries):
        return
    end(context, task, output)


def timer_fired(context: StepContext, event: TimerFired) -> None:
    if event.task is None:
        give_up(context, event.name)
        return
    task = context.pool.tasks.get(event.task)
    if task is None:
        return
    if event.name == EXPIRY:
        expire(context, task)
    elif event.name in task.waits:
        no_longer_waits(context, task, event.name)
        settle(context, task)


def xtrigger_satisfied(context: StepContext, event: XtriggerSatisfied) -> None:
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and event.label in task.waits:
            no_longer_waits(context, task, event.label)
            settle(context, task)


def expire(context: StepContext, task: PooledTask) -> None:
    """Expires a task that waits, for whatever reason, unless it was triggered by hand."""
    if task.stage is not JobPhase.WAITING or task.manual:
        return
    context.notice("expired", task.key, f"{context.name_of(task.key)} expired")
    end(context, task, EXPIRED)


def expire_ready(context: StepContext) -> bool:
    """Lets ready tasks expire whose time has passed; says whether any did.

    Where a limit group has room again, only its next tasks are looked at: they are the oldest.
    """
    late = [task for task in context.ready if _is_late(context, task)]
    late += [task for number in context.freed for task in _late_in(context, number)]
    for task in late:
        expire(context, task)
    return bool(late)


def _late_in(context: StepContext, number: int) -> Iterator[PooledTask]:
    """Yields the first tasks of a limit group while they are late; they leave its queue."""
    pool = context.pool
    heap = pool.queues[number].heap
    while heap:
        _, order, key = heap[0]
        task = pool.tasks.get(key)
        if task is None or task.order != order or task.standing is not PoolState.READY:
            heappop(heap)
        elif _is_late(context, task):
            heappop(heap)
            yield task
        else:
            return


def _is_late(context: StepContext, task: PooledTask) -> bool:
    after = task.plan.expiry
    return (
        after is not None
        and task.standing is PoolState.READY
        and context.pool.tasks.get(task.key) is task
        and not task.manual
        and context.now >= clock_at(context.pool, task.point, after)
    )
