"""What a run may forget: points that nothing in the pool can reach any more (SEMANTICS §4.5).

Every event concerns a pooled task or follows from one, so what lies further back than the
earliest pooled point and the offsets of the graph reach is only needed by operators, and they
are answered from the store. Nodes that an absolute parent may still start at any point, back to
the first, are remembered until that parent is settled.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import absolute_key
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.plan import NodePlan
from tidewheel.core.sched.pool import Pool


def forget(draft: Draft) -> None:
    """Drop the memory of points before the horizon, if it has moved."""
    pool = draft.pool
    pool.population.emptied = False
    earliest = pool.population.earliest()
    if earliest is None:
        return
    plan = pool.plan
    ahead = plan.reach_ahead * len(plan.nodes)
    horizon = Point(earliest - plan.reach_back - ahead)
    old = pool.run.horizon
    if old is not None and horizon <= old:
        return
    gone = [point for point in pool.memory if point < horizon]
    if not gone:
        return
    pool.run.horizon = horizon
    draft.touched.run = True
    for point in gone:
        _forget_point(draft, point)


def _forget_point(draft: Draft, point: Point) -> None:
    pool = draft.pool
    there = pool.memory[point]
    kept = {
        name: memory for name, memory in there.items() if _may_be_started(pool, pool.node(name))
    }
    for name in there:
        if name in kept:
            continue
        draft.touched.forgotten[(point, name)] = there[name]
        draft.touched.memory.pop((point, name), None)
    if kept:
        pool.memory[point] = kept
    else:
        del pool.memory[point]
    for group in pool.plan.groups:
        pool.groups.pop((group.index, point), None)


def _may_be_started(pool: Pool, node: NodePlan) -> bool:
    """Whether an absolute parent of it has no value yet in a flow that is alive."""
    if not node.waits_for_absolute:
        return False
    flows = [flow for flow, count in pool.flow_counts.items() if count]
    return any(
        leaf.absolute is not None
        and leaf.absolute >= pool.run.start
        and any(flow not in pool.absolute.get(absolute_key(leaf), {}) for flow in flows)
        for arrow, _ in node.arrows
        for leaf in arrow.leaves
    )
