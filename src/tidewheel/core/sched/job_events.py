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
from tidewheel.core.sched.propagation import make
from tidewheel.core.sched.spawn import EXPIRY, clock_at, no_longer_waits, settle
from tidewheel.core.sched.stall import give_up
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import Key, Stage, Standing, Task

_ACTIVE, _RUNNING = Standing.ACTIVE, Stage.RUNNING
_SUCCEEDED = JobEnd.SUCCEEDED
_STANDARD = frozenset(STANDARD)


def current(draft: Draft, key: Key, submit: int) -> Task | None:
    """The task whose job this is; None if the report comes too late."""
    task = draft.pool.tasks.get(key)
    if task is None or task.submit != submit or task.standing is not _ACTIVE:
        draft.notice("late", key, f"a late report of {draft.name_of(key)}/{submit} was ignored")
        return None
    return task


def job_submitted(draft: Draft, event: JobSubmitted) -> None:
    task = current(draft, event.task, event.submit)
    if task is not None:
        task.stage = max(task.stage, Stage.SUBMITTED)
        draft.touched.tasks[event.task] = None
        make(draft, task, SUBMITTED)


def output_made(draft: Draft, event: OutputMade) -> None:
    task = current(draft, event.task, event.submit)
    if task is None:
        return
    if event.output not in _STANDARD and not _is_declared(task, event.output):
        name, output = draft.name_of(event.task), event.output
        draft.notice("unknown output", event.task, f"{name} has no output {output}: ignored")
        return
    draft.touched.tasks[event.task] = None
    if event.output == SUBMITTED:
        task.stage = max(task.stage, Stage.SUBMITTED)
    else:
        task.stage = Stage.RUNNING
        if STARTED not in task.outputs:
            make(draft, task, STARTED)
    make(draft, task, event.output)


def _is_declared(task: Task, output: str) -> bool:
    return any(output == name for name, _ in task.plan.definition.outputs)


def job_ended(draft: Draft, event: JobEnded) -> None:
    task = current(draft, event.task, event.submit)
    if task is None:
        return
    started = task.stage is _RUNNING
    deactivate(draft, task)
    if event.how is _SUCCEEDED:
        end(draft, task, SUCCEEDED)
        return
    output = FAILED if started and event.how is not JobEnd.NOT_STARTED else SUBMIT_FAILED
    killed = event.how is JobEnd.KILLED
    task.held |= killed
    may_retry = not killed or draft.plan.policy.killed_keeps_its_retries
    if may_retry and try_again(draft, task, output, event.retries):
        return
    end(draft, task, output)


def timer_fired(draft: Draft, event: TimerFired) -> None:
    if event.task is None:
        give_up(draft, event.name)
        return
    task = draft.pool.tasks.get(event.task)
    if task is None:
        return
    if event.name == EXPIRY:
        expire(draft, task)
    elif event.name in task.waits:
        no_longer_waits(draft, task, event.name)
        settle(draft, task)


def xtrigger_satisfied(draft: Draft, event: XtriggerSatisfied) -> None:
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is not None and event.label in task.waits:
            no_longer_waits(draft, task, event.label)
            settle(draft, task)


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
