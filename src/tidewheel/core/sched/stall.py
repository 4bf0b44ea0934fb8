"""Says whether a run can go on by itself, and if not, why (SEMANTICS §9).

Whether a run is idle is known from counters. Only when it is, and that is the end of a run or a
moment when a person is needed, are the tasks that are left looked at.
"""

from __future__ import annotations

from tidewheel.core.sched.completion import lacking_text
from tidewheel.core.sched.effects import CancelTimer
from tidewheel.core.sched.evaluation import holds, leaf_value
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import AtomValue, Key, PooledTask, PoolState

__all__ = [
    "NOTHING_RAN",
    "STALL",
    "RunStatus",
    "give_up",
    "update_status",
    "left_over",
    "root_causes",
]

STALL = "stall"
PARENTS_MAX = 1_000  # looked at to find the cause of one waiting task
CAUSES_TOLD_MAX = 10  # in one sentence; the rest are counted
NOTHING_RAN = "completed without running anything: no task was ready at any point"

_ACTIVE, _RUNNING = PoolState.ACTIVE, RunStatus.RUNNING


def update_status(context: StepContext) -> None:
    """Set the status of the run; a change of it is news."""
    pool = context.pool
    run = pool.run
    old = run.status
    if old is _RUNNING and pool.standings[_ACTIVE] and not (run.stopping or run.paused):
        return
    new = status_of(pool)
    if new == old:
        return
    pool.run.status = new
    context.touched.run = True
    if old == RunStatus.STALLED:
        context.effects.append(CancelTimer(None, STALL))
    context.notice(new, None, _text(context, new))


def status_of(pool: TaskPool) -> RunStatus:
    run = pool.run
    standings = pool.standings
    active = standings[PoolState.ACTIVE]
    if run.stopping:
        over = not active or run.stopping == "now"
        return RunStatus.STOPPED if over else RunStatus.STOPPING
    if run.status == RunStatus.STOPPED:
        return RunStatus.STOPPED
    if run.paused:
        return RunStatus.PAUSED
    if active or standings[PoolState.READY] or standings[PoolState.PENDING]:
        return RunStatus.RUNNING
    return _status_when_idle(pool)


def _status_when_idle(pool: TaskPool) -> RunStatus:
    if pool.standings[PoolState.HELD] and any(map(_waits_for_release, pool.tasks.values())):
        return RunStatus.WAITING_FOR_RELEASE
    if left_over(pool):
        return RunStatus.STALLED
    stop = pool.run.stop
    if stop is not None and any(task.point > stop for task in pool.tasks.values()):
        return RunStatus.STOPPED
    return RunStatus.COMPLETED


def _waits_for_release(task: PooledTask) -> bool:
    return task.standing is PoolState.HELD and not task.missing


def left_over(pool: TaskPool) -> list[PooledTask]:
    """Every task that keeps an idle run from completing; never one that is not admitted."""
    stop = pool.run.stop
    return [
        task
        for task in pool.tasks.values()
        if (stop is None or task.point <= stop) and _is_left_over(pool, task)
    ]


def root_causes(pool: TaskPool) -> list[PooledTask]:
    """Returns those of them that do not merely wait for another of them."""
    left = left_over(pool)
    keys = {task.key for task in left}
    return [task for task in left if _is_stuck(task) or not _follows(pool, task, keys)]


def _is_stuck(task: PooledTask) -> bool:
    return task.standing in (PoolState.INCOMPLETE, PoolState.BLOCKED)


def _follows(pool: TaskPool, task: PooledTask, others: set[Key]) -> bool:
    """Says whether what it waits for, however far back, is one of the others."""
    seen: set[Key] = set()
    todo = [task.key]
    while todo and len(seen) < PARENTS_MAX:
        point, name = todo.pop()
        node = pool.plan.nodes.get(name)
        if node is None or (point, name) in seen:
            continue
        seen.add((point, name))
        for arrow, _ in node.arrows_at(point):
            for leaf in arrow.leaves:
                parent = leaf.parent_point(point, pool.plan.initial)
                members = (leaf.node,) if leaf.group is None else leaf.group.members
                if leaf_value(pool, leaf, point, task.flows) is AtomValue.OPEN:
                    todo += [(parent, member) for member in members]
        if not others.isdisjoint(todo):
            return True
    return False


def _is_left_over(pool: TaskPool, task: PooledTask) -> bool:
    if task.standing in (PoolState.INCOMPLETE, PoolState.BLOCKED):
        return True
    waits = task.standing is PoolState.WAITING or (
        task.standing is PoolState.HELD and task.missing
    )
    return bool(waits and task.admitted and not _waits_beyond(pool, task))


def _waits_beyond(pool: TaskPool, task: PooledTask) -> bool:
    """Says whether it would be ready if everything beyond the stop point had happened."""
    last = pool.run.stop
    if last is None and pool.plan.policy.beyond_final is AtomValue.OPEN:
        last = pool.plan.final
    if last is None:
        return False
    for arrow, base in task.plan.arrows_at(task.point):
        true = task.true >> base
        for leaf in arrow.leaves:
            if leaf.parent_point(task.point, pool.plan.initial) > last:
                true |= 1 << leaf.number
        if not holds(arrow.expression, true):
            return False
    return True


def give_up(context: StepContext, timer: str) -> None:
    """The stall timer ran out: the run stops, as it is."""
    run = context.pool.run
    if timer == STALL and run.status == RunStatus.STALLED:
        run.stopping = "now"
        context.touched.run = True
        context.notice("stall timeout", None, "stalled for too long")


def _text(context: StepContext, status: RunStatus) -> str:
    if status is RunStatus.STALLED:
        found = root_causes(context.pool)
        names = [cause_text(context, task) for task in found[:CAUSES_TOLD_MAX]]
        more = len(found) - len(names)
        return "stalled: " + "; ".join(names) + (f"; … and {more} more" if more else "")
    pool = context.pool
    # Of a definition without any task nothing was left undone.
    if status is RunStatus.COMPLETED and not pool.run.has_submitted and pool.plan.nodes:
        return NOTHING_RAN
    return str(status)


def cause_text(context: StepContext, task: PooledTask) -> str:
    name = context.name_of(task.key)
    if task.standing is PoolState.INCOMPLETE:
        return f"{name} {lacking_text(context.pool, task) or f'{task.ended}, incomplete'}"
    if task.standing is PoolState.BLOCKED:
        return f"{name} is blocked"
    return f"{name} waits for its parents"
