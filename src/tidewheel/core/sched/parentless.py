"""Tasks that nobody spawns come one after the other, in chains (SEMANTICS §4.1, 4.6).

A task is parentless at a point in a flow when nothing that happens in the graph has still to
happen for it there. Each task has one chain per flow: one instance beyond the runahead limit,
the head; when it is admitted, or leaves the pool before that, the next one is spawned. Points
at which the task was spawned already, or has a verdict, are passed over, so a chain neither
breaks nor runs anything twice.

A chain must also know when it has no next point: a node that waits for its own previous
instance is parentless at its first point only, and looking for another would never end. A
sequence of the node on which an arrow always holds that only parents can make true has no
parentless point beyond the start's reach; what remains is stepped through, `STEPS_MAX` at
most.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedArrow, IndexedAtom, IndexedNode
from tidewheel.core.sched.evaluation import (
    absolute_key,
    holds,
    leaf_value,
    never_comes,
    outside_value,
)
from tidewheel.core.sched.flows import may_spawn
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.propagation import merge
from tidewheel.core.sched.spawn import keeps_its_place, spawn
from tidewheel.core.sched.task_state import AtomValue, Flows, PooledTask

STEPS_MAX = 10_000  # points passed over in one search


def is_parentless(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    """Says whether no other task need spawn the node's task at this point."""
    if never_comes(pool, node, point):
        return False
    by_shape = pool.plan.policy.parentless_by_shape
    holds_there = _is_parentless_by_shape if by_shape else _is_true_without_parents
    return all(holds_there(pool, arrow, point, flows) for arrow, _ in node.arrows_at(point))


def _is_true_without_parents(
    pool: TaskPool, arrow: IndexedArrow, point: Point, flows: Flows
) -> bool:
    mask = 0
    for leaf in arrow.leaves:
        parent = leaf.parent_point(point, pool.plan.initial)
        value = outside_value(pool, leaf, parent, flows)
        if value is None and leaf.absolute is not None:
            value = leaf_value(pool, leaf, point, flows)
        if value is AtomValue.TRUE:
            mask |= 1 << leaf.number
    return holds(arrow.expression, mask)


def _is_parentless_by_shape(
    pool: TaskPool, arrow: IndexedArrow, point: Point, flows: Flows
) -> bool:
    leaves = arrow.leaves
    initial = pool.plan.initial
    outside = (
        outside_value(pool, leaf, leaf.parent_point(point, initial), flows) for leaf in leaves
    )
    return all(leaf.absolute is not None for leaf in leaves) or all(
        value is AtomValue.TRUE for value in outside
    )


def start_chain(context: StepContext, node: IndexedNode, flow: int, first: Point) -> None:
    """Spawns the first instance at or after a point that nobody else will spawn.

    A chain whose head is earlier comes there by itself. One whose head is later comes there
    again: two of a chain do not wait for the runahead limit.
    """
    pool = context.pool
    before = Point(first - 1)
    head = pool.chains.get((node.name, flow))
    if head is not None:
        found = None if head <= first else next_parentless(pool, node, flow, before)
        if found is None or found > head:
            return
        _withdraw(context, pool.tasks[(head, node.name)])
    _spawn_next(context, node, flow, before)


def _withdraw(context: StepContext, task: PooledTask) -> None:
    """Takes the head of a chain back, unless anything has happened to it but being spawned."""
    by_hand = task.manual or task.satisfied_by_hand or task.held or task.heard
    if task.admitted or by_hand or task.outputs or len(task.flows) > 1 or task.plan.expiry:
        return
    context.pool.dismiss(task)
    task.memory.spawned -= task.flows
    context.touched.tasks[task.key] = context.touched.memory[task.key] = None


def move_on(context: StepContext, task: PooledTask) -> None:
    """Spawns the next task of a chain whose head was admitted, or is gone."""
    chains = context.pool.chains
    for flow in sorted(task.flows):
        if chains.get((task.plan.name, flow)) == task.point:
            _spawn_next(context, task.plan, flow, task.point)


def join_chain(context: StepContext, task: PooledTask) -> None:
    """Begins the chain of a flow with a task admitted by hand, where there is none."""
    pool = context.pool
    for flow in sorted(task.flows):
        if (task.plan.name, flow) not in pool.chains and is_parentless(
            pool, task.plan, task.point, frozenset({flow})
        ):
            _spawn_next(context, task.plan, flow, task.point)


def _spawn_next(context: StepContext, node: IndexedNode, flow: int, after: Point) -> None:
    pool = context.pool
    chain = (node.name, flow)
    point = next_parentless(pool, node, flow, after)
    context.touched.chains[chain] = None
    if point is None or not may_spawn(pool, flow, point):
        pool.chains.pop(chain, None)
        return
    pool.chains[chain] = point
    flows = frozenset({flow})
    pooled = pool.tasks.get((point, node.name))
    if pooled is None:
        spawn(context, node, point, flows, head=True)
        return
    merge(context, pooled, flows)
    if pooled.admitted and not keeps_its_place(pooled):
        _spawn_next(context, node, flow, point)


def next_parentless(pool: TaskPool, node: IndexedNode, flow: int, after: Point) -> Point | None:
    """Returns the next point at which a node is parentless and not known in that flow."""
    flows = frozenset({flow})
    point = after
    early = Point(_first_point(pool, flow) + pool.plan.reach_back)
    for _ in range(STEPS_MAX):
        found = _next_candidate(pool, node, flows, point, early)
        if found is None:
            return None
        point = found
        if not _is_known(pool, node, point, flow) and is_parentless(pool, node, point, flows):
            return point
    return None


def _first_point(pool: TaskPool, flow: int) -> Point:
    """Returns the point before which everything counts as met in a flow."""
    state = pool.flows.get(flow)
    ignored = None if state is None else state.ignore_before
    return pool.run.start if ignored is None else max(pool.run.start, ignored)


def _next_candidate(
    pool: TaskPool, node: IndexedNode, flows: Flows, after: Point, early: Point
) -> Point | None:
    """Returns the next point at which a node may be parentless.

    Beyond the reach of the start, that is so on fewer sequences.
    """
    if after < early:
        return node.next_after(after)
    barred = {
        id(arrow.sequence)
        for arrow, _ in node.arrows
        if not _may_be_parentless(pool, arrow, flows)
    }
    found = (one.sequence.next_after(after) for one in node.sequences if id(one) not in barred)
    return min((one for one in found if one is not None), default=None)


def _may_be_parentless(pool: TaskPool, arrow: IndexedArrow, flows: Flows) -> bool:
    """Says whether absolute atoms alone make, or count as making, an arrow true."""
    if pool.plan.policy.parentless_by_shape:
        return all(leaf.absolute is not None for leaf in arrow.leaves)
    mask = 0
    for leaf in arrow.leaves:
        if leaf.absolute is not None and _absolute_is_true(pool, leaf, flows):
            mask |= 1 << leaf.number
    return holds(arrow.expression, mask)


def _absolute_is_true(pool: TaskPool, leaf: IndexedAtom, flows: Flows) -> bool:
    assert leaf.absolute is not None
    if outside_value(pool, leaf, leaf.absolute, flows) is AtomValue.TRUE:
        return True
    values = pool.absolute.get(absolute_key(leaf), {})
    return any(values.get(flow) is AtomValue.TRUE for flow in flows)


def _is_known(pool: TaskPool, node: IndexedNode, point: Point, flow: int) -> bool:
    memory = pool.recall(point, node.name)
    return memory is not None and (flow in memory.spawned or flow in memory.verdicts)
