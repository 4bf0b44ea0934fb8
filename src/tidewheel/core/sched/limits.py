"""The runahead limit says how far ahead of the oldest unfinished point tasks are admitted.

SEMANTICS §4.2, 4.3. The base is the earliest point that holds a task which counts;
`TaskPool.counted` knows it without a search. The points from base to limit are kept as a window
that slides with the base, so each point of the run is computed once, whatever the limit.

A limit group says how many tasks may be active at once; the oldest go first (§7).

Tasks that nobody spawns come one after the other, in chains (§4.1, 4.6). A task is parentless
at a point in a flow when nothing that happens in the graph has still to happen for it there.
Each task has one chain per flow: one instance beyond the runahead limit, the head; when it is
admitted, or leaves the pool before that, the next one is spawned. Points at which the task was
spawned already, or has a verdict, are passed over, so a chain neither breaks nor runs anything
twice. A chain must also know when it has no next point: a node that waits for its own previous
instance is parentless at its first point only, and looking for another would never end. A
sequence of the node on which an arrow always holds that only parents can make true has no
parentless point beyond the start's reach; what remains is stepped through, `STEPS_MAX` at
most.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice
from operator import attrgetter

from tidewheel.core.cycling.calendar import Point, add
from tidewheel.core.sched import evaluation
from tidewheel.core.sched.absolute_triggers import evaluate_dead_at, first_known, move_front
from tidewheel.core.sched.completion import apply_level_to
from tidewheel.core.sched.dependency_index import Ask, IndexedArrow, IndexedNode
from tidewheel.core.sched.events import CancelTimer, Submit
from tidewheel.core.sched.flows import may_spawn
from tidewheel.core.sched.pool import LimitQueue, StepContext, TaskPool
from tidewheel.core.sched.propagation import merge
from tidewheel.core.sched.spawn import (
    EXPIRY,
    POINTS_MAX,
    POINTS_SEARCHED_MAX,
    begin_checks,
    end_checks,
    keeps_its_place,
    settle,
    spawn,
)
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    AtomValue,
    Flows,
    JobPhase,
    PooledTask,
    PoolState,
    only,
)

STEPS_MAX = 10_000  # points passed over in one search


def admit_within_limit(context: StepContext) -> bool:
    """Admits every task within the limit; says whether there was any.

    Where no task counts there is no base and so no limit: what is left only waits for parents.
    """
    pool = context.pool
    pool.may_admit = pool.counted.emptied = False
    base = pool.counted.earliest()
    if base is None:
        if pool.asks:
            _evaluate_next_in_vain(context)
        return _admit_up_to(context, max(pool.beyond_limit, default=pool.run.start))
    if base != pool.base:
        pool.base = base
        pool.limit = None
    if pool.limit is None:
        pool.limit = limit_from(pool, base)
    if pool.asks:
        _evaluate_in_vain(context, base, _capped(pool, pool.limit))
    return _admit_up_to(context, pool.limit)


def _evaluate_in_vain(context: StepContext, base: Point, limit: Point) -> None:
    """Has tasks evaluated, at points now within the limit, whose parent is off its sequence."""
    pool = context.pool
    looked_at = pool.run.looked_at
    if looked_at == (base, limit):
        return
    _look_at(context, base, limit)
    first = max(base, first_known(pool))
    if looked_at is not None and looked_at[0] <= base <= looked_at[1]:
        first = Point(looked_at[1] + 1)
    for ask in pool.asks:
        for point in _points_in_vain(pool, ask, first, limit):
            _evaluate_everywhere(context, ask, point)


def _evaluate_next_in_vain(context: StepContext) -> None:
    """Has the next task evaluated whose parent is off its sequence, where there is no limit.
    Without a base nothing says how far to look, so one point is looked at each time."""
    pool = context.pool
    first = first_known(pool)
    if pool.run.looked_at is not None:
        first = max(first, Point(pool.run.looked_at[1] + 1))
    final, stop = pool.plan.final, pool.run.stop
    last = final if stop is None or (final is not None and final < stop) else stop
    found = [
        (point, ask)
        for ask in pool.asks
        if (point := next(_points_in_vain(pool, ask, first, last), None)) is not None
    ]
    if found:
        point = min(one for one, _ in found)
        _look_at(context, point, point)
        pool.may_admit = True
        for one, ask in found:
            if one == point:
                _evaluate_everywhere(context, ask, point)


def _look_at(context: StepContext, base: Point, limit: Point) -> None:
    """Records the points at which parents off their sequences were sought. It is stored with
    the run: beyond these points no such task is shown as blocked yet."""
    context.pool.run.looked_at = (base, limit)
    context.touched.run = True


def _evaluate_everywhere(context: StepContext, ask: Ask, point: Point) -> None:
    """Has the nodes of an ask evaluated at a point, in flow 1 and every flow that has tasks."""
    flows = {1, *(flow for flow, count in context.pool.flow_counts.items() if count)}
    context.to_evaluate.extend(
        ((point, name), flow) for name in ask.nodes for flow in sorted(flows)
    )


def _points_in_vain(
    pool: TaskPool, ask: Ask, first: Point, last: Point | None
) -> Iterator[Point]:
    """Yields points from first to last at which parents asked for are off their sequences."""
    for point in islice(ask.sequence.sequence.points(first, last), POINTS_SEARCHED_MAX):
        if ask.is_in_vain(point, pool.plan, pool.run.start):
            yield point


def _admit_up_to(context: StepContext, limit: Point) -> bool:
    pool = context.pool
    heap = pool.beyond_limit_heap
    admitted = False
    while heap and heap[0] <= _capped(pool, limit):
        point = heappop(heap)
        tasks = pool.beyond_limit.pop(point, {}).values()
        if tasks and pool.plan.absolute:
            flows = frozenset[int]().union(*(task.flows for task in tasks))
            move_front(context, point, flows)
        if tasks and pool.ahead:
            _catch_up(context, point)
        for task in tasks:
            admit(context, task)
            admitted = True
    return admitted


def _catch_up(context: StepContext, point: Point) -> None:
    """Queues the evaluations that were put off until a task at this point is admitted."""
    ahead = context.pool.ahead
    last = point + context.plan.lead
    due = [one for one in ahead if one[0][0] <= last]
    for one in due:
        del ahead[one]
    context.to_evaluate += due


def admit(context: StepContext, task: PooledTask) -> None:
    """Admits a task: its chain moves on, and its clock and xtriggers begin to be checked."""
    task.admitted = True
    if not (task.plan.in_sequence and keeps_its_place(task)):
        move_on(context, task)
    if task.waits:
        begin_checks(context, task)
    settle(context, task)
    if task.plan.suicides and not task.satisfied_by_hand:
        apply_level_to(context, task)


def admit_by_hand(context: StepContext, task: PooledTask) -> None:
    """Admits a task beyond the limit, because an operator said so."""
    if not task.admitted:
        there = context.pool.beyond_limit.get(task.point, {})
        there.pop(task.key, None)
        evaluate_dead_at(context, task.point, task.flows)
        admit(context, task)


def take_back(context: StepContext, task: PooledTask) -> None:
    """Takes back the admission of a waiting task, because it lies beyond the stop point."""
    task.admitted = False
    context.pool.put_beyond_limit(task)
    end_checks(context, task)
    settle(context, task)


def limit_from(pool: TaskPool, base: Point) -> Point:
    """Returns the last point that may be admitted, from this base on."""
    cycling = pool.plan.graph.cycling
    if isinstance(cycling.runahead, int):
        _slide(pool, base, cycling.runahead + 1)
        limit = pool.window[-1]
    else:
        style = cycling.style
        limit = add(style.calendar, base, cycling.runahead, style.utc_offset_minutes)
    if pool.plan.policy.limit_raised_by_future_offset:
        limit = Point(limit + pool.plan.reach_ahead)
    return limit


def _slide(pool: TaskPool, base: Point, length: int) -> None:
    window = pool.window
    if base not in window:
        window[:] = [base]
    while window[0] < base:
        window.pop(0)
    while len(window) < length:
        following = next_point(pool, window[-1])
        if following is None:
            break
        window.append(following)


def next_point(pool: TaskPool, point: Point) -> Point | None:
    """Returns the next point on any sequence of the graph; None if there is none."""
    found = (one.next_after(point) for one in pool.plan.sequences)
    return min((one for one in found if one is not None), default=None)


def _capped(pool: TaskPool, limit: Point) -> Point:
    """Returns the limit, cut to the stop point and to the most points that may be counted."""
    stop = pool.run.stop
    if stop is not None and stop < limit:
        limit = stop
    points = pool.counted.counts
    if len(points) > POINTS_MAX:
        cap = max(POINTS_MAX, pool.plan.reach_ahead + 1)
        if len(points) > cap:
            limit = min(limit, sorted(points)[cap - 1])
    return limit


_READY, _ACTIVE, _PREPARING = PoolState.READY, PoolState.ACTIVE, JobPhase.PREPARING
_FIRST = (1,)  # a tuple is walked through more quickly than a set
_tuple = tuple.__new__  # as a tuple, what is made for each task costs a third


def submit_ready(context: StepContext) -> None:
    """Submits tasks that became ready, and queued ones whose limit group has room again."""
    pool, ready, freed = context.pool, context.ready, context.freed
    run, tasks, queues = pool.run, pool.tasks, pool.queues
    closed = run.paused or run.stopping
    if len(ready) > 1:
        ready.sort(key=attrgetter("point"))  # stable: then in the order of becoming ready
    for task in ready:
        if task.standing is not _READY or tasks.get(task.key) is not task:
            continue
        queue = queues[task.plan.limit]
        if closed or queue.heap or 0 < queue.limit <= queue.active:
            _queue(context, queue, task)
        else:
            launch(context, task)
    ready.clear()
    if freed:
        for number in freed if not closed else ():
            fill(context, queues[number])
        freed.clear()


def fill(context: StepContext, queue: LimitQueue) -> None:
    """Submits queued tasks while there is room."""
    while queue.heap and not 0 < queue.limit <= queue.active:
        _, order, key = heappop(queue.heap)
        task = context.pool.tasks.get(key)
        if task is not None and task.order == order and task.standing is _READY:
            launch(context, task)


def launch(context: StepContext, task: PooledTask) -> None:
    """Decides to submit a task: it gets its next submit number and takes a place in its limit
    group."""
    pool, key = context.pool, task.key
    task.stage = _PREPARING
    task.submit += 1
    task.order = 0
    task.ended = ""
    task.let_go = False
    if task.standing is _READY:  # as any that nobody triggered: it counts for what it did
        task.standing = _ACTIVE
        pool.standings[_READY] -= 1
        pool.standings[_ACTIVE] += 1
    else:
        pool.stand(task, _ACTIVE)
    pool.queues[task.plan.limit].active += 1
    context.touched.tasks[key] = None
    submit = (key, task.submit, task.try_number, task.flows)
    context.effects.append(_tuple(Submit, submit))
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


def is_parentless(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    """Says whether no other task need spawn the node's task at this point."""
    if not node.arrows:
        return True
    if evaluation.never_comes(pool, node, point):
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
        value = evaluation.outside_value(pool, leaf, parent, flows)
        if value is None and leaf.absolute is not None:
            value = evaluation.leaf_value(pool, leaf, point, flows)
        if value is AtomValue.TRUE:
            mask |= 1 << leaf.number
    return evaluation.holds(arrow.expression, mask)


def _is_parentless_by_shape(
    pool: TaskPool, arrow: IndexedArrow, point: Point, flows: Flows
) -> bool:
    leaves = arrow.leaves
    initial = pool.plan.initial
    outside = (
        evaluation.outside_value(pool, leaf, leaf.parent_point(point, initial), flows)
        for leaf in leaves
    )
    return all(leaf.absolute is not None for leaf in leaves) or all(
        value is AtomValue.TRUE for value in outside
    )


def start_chain(context: StepContext, node: IndexedNode, flow: int, first: Point) -> None:
    """Begins a node's chain in a flow at its first parentless point from `first` on.

    If the chain has an earlier head, it comes there by itself. A later head is withdrawn,
    because of a chain only one instance waits beyond the runahead limit.
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
    """Takes the head of a chain out of the pool, if nothing happened to it but spawning."""
    by_hand = task.manual or task.satisfied_by_hand or task.held or task.heard
    if task.admitted or by_hand or task.outputs or len(task.flows) > 1 or task.plan.expiry:
        return
    context.pool.dismiss(task)
    task.memory.spawned -= task.flows
    context.touched.tasks[task.key] = context.touched.memory[task.key] = None


def move_on(context: StepContext, task: PooledTask) -> None:
    """Spawns the next task of a chain whose head was admitted, or is gone."""
    chains, node, point = context.pool.chains, task.plan, task.point
    for flow in _FIRST if task.flows is FIRST_FLOW else sorted(task.flows):
        if chains.get((node.name, flow)) == point:
            _spawn_next(context, node, flow, point)


def join_chain(context: StepContext, task: PooledTask) -> None:
    """Begins a chain after a parentless task admitted by hand, in each flow that has none."""
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
    flows = only(flow)
    pooled = pool.tasks.get((point, node.name))
    if pooled is None:
        spawn(context, node, point, flows, head=True)
        return
    merge(context, pooled, flows)
    if pooled.admitted and not keeps_its_place(pooled):
        _spawn_next(context, node, flow, point)


def next_parentless(pool: TaskPool, node: IndexedNode, flow: int, after: Point) -> Point | None:
    """Returns the next point where a node is parentless and new to a flow; None if none is."""
    if not node.arrows:
        return _next_unknown(pool, node, flow, after)
    flows, point = only(flow), after
    early = Point(_first_point(pool, flow) + pool.plan.reach_back)
    for _ in range(STEPS_MAX):
        found = _next_candidate(pool, node, flows, point, early)
        if found is None:
            return None
        point = found
        if not _knows(pool, node, flow, point) and is_parentless(pool, node, point, flows):
            return point
    return None


def _next_unknown(pool: TaskPool, node: IndexedNode, flow: int, after: Point) -> Point | None:
    """Returns the next point of a node that is new to a flow."""
    point = node.next_after(after)
    for _ in range(STEPS_MAX):
        if point is None or not _knows(pool, node, flow, point):
            return point
        point = node.next_after(point)
    return None


def _knows(pool: TaskPool, node: IndexedNode, flow: int, point: Point) -> bool:
    """Says whether a task was spawned or judged in a flow."""
    memory = pool.recall(point, node.name)
    return memory is not None and (flow in memory.spawned or flow in memory.verdicts)


def _first_point(pool: TaskPool, flow: int) -> Point:
    """Returns the point before which everything counts as met in a flow."""
    state = pool.flows.get(flow)
    ignored = None if state is None else state.ignore_before
    return pool.run.start if ignored is None else max(pool.run.start, ignored)


def _next_candidate(
    pool: TaskPool, node: IndexedNode, flows: Flows, after: Point, early: Point
) -> Point | None:
    """Returns the next point at which a node may be parentless; None if there is none.

    From `early` on no parent lies before the start, so sequences are left out on which an arrow
    needs parents.
    """
    if after < early:
        return node.next_after(after)
    barred = {
        id(arrow.sequence)
        for arrow, _ in node.arrows
        if not _may_be_parentless(pool, arrow, flows)
    }
    found = (one.next_after(after) for one in node.sequences if id(one) not in barred)
    return min((one for one in found if one is not None), default=None)


def _may_be_parentless(pool: TaskPool, arrow: IndexedArrow, flows: Flows) -> bool:
    """Says whether an arrow needs no parents because its atoms at fixed points suffice."""
    if pool.plan.policy.parentless_by_shape:
        return all(leaf.absolute is not None for leaf in arrow.leaves)
    mask = 0
    for leaf in arrow.leaves:
        if leaf.absolute is not None:
            values = pool.absolute.get(evaluation.absolute_key(leaf), {})
            found = {values.get(flow) for flow in flows}
            found.add(evaluation.outside_value(pool, leaf, leaf.absolute, flows))
            mask |= (AtomValue.TRUE in found) << leaf.number
    return evaluation.holds(arrow.expression, mask)
