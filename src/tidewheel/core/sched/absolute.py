"""Atoms at a fixed point: one value per flow, kept while the run lives (SEMANTICS §4.6)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import absolute_key, up_to_the_next_blocked
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.plan import LinkPlan, NodePlan
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.spawning import satisfy
from tidewheel.core.sched.states import Value


def settle_absolute(draft: Draft, link: LinkPlan, flow: int, value: Value) -> None:
    """An absolute atom got a value in a flow: tell pooled children, begin chains, or judge."""
    pool = draft.pool
    key = absolute_key(link.leaf)
    values = pool.absolute.setdefault(key, {})
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
            _judge_where_it_matters(draft, link, node, flow)


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


def _judge_where_it_matters(draft: Draft, link: LinkPlan, node: NodePlan, flow: int) -> None:
    """A dead one concerns every later point; judged are those that anything is known of.

    Others are judged when they are asked for, and the first one that is blocked by it shows it.
    """
    pool = draft.pool
    points = _live_points(pool, link)
    first = first_child_point(draft, link, flow)
    if first is not None:
        points.add(first)
        if pool.absolute[absolute_key(link.leaf)][flow] is Value.LOST:
            points.update(up_to_the_next_blocked(pool, node, flow, Point(first - 1)))
    draft.to_judge.extend(((point, node.name), flow) for point in sorted(points))


def _live_points(pool: Pool, link: LinkPlan) -> set[Point]:
    found = pool.population.counts.keys() | pool.memory.keys()
    return {
        point for point in found if point >= pool.run.start and link.arrow.sequence.has(point)
    }
