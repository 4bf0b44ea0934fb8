"""Puts tasks into the pool when an output they wait for is made (SEMANTICS §4.4, 4.5).

A task is spawned once per flow, whatever its parents do later: the memory of what was spawned
outlives the pool entry. It starts with every atom already recorded in its own flows, so it does
not matter which parent was first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Interval, Point, add
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import IndexedArrow, IndexedNode
from tidewheel.core.sched.elements import lists_behind
from tidewheel.core.sched.evaluation import absolute_key, is_true, value_to
from tidewheel.core.sched.events import CancelTimer, CheckXtrigger, DropXtrigger, SetTimer
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
)

if TYPE_CHECKING:
    from tidewheel.core.sched.persistence import PooledTaskRow

# What a task waits for besides xtriggers; no label of one can have a hyphen.
CLOCK = "clock-trigger"
EXPIRY = "clock-expire"
RETRY = "retry-delay"
MESSAGE = "message/"
TIMERS = (CLOCK, RETRY)
STALL = "stall"  # a timer of the run itself
POINTS_SEARCHED_MAX = 1_000  # for the next one that a lost atom at a fixed point blocks
POINTS_MAX = 100  # that may hold tasks which count, unless a future offset needs more


# Looking up a member of an enum costs more than making a tuple, so hot code names them once.
_TRUE = AtomValue.TRUE
_STAGE_WAITING, _STAGE_INCOMPLETE = JobPhase.WAITING, JobPhase.INCOMPLETE
_WAITING, _UNRELEASED, _PENDING = PoolState.WAITING, PoolState.UNRELEASED, PoolState.PENDING
_HELD, _READY, _ACTIVE = PoolState.HELD, PoolState.READY, PoolState.ACTIVE
_INCOMPLETE, _BLOCKED = PoolState.INCOMPLETE, PoolState.BLOCKED


def standing_of(task: PooledTask | PooledTaskRow) -> PoolState:
    """Returns why a task is in the pool."""
    if task.stage is not _STAGE_WAITING:
        return _INCOMPLETE if task.stage is _STAGE_INCOMPLETE else _ACTIVE
    if task.held:
        return _HELD
    if not task.missing:
        if not task.admitted:
            return _UNRELEASED
        return _PENDING if task.waits else _READY
    if task.blocked:
        return _BLOCKED
    return _PENDING if task.waits and task.admitted else _WAITING


def settle(context: StepContext, task: PooledTask) -> None:
    """Brings a task's standing up to date after a change; one that became ready is queued."""
    standing = standing_of(task)
    if standing is not task.standing:
        context.pool.stand(task, standing)
        if standing is _READY:
            context.ready.append(task)
    context.touched.tasks[task.key] = None


def spawn(
    context: StepContext,
    node: IndexedNode,
    point: Point,
    flows: Flows,
    true: int = 0,
    *,
    head: bool = False,
) -> PooledTask:
    """Puts a task into the pool, in these flows; `true` are atoms known to be true.

    The head of a chain is admitted when it is its turn. Any other that lies between the base
    and the limit is admitted here, unless an event of this kind may bring an earlier base.
    """
    pool = context.pool
    key = (point, node.name)
    memory = pool.begin(point, node.name, flows)
    # Else it was begun just now; of a task in no flow that cannot be told from its flows.
    if memory.spawned is not flows or not flows:
        memory.spawned |= flows
        context.touched.memory[key] = None
    task = PooledTask(node, key, point, flows, memory, memory.submits, true)
    if node.arrows and (not true or true != node.suffices):
        look_up(pool, task)
        if task.missing and node.may_be_born_dead:
            context.evaluate(key, flows)
    if node.waits_for_more:
        _begin_waits(task)
    run = pool.run
    if run.held_tasks or run.missed or run.hold_after is not None:
        task.held = key in run.held_tasks or (
            run.hold_after is not None and point > run.hold_after
        )
        no_longer_missed(context, key)
    if not head and context.base_is_firm and _is_within_limit(pool, point):
        task.admitted = True
        if task.waits:
            begin_checks(context, task)
    standing = task.standing = standing_of(task)
    pool.add(task)
    if standing is _READY:
        context.ready.append(task)
    if node.expiry is not None:
        set_expiry(context, task)
    context.touched.tasks[key] = None
    return task


def no_longer_missed(context: StepContext, key: Key) -> None:
    """Ends that a task counts as one that a reload brought too late."""
    if context.pool.run.missed.pop(key, key) is None:
        context.touched.run = True


def _is_within_limit(pool: TaskPool, point: Point) -> bool:
    base, limit = pool.base, pool.limit
    if base is None or limit is None or point > limit or point < base:
        return False
    stop = pool.run.stop
    return (stop is None or point <= stop) and len(pool.counted.counts) <= POINTS_MAX


def look_up(pool: TaskPool, task: PooledTask) -> None:
    """Makes true every atom of a task that is recorded, and counts the arrows that are not."""
    missing = 0
    true = task.true
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            bit = 1 << (base + leaf.number)
            if true & bit:
                continue
            if value_to(pool, leaf, task) is _TRUE:
                true |= bit
            elif leaf.absolute is not None:
                pool.waiting_for.setdefault(absolute_key(leaf), {})[task.key] = None
        if not is_true(arrow, base, true):
            missing += 1
    task.true = true
    task.missing = missing


def look_up_in(pool: TaskPool, task: PooledTask, flows: Flows) -> None:
    """Looks atoms up as `look_up` does, but counts only what was made in these flows."""
    together = task.flows
    task.flows = flows
    look_up(pool, task)
    task.flows = together


def look_again(context: StepContext, task: PooledTask) -> None:
    """Looks atoms up for a task that has left a flow: what all of its other flows ignore may
    count as made from now on."""
    if task.stage is _STAGE_WAITING and task.missing and not task.outputs:
        look_up(context.pool, task)
        task.blocked = task.blocked and bool(task.missing)
        settle(context, task)


def satisfy(
    context: StepContext, task: PooledTask, arrow: IndexedArrow, base: int, number: int
) -> None:
    """Makes an atom of a pooled task true."""
    bit = 1 << (base + number)
    if task.true & bit:
        return
    was_true = not arrow.is_conjunction and is_true(arrow, base, task.true)
    task.true |= bit
    if task.missing and not was_true and is_true(arrow, base, task.true):
        task.missing -= 1
        if not task.missing:
            task.blocked = False
        settle(context, task)
    else:
        context.touched.tasks[task.key] = None
    if task.blocked:
        context.evaluate(task.key, task.flows)


def show_next_blocked(context: StepContext, task: PooledTask) -> None:
    """Looks for the next one that an absolute atom blocks, of which only the first shows, if
    this one is it and is to leave or to be run by hand."""
    if task.blocked and task.plan.waits_for_absolute:
        context.to_seek_blocked.extend(
            (task.plan, flow, task.point, POINTS_SEARCHED_MAX) for flow in task.flows
        )


def leave(context: StepContext, task: PooledTask) -> None:
    """Takes a task out of the pool; its timers and checks go with it."""
    pool, touched, key = context.pool, context.touched, task.key
    pool.dismiss(task)
    touched.tasks[key] = touched.memory[key] = None
    task.memory.submits = task.submit
    node, admitted = task.plan, task.admitted
    if task.waits and admitted:
        end_checks(context, task)
    if node.expiry is not None and task.stage is _STAGE_WAITING:
        context.effects.append(CancelTimer(key, EXPIRY))
    if not admitted or node.in_sequence:
        context.chains_to_advance.append(task)
    if task.blocked:
        show_next_blocked(context, task)
    if len(pool.flow_counts) > 1 or not task.flows:
        # While it was here, nothing of it could come, or be blocked, in other flows.
        context.evaluate(key, pool.flows_without(task))
    if context.plan.mapped and len(pool.flows) > 1 and lists_behind(node, task.point):
        context.elements_left.append((node, task.point))
    held = pool.run.held_tasks
    if held and key in held:
        del held[key]
        touched.run = True


def no_longer_waits(context: StepContext, task: PooledTask, name: str) -> None:
    """Ends a task's wait for an xtrigger or a timer; a chain that waited for it moves on."""
    del task.waits[name]
    if task.admitted and name in task.plan.in_sequence and not keeps_its_place(task):
        context.chains_to_advance.append(task)


def keeps_its_place(task: PooledTask) -> bool:
    """Says whether a task waits for a sequential xtrigger, so that its chain stays there."""
    return not task.plan.in_sequence.isdisjoint(task.waits)


def begin_checks(context: StepContext, task: PooledTask) -> None:
    """Asks for the timer and the xtrigger checks that an admitted task waits for."""
    key = task.key
    for name in task.waits:
        if name == CLOCK:
            at = clock_at(context.pool, task.point, task.plan.clock)
            context.effects.append(SetTimer(key, CLOCK, at))
        else:
            context.effects.append(CheckXtrigger(key, name))


def end_checks(context: StepContext, task: PooledTask) -> None:
    """Cancels the timers and the xtrigger checks that an admitted task waits for."""
    for name in task.waits:
        end = CancelTimer if name in TIMERS else DropXtrigger
        context.effects.append(end(task.key, name))


def _begin_waits(task: PooledTask) -> None:
    node = task.plan
    for sequence, label in node.xtriggers:
        if sequence.has(task.point):
            task.waits[label] = None
    if node.clock is not None:
        task.waits[CLOCK] = None
    if node.message:
        task.waits[MESSAGE + node.message] = None


def set_expiry(context: StepContext, task: PooledTask) -> None:
    """Sets the timer that tells when a task expires."""
    at = clock_at(context.pool, task.point, task.plan.expiry)
    context.effects.append(SetTimer(task.key, EXPIRY, at))


def clock_at(pool: TaskPool, point: Point, after: Interval | None) -> Instant:
    assert after is not None
    style = pool.plan.graph.cycling.style
    return Instant(float(add(style.calendar, point, after, style.utc_offset_minutes)))
