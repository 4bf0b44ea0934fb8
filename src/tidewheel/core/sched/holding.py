"""`hold`, `release`, `kill`, `poll`: what operators do to single tasks (SEMANTICS §8)."""

from __future__ import annotations

from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.effects import KillJob, PollJob
from tidewheel.core.sched.events import Hold, HoldAfter, Kill, Poll, Release, ReleaseAll
from tidewheel.core.sched.ids import refuse_unknown
from tidewheel.core.sched.spawning import settle
from tidewheel.core.sched.states import Key


def held(draft: Draft, event: Hold) -> None:
    """Tasks that are not spawned yet are held when they are."""
    refuse_unknown(draft.pool, event.tasks)
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is None:
            draft.pool.run.held_tasks[key] = None
            draft.touched.run = True
        else:
            task.held = True
            settle(draft, task)


def released(draft: Draft, event: Release) -> None:
    for key in event.tasks:
        _release(draft, key)


def all_held_after(draft: Draft, event: HoldAfter) -> None:
    draft.pool.run.hold_after = event.point
    draft.touched.run = True
    for task in list(draft.pool.tasks.values()):
        if task.point > event.point and not task.is_active:
            task.held = True
            settle(draft, task)


def all_released(draft: Draft, event: ReleaseAll) -> None:  # noqa: ARG001
    run = draft.pool.run
    run.hold_after = None
    draft.touched.run = True
    for key in [*run.held_tasks, *draft.pool.tasks]:
        _release(draft, key)


def _release(draft: Draft, key: Key) -> None:
    run = draft.pool.run
    if key in run.held_tasks:
        del run.held_tasks[key]
        draft.touched.run = True
    task = draft.pool.tasks.get(key)
    if task is not None and task.held:
        task.held = False
        settle(draft, task)


def killed(draft: Draft, event: Kill) -> None:
    """The job is killed; the task is held, so that it does not run again by itself."""
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is not None and task.is_active:
            task.held = True
            draft.touched.tasks[key] = None
            draft.effects.append(KillJob(key, task.submit))


def polled(draft: Draft, event: Poll) -> None:
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is not None and task.is_active:
            draft.effects.append(PollJob(key, task.submit))
