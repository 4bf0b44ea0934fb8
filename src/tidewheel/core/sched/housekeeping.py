"""What a run may forget: points that nothing in the pool can reach any more (SEMANTICS §4.5).

Every event concerns a pooled task or follows from one, so what lies further back than the
earliest pooled point and the offsets of the graph reach is only needed by operators, and they
are answered from the store: it keeps the last that was known of every task, outputs and
verdicts included, as long as the run itself (SEMANTICS §5). An atom at a fixed point may start
or condemn its children at any point, back to the first: until it is settled, all that they
could be judged by is remembered.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import absolute_key
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.pool import Pool


def forget(draft: Draft) -> None:
    """Drop the memory of points before the horizon, if it has moved."""
    pool = draft.pool
    pool.population.emptied = False
    earliest = pool.population.earliest()
    if earliest is None:
        return
    plan = pool.plan
    horizon = Point(earliest - plan.reach_back - plan.lead)
    old = pool.run.horizon
    if old is not None and horizon <= old:
        return
    gone = [point for point in pool.memory if point < horizon]
    if not gone:
        return
    pool.run.horizon = horizon
    draft.touched.run = True
    needed = plan.concerned if _may_be_settled(pool, horizon) else frozenset[str]()
    for point in gone:
        _forget_point(draft, point, needed)
    # Whoever asks for a family there has it counted again from all that is known.
    for counted in [one for one in pool.groups if one[1] < horizon]:
        del pool.groups[counted]


def _forget_point(draft: Draft, point: Point, needed: frozenset[str]) -> None:
    pool = draft.pool
    there = pool.memory[point]
    dropped = there.keys() - needed
    for name in sorted(dropped):
        memory = there.pop(name)
        draft.touched.forgotten[(point, name)] = memory
        draft.touched.memory.pop((point, name), None)
    if not there:
        del pool.memory[point]


def _may_be_settled(pool: Pool, horizon: Point) -> bool:
    """Whether an atom at a fixed point has no value yet in a flow that is alive.

    One before the horizon has none to come, unless another one brings it.
    """
    plan = pool.plan
    first = max(horizon, pool.run.start)
    flows = [flow for flow, count in pool.flow_counts.items() if count]
    return any(
        leaf.absolute is not None
        and first <= leaf.absolute
        and (plan.final is None or leaf.absolute <= plan.final)
        and any(flow not in pool.absolute.get(absolute_key(leaf), {}) for flow in flows)
        for leaf, _ in plan.absolute
    )
