"""How a run begins: the first instance of every task that nobody spawns (SEMANTICS §4.1)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.chains import start_chain
from tidewheel.core.sched.compile_plan import BAD_ENDS
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.events import RunStarted, Trigger
from tidewheel.core.sched.plan import Leaf, NodePlan
from tidewheel.core.sched.states import FIRST_FLOW
from tidewheel.core.sched.triggering import triggered


def run_started(draft: Draft, event: RunStarted) -> None:
    """Begin every chain, and judge what is dead although nothing has ended yet."""
    pool = draft.pool
    draft.touched.run = True
    draft.touched.flows[1] = None
    if event.tasks:
        triggered(draft, Trigger(tasks=event.tasks, at=event.at, flow=FIRST_FLOW))
        return
    for node in pool.plan.nodes.values():
        start_chain(draft, node, 1, pool.run.start)
    judge_ends_of_the_graph(draft, 1)


def judge_ends_of_the_graph(draft: Draft, flow: int) -> None:
    """Failures before the start did not happen, and beyond the final point nothing will."""
    pool = draft.pool
    start, final = pool.run.start, pool.plan.final
    for node in pool.plan.nodes.values():
        leaves = [leaf for arrow, _ in node.arrows for leaf in arrow.leaves]
        if any(map(_may_fail_before, leaves)):
            _judge(draft, node, flow, (start, Point(start + pool.plan.reach_back)))
        if final is not None and any(map(_may_reach_ahead, leaves)):
            first = max(Point(final - pool.plan.reach_ahead), start)
            _judge(draft, node, flow, (first, final))


def _judge(draft: Draft, node: NodePlan, flow: int, points: tuple[Point, Point]) -> None:
    first, last = points
    point = node.next_after(Point(first - 1))
    while point is not None and point <= last:
        draft.to_judge.append(((point, node.name), flow))
        point = node.next_after(point)


def _may_fail_before(leaf: Leaf) -> bool:
    return leaf.output in BAD_ENDS and leaf.offset is not None and (leaf.shift or -1) < 0


def _may_reach_ahead(leaf: Leaf) -> bool:
    return (
        leaf.offset is not None
        and leaf.absolute is None
        and (leaf.shift is None or leaf.shift > 0)
    )
