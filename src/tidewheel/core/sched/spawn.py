"""How tasks come into the pool when an output they wait for is made (SEMANTICS §4.4, 4.5).

A task is spawned once per flow, whatever its parents do later: the memory of what was spawned
outlives the pool entry. It starts with every atom already recorded in its own flows, so it does
not matter which parent was first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.interval import Interval, add
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import ArrowPlan, NodePlan
from tidewheel.core.sched.effects import CancelTimer, CheckXtrigger, DropXtrigger, SetTimer
from tidewheel.core.sched.evaluation import absolute_key, is_true, leaf_value
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import Flows, Stage, Standing, Task, Value

if TYPE_CHECKING:
    from tidewheel.core.sched.persistence import TaskRow

# What a task waits for besides xtriggers; no label of one can have a hyphen.
CLOCK = "clock-trigger"
EXPIRY = "clock-expire"
RETRY = "retry-delay"
MESSAGE = "message/"
TIMERS = (CLOCK, RETRY)
POINTS_SEARCHED_MAX = 1_000  # for the next one that a lost atom at a fixed point blocks
POINTS_MAX = 100  # that may hold tasks which count, unless a future offset needs more


_TRUE = Value.TRUE
_STAGE_WAITING, _STAGE_INCOMPLETE = Stage.WAITING, Stage.INCOMPLETE
_WAITING, _UNRELEASED, _PENDING = Standing.WAITING, Standing.UNRELEASED, Standing.PENDING
_HELD, _READY, _ACTIVE = Standing.HELD, Standing.READY, Standing.ACTIVE
_INCOMPLETE, _BLOCKED = Standing.INCOMPLETE, Standing.BLOCKED


def standing_of(task: Task | TaskRow) -> Standing:
    """Why a task is in the pool."""
    if task.stage is not _STAGE_WAITING:
        return _INCOMPLETE if task.stage is _STAGE_INCOMPLETE else _ACTIVE
    if task.held:
        return _HELD
    if not task.missing:
        if not task.released:
            return _UNRELEASED
        return _PENDING if task.waits else _READY
    if task.blocked:
        return _BLOCKED
    return _PENDING if task.waits and task.released else _WAITING


def settle(draft: Draft, task: Task) -> None:
    """Count a task anew after a change; one that became ready joins its limit group."""
    standing = standing_of(task)
    if standing is not task.standing:
        draft.pool.stand(task, standing)
        if standing is _READY:
            draft.ready.append(task)
    draft.touched.tasks[task.key] = None


def spawn(
    draft: Draft,
    node: NodePlan,
    point: Point,
    flows: Flows,
    true: int = 0,
    *,
    head: bool = False,
) -> Task:
    """Put a task into the pool, in these flows; `true` are atoms known to be true.

    The head of a chain is unreleased until it is its turn; others that lie between the base and
    the limit need not wait for the closing of the step, unless the base may step back in it.
    """
    pool = draft.pool
    key = (point, node.name)
    memory = pool.remember(point, node.name)
    memory.spawned = memory.spawned | flows if memory.spawned else flows
    task = Task(node, key, flows, memory)
    task.true = true
    if node.arrows and (not true or true != node.suffices):
        look_up(pool, task)
        if task.missing and node.may_be_born_dead:
            draft.to_judge.extend((key, flow) for flow in flows)
    if node.xtriggers or node.clock is not None or node.message:
        _begin_waits(task)
    run = pool.run
    if run.held_tasks or run.hold_after is not None:
        task.held = key in run.held_tasks or (
            run.hold_after is not None and point > run.hold_after
        )
    if not head and draft.base_is_firm and _is_within_limit(pool, point):
        task.released = True
        if task.waits:
            begin_checks(draft, task)
    task.standing = standing_of(task)
    pool.admit(task)
    if task.standing is _READY:
        draft.ready.append(task)
    if node.expiry is not None:
        set_expiry(draft, task)
    touched = draft.touched
    touched.tasks[key] = None
    touched.memory[key] = None
    return task


def _is_within_limit(pool: Pool, point: Point) -> bool:
    base, limit, stop = pool.base, pool.limit, pool.run.stop
    return (
        base is not None
        and limit is not None
        and base <= point <= limit
        and (stop is None or point <= stop)
        and len(pool.counted.counts) <= POINTS_MAX
    )


def look_up(pool: Pool, task: Task) -> None:
    """Make every atom true that is recorded, and count the arrows that are not true."""
    missing = 0
    true = task.true
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            bit = 1 << (base + leaf.number)
            if true & bit:
                continue
            if leaf_value(pool, leaf, task.point, task.flows) is _TRUE:
                true |= bit
            elif leaf.absolute is not None:
                pool.waiting_for.setdefault(absolute_key(leaf), {})[task.key] = None
        if not is_true(arrow, base, true):
            missing += 1
    task.true = true
    task.missing = missing


def look_up_in(pool: Pool, task: Task, flows: Flows) -> None:
    """The same, but what was made in the other flows of the task does not count."""
    together = task.flows
    task.flows = flows
    look_up(pool, task)
    task.flows = together


def satisfy(draft: Draft, task: Task, arrow: ArrowPlan, base: int, number: int) -> None:
    """An atom of a pooled task became true."""
    bit = 1 << (base + number)
    if task.true & bit:
        return
    was_true = not arrow.is_conjunction and is_true(arrow, base, task.true)
    task.true |= bit
    if task.missing and not was_true and is_true(arrow, base, task.true):
        task.missing -= 1
        if not task.missing:
            task.blocked = False
        settle(draft, task)
    else:
        draft.touched.tasks[task.key] = None
    if task.blocked:
        draft.to_judge.extend((task.key, flow) for flow in task.flows)


def leave(draft: Draft, task: Task) -> None:
    """Take a task out of the pool; its timers and checks go with it."""
    draft.pool.dismiss(task)
    key = task.key
    draft.touched.tasks[key] = None
    memory = task.memory
    if memory.submits != task.submit:
        memory.submits = task.submit
        draft.touched.memory[key] = None
    if task.waits and task.released:
        for name in task.waits:
            timer = name in TIMERS
            draft.effects.append((CancelTimer if timer else DropXtrigger)(key, name))
    if task.plan.expiry is not None and task.stage is _STAGE_WAITING:
        draft.effects.append(CancelTimer(key, EXPIRY))
    if not task.released or task.plan.in_sequence:
        draft.to_move.append(task)
    if task.blocked and task.plan.waits_for_absolute:
        # What an absolute atom blocks shows once; now the next one has to.
        draft.to_seek.extend(
            (task.plan, flow, task.point, POINTS_SEARCHED_MAX) for flow in task.flows
        )
    flows = draft.pool.flow_counts
    if len(flows) > 1 or not task.flows:
        # While it was here, nothing of it could come, or be blocked, in other flows.
        draft.to_judge.extend((key, flow) for flow in flows if flow not in task.flows)
    held = draft.pool.run.held_tasks
    if key in held:
        del held[key]
        draft.touched.run = True


def no_longer_waits(draft: Draft, task: Task, name: str) -> None:
    """An xtrigger or a timer is over; what its chain waited for may be, too."""
    del task.waits[name]
    if task.released and name in task.plan.in_sequence and not keeps_its_place(task):
        draft.to_move.append(task)


def keeps_its_place(task: Task) -> bool:
    """Whether the next instance of its chain waits for a sequential xtrigger of this one."""
    return not task.plan.in_sequence.isdisjoint(task.waits)


def begin_checks(draft: Draft, task: Task) -> None:
    """Ask for what a released task waits for besides its parents."""
    key = task.key
    for name in task.waits:
        if name == CLOCK:
            at = clock_at(draft.pool, task.point, task.plan.clock)
            draft.effects.append(SetTimer(key, CLOCK, at))
        else:
            draft.effects.append(CheckXtrigger(key, name))


def _begin_waits(task: Task) -> None:
    node = task.plan
    for sequence, label in node.xtriggers:
        if sequence.has(task.point):
            task.waits[label] = None
    if node.clock is not None:
        task.waits[CLOCK] = None
    if node.message:
        task.waits[MESSAGE + node.message] = None


def set_expiry(draft: Draft, task: Task) -> None:
    """Ask to be told when its time has passed."""
    at = clock_at(draft.pool, task.point, task.plan.expiry)
    draft.effects.append(SetTimer(task.key, EXPIRY, at))


def clock_at(pool: Pool, point: Point, after: Interval | None) -> Instant:
    assert after is not None
    style = pool.plan.graph.cycling.style
    return Instant(float(add(style.calendar, point, after, style.utc_offset_minutes)))
