"""Settles atoms at a fixed point: one value per flow, kept while a run lives (SEMANTICS §4.6).

Theory of operation. An atom at a fixed point has children at points without end, so not all of
them can be evaluated when it dies; yet the value of a task must not depend on who asks for it.
So its children are evaluated, when it dies, at every point up to the *front*, the last point at
which a task of the flow was admitted, and at later points as the front moves on (`move_front`):
a task that is admitted finds all its ancestors evaluated. Parents at future offsets lie beyond
the front; they are evaluated, too, as far ahead as the offsets of the graph lead.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedLink, IndexedNode, names_of
from tidewheel.core.sched.dependents import live_points
from tidewheel.core.sched.evaluation import absolute_key, leaf_value
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.spawn import POINTS_SEARCHED_MAX, satisfy
from tidewheel.core.sched.task_state import AtomValue, Flows, PoolState


def settle_absolute(
    context: StepContext, link: IndexedLink, flow: int, value: AtomValue, *, spawns: bool = True
) -> None:
    """Records the value of an atom at a fixed point in a flow, and does what follows from it.

    If the atom is true, children that wait are satisfied, pruned ones are evaluated again, and
    chains of children begin (only with `spawns`); if it is dead, children are evaluated, and if
    it is open again, too. A suicide arrow removes its targets when the atom is true, and does
    nothing else.
    """
    pool = context.pool
    key = absolute_key(link.leaf)
    values = pool.absolute.setdefault(key, {})
    is_first = flow not in values
    values[flow] = value
    context.touched.absolute[key] = None
    arrow = link.arrow
    if arrow.suicide:
        if value is AtomValue.TRUE:
            context.suicides.extend(
                (node, point, frozenset({flow}))
                for point in sorted(live_points(pool, link))
                for node, _ in arrow.targets
            )
        return
    if not is_first:
        _evaluate_forgotten(context, link, flow)
    for node, base in arrow.targets:
        if value is AtomValue.TRUE:
            _tell(context, link, node, base, flow)
            # Pruned tasks are evaluated again: the atom has come true after all.
            for point in sorted(live_points(pool, link)):
                known = pool.memory.get(point, {}).get(node.name)
                context.evaluate_pruned((point, node.name), known, {flow})
            first = first_child_point(context, link, flow)
            if first is None or not spawns:
                continue
            if context.plan.policy.absolute_spawns_first_child:
                context.to_spawn.append((node, first, frozenset({flow})))
            else:
                context.chains_to_start.append((node, flow, _first_point(pool, flow)))
        else:
            _evaluate_where_it_matters(context, link, node, flow, is_first=is_first)


def _evaluate_forgotten(context: StepContext, link: IndexedLink, flow: int) -> None:
    """Has pruned tasks behind the horizon evaluated again, since an operator changed the atom.

    This is for an atom that had a value before: until it is settled for the first time, the
    pool forgets nothing that it concerns.
    """
    pool, horizon = context.pool, context.pool.run.horizon
    first = first_child_point(context, link, flow)
    if horizon is None or first is None:
        return
    for node, _ in link.arrow.targets:
        for point in _points(node, first, Point(horizon - 1)):
            key = (point, node.name)
            context.evaluate_pruned(key, pool.recall(*key), {flow})


def _tell(
    context: StepContext, link: IndexedLink, node: IndexedNode, base: int, flow: int
) -> None:
    pool = context.pool
    waiting = pool.waiting_for.get(absolute_key(link.leaf), {})
    for key in sorted(waiting):
        task = pool.tasks.get(key)
        if task is None or task.plan is not node or flow not in task.flows:
            continue
        # Arrows of other recurrences may ask for the same atom; this one must hold there, too.
        if link.arrow.sequence.has(key[0]):
            satisfy(context, task, link.arrow, base, link.leaf.number)


def first_child_point(context: StepContext, link: IndexedLink, flow: int) -> Point | None:
    """Returns the point of the first child that an arrow has in a flow; None if it has none."""
    return link.arrow.sequence.sequence.first_from(_first_point(context.pool, flow))


def _first_point(pool: TaskPool, flow: int) -> Point:
    """Returns the first point for children in a flow: the start, or a later one of `--from`."""
    state = pool.flows.get(flow)
    first = pool.run.start
    if state is not None and state.chains_from is not None:
        first = max(first, state.chains_from)
    return first


def _evaluate_where_it_matters(
    context: StepContext, link: IndexedLink, node: IndexedNode, flow: int, *, is_first: bool
) -> None:
    """Queues for evaluation the children that are known, and those at points up to the front.

    Others are evaluated when the front comes to them. If the atom is lost, the first child that
    it blocks is sought, too, so that it is shown in the pool.
    """
    pool = context.pool
    points = live_points(pool, link)
    first = first_child_point(context, link, flow)
    if first is not None:
        points.add(first)
        value = pool.absolute[absolute_key(link.leaf)][flow]
        if value <= _prunes(pool):
            front = pool.fronts[flow] = pool.last_admitted()
            # What it concerns is remembered until it is settled, and then no longer.
            begin = first if is_first else max(first, first_known(pool))
            points.update(_points(node, begin, Point(front + pool.plan.lead)))
            # And where the node is itself waited for at a fixed point, however far ahead.
            fixed = {
                leaf.absolute for leaf, _ in pool.plan.absolute if node.name in names_of(leaf)
            }
            points.update(
                point
                for point in fixed
                if point is not None and point >= pool.run.start and node.is_at(point)
            )
        if value is AtomValue.LOST:
            context.to_seek_blocked.append((node, flow, Point(first - 1), POINTS_SEARCHED_MAX))
    context.to_evaluate.extend(((point, node.name), flow) for point in sorted(points))


def move_front(context: StepContext, admitted: Point, flows: Flows) -> None:
    """Moves the front of these flows to a point at which their tasks are admitted.

    Children of dead atoms at fixed points that lie on the way are queued for evaluation.
    """
    pool = context.pool
    plan = pool.plan
    if not plan.absolute or not plan.policy.prunes_unreachable:
        return
    for flow in sorted(flows):
        front = pool.fronts.get(flow)
        if front is not None and front >= admitted:
            continue
        pool.fronts[flow] = admitted
        begin = first_known(pool) if front is None else Point(front + plan.lead + 1)
        _evaluate_dead(context, flow, begin, Point(admitted + plan.lead))


def evaluate_dead_at(context: StepContext, point: Point, flows: Flows) -> None:
    """Queues the children of dead fixed atoms at a point where a task is admitted by hand.

    The front stays behind, since points in between are not evaluated.
    """
    plan = context.plan
    if plan.absolute and plan.policy.prunes_unreachable:
        for flow in sorted(flows):
            _evaluate_dead(context, flow, point, Point(point + plan.lead))


def seek_blocked(context: StepContext) -> None:
    """Queues the next task that a lost fixed atom may block, unless a blocked one is shown.

    One blocked task in the pool is enough to show people what is lost. A task that is pruned
    shows nothing, so the front is moved to its point first: whether the task is pruned depends
    on all atoms that are dead there.
    """
    node, flow, evaluated, left = context.to_seek_blocked.pop()
    point = node.next_after(evaluated)
    if point is None or not left or is_shown(context.pool, node, point, frozenset({flow})):
        return
    move_front(context, point, frozenset({flow}))
    if context.to_evaluate:
        context.to_seek_blocked.append((node, flow, evaluated, left))
        return
    context.to_evaluate.append(((point, node.name), flow))
    context.to_seek_blocked.append((node, flow, point, left - 1))


def is_shown(pool: TaskPool, node: IndexedNode, before: Point, flows: Flows) -> bool:
    """Says whether a task of a node, in these flows, is blocked at an earlier point.

    Of the tasks without end that a fixed atom blocks, only the first is put into the pool.
    """
    return pool.standings[PoolState.BLOCKED] > 0 and any(
        task.blocked and task.plan is node and task.point < before and flows <= task.flows
        for task in pool.tasks.values()
    )


def _evaluate_dead(context: StepContext, flow: int, begin: Point, last: Point) -> None:
    pool = context.pool
    prunes, flows = _prunes(pool), frozenset({flow})
    for leaf, nodes in pool.plan.absolute:
        if nodes and leaf_value(pool, leaf, pool.run.start, flows) <= prunes:
            context.to_evaluate.extend(
                ((point, node.name), flow)
                for node in nodes
                for point in _points(node, begin, last)
            )


def _prunes(pool: TaskPool) -> AtomValue:
    """Returns the highest value of another point's atom with which a task is pruned."""
    return AtomValue.LOST if pool.run.prune_across_points else AtomValue.NOT_TAKEN


def _points(node: IndexedNode, begin: Point, last: Point) -> Iterator[Point]:
    return islice(node.points(begin, last), POINTS_SEARCHED_MAX)


def first_known(pool: TaskPool) -> Point:
    """Returns the first point at which the histories of all parents are still in memory."""
    horizon = pool.run.horizon
    if horizon is None:
        return pool.run.start
    return max(pool.run.start, Point(horizon + pool.plan.reach_back))
