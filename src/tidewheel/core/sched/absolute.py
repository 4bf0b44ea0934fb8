"""Atoms at a fixed point: one value per flow, kept while the run lives (SEMANTICS §4.6).

Theory of operation. A dead one concerns points without end, and what a task is worth must not
depend on who asks. So its children are judged at every point up to the *front*, the last one at
which a task of the flow was released, when it dies, and at later points as the front moves on
(`move_front`): whatever is released finds all its ancestors judged. Beyond the front lie
parents at future offsets, as far as the graph leads ahead.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import absolute_key, leaf_value
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.plan import LinkPlan, NodePlan
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.spawning import POINTS_SEARCHED_MAX, satisfy
from tidewheel.core.sched.states import Flows, Standing, Value, VerdictKind


def settle_absolute(draft: Draft, link: LinkPlan, flow: int, value: Value) -> None:
    """An absolute atom got a value in a flow: tell pooled children, begin chains, or judge."""
    pool = draft.pool
    key = absolute_key(link.leaf)
    values = pool.absolute.setdefault(key, {})
    is_first = flow not in values
    values[flow] = value
    draft.touched.absolute[key] = None
    arrow = link.arrow
    if arrow.suicide:
        if value is Value.TRUE:
            draft.to_consider.extend(
                (node, point, frozenset({flow}))
                for point in sorted(_live_points(pool, link))
                for node, _ in arrow.targets
            )
        return
    if not is_first:
        _judge_forgotten(draft, link, flow)
    for node, base in arrow.targets:
        if value is Value.TRUE:
            _tell(draft, link, node, base, flow)
            first = first_child_point(draft, link, flow)
            if first is None:
                continue
            if draft.plan.policy.absolute_spawns_first_child:
                draft.to_come.append((node, first, frozenset({flow})))
            else:
                draft.to_start.append((node, flow, first))
        else:
            _judge_where_it_matters(draft, link, node, flow, is_first=is_first)


def _judge_forgotten(draft: Draft, link: LinkPlan, flow: int) -> None:
    """An operator has changed what was settled: verdicts behind the horizon may follow from it.

    Until it was settled for the first time nothing was forgotten that it concerns.
    """
    pool, horizon = draft.pool, draft.pool.run.horizon
    first = first_child_point(draft, link, flow)
    if horizon is None or first is None:
        return
    for node, _ in link.arrow.targets:
        for point in _points(node, first, Point(horizon - 1)):
            memory = pool.recall(point, node.name)
            verdict = None if memory is None else memory.verdicts.get(flow)
            if verdict is not None and verdict.kind is VerdictKind.PRUNED:
                draft.to_judge.append(((point, node.name), flow))


def _tell(draft: Draft, link: LinkPlan, node: NodePlan, base: int, flow: int) -> None:
    pool = draft.pool
    waiting = pool.waiting_for.get(absolute_key(link.leaf), {})
    for key in sorted(waiting):
        task = pool.tasks.get(key)
        if task is None or task.plan is not node or flow not in task.flows:
            continue
        # Arrows of other recurrences may ask for the same atom; this one must hold there, too.
        if link.arrow.sequence.has(key[0]):
            satisfy(draft, task, link.arrow, base, link.leaf.number)


def first_child_point(draft: Draft, link: LinkPlan, flow: int) -> Point | None:
    """Where the chain of a child begins: the start, or the point asked for with `--from`."""
    pool = draft.pool
    state = pool.flows.get(flow)
    first = pool.run.start
    if state is not None and state.chains_from is not None:
        first = max(first, state.chains_from)
    return link.arrow.sequence.sequence.first_from(first)


def _judge_where_it_matters(
    draft: Draft, link: LinkPlan, node: NodePlan, flow: int, *, is_first: bool
) -> None:
    """Judge the children that anything is known of, and those up to the front.

    Others are judged when the front comes there, and the first one that is blocked shows it.
    """
    pool = draft.pool
    points = _live_points(pool, link)
    first = first_child_point(draft, link, flow)
    if first is not None:
        points.add(first)
        value = pool.absolute[absolute_key(link.leaf)][flow]
        if value <= _prunes(pool):
            front = pool.fronts[flow] = pool.last_released()
            # What it concerns is remembered until it is settled, and then no longer.
            begin = first if is_first else max(first, _first_known(pool))
            points.update(_points(node, begin, Point(front + pool.plan.lead)))
        if value is Value.LOST:
            draft.to_seek.append((node, flow, Point(first - 1), POINTS_SEARCHED_MAX))
    draft.to_judge.extend(((point, node.name), flow) for point in sorted(points))


def move_front(draft: Draft, released: Point, flows: Flows) -> None:
    """Tasks of these flows are released at a point: what is dead is judged up to there."""
    pool = draft.pool
    plan = pool.plan
    if not plan.absolute or not plan.policy.deaths_are_judged:
        return
    for flow in sorted(flows):
        front = pool.fronts.get(flow)
        if front is not None and front >= released:
            continue
        pool.fronts[flow] = released
        begin = _first_known(pool) if front is None else Point(front + plan.lead + 1)
        _judge_dead(draft, flow, begin, Point(released + plan.lead))


def seek_blocked(draft: Draft) -> None:
    """Judge the next point at which a lost atom may block a child, unless one shows it.

    Whoever is pruned before it shows nothing, and what is dead there has to be known first.
    """
    node, flow, judged, left = draft.to_seek.pop()
    point = node.next_after(judged)
    if point is None or not left or is_shown(draft.pool, node, point, frozenset({flow})):
        return
    move_front(draft, point, frozenset({flow}))
    if draft.to_judge:
        draft.to_seek.append((node, flow, judged, left))
        return
    draft.to_judge.append(((point, node.name), flow))
    draft.to_seek.append((node, flow, point, left - 1))


def is_shown(pool: Pool, node: NodePlan, before: Point, flows: Flows) -> bool:
    """Whether one that is blocked lies before a point: what fixed atoms block shows once."""
    return pool.standings[Standing.BLOCKED] > 0 and any(
        task.blocked and task.plan is node and task.point < before and flows <= task.flows
        for task in pool.tasks.values()
    )


def _judge_dead(draft: Draft, flow: int, begin: Point, last: Point) -> None:
    pool = draft.pool
    prunes, flows = _prunes(pool), frozenset({flow})
    for leaf, nodes in pool.plan.absolute:
        if nodes and leaf_value(pool, leaf, pool.run.start, flows) <= prunes:
            draft.to_judge.extend(
                ((point, node.name), flow)
                for node in nodes
                for point in _points(node, begin, last)
            )


def _prunes(pool: Pool) -> Value:
    """What an atom of another point must be worth for a task to be pruned."""
    return Value.LOST if pool.run.prune_across_points else Value.NOT_TAKEN


def _points(node: NodePlan, begin: Point, last: Point) -> list[Point]:
    found: list[Point] = []
    point = node.next_after(Point(begin - 1))
    while point is not None and point <= last and len(found) < POINTS_SEARCHED_MAX:
        found.append(point)
        point = node.next_after(point)
    return found


def _first_known(pool: Pool) -> Point:
    """The first point of which all parents are remembered."""
    horizon = pool.run.horizon
    if horizon is None:
        return pool.run.start
    return max(pool.run.start, Point(horizon + pool.plan.reach_back))


def _live_points(pool: Pool, link: LinkPlan) -> set[Point]:
    found = pool.population.counts.keys() | pool.memory.keys()
    return {
        point for point in found if point >= pool.run.start and link.arrow.sequence.has(point)
    }
