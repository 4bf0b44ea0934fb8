"""Tasks that are removed because a suicide condition holds (SEMANTICS §4.8).

The condition is a level: it applies whenever the task waits or is incomplete. It is looked up,
not stored: when an output with a suicide arrow arrives, when a task ends incomplete or is to be
tried again, and, as what a fixed point has made concerns points without end, when it is
released.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import suicide_holds
from tidewheel.core.sched.deaths import condemn
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.plan import NodePlan
from tidewheel.core.sched.spawning import leave
from tidewheel.core.sched.states import Flows, Stage, Task, Value, Verdict, VerdictKind

BY_SUICIDE = Verdict(VerdictKind.SUICIDE, Value.NOT_TAKEN)


def consider(draft: Draft, node: NodePlan, point: Point, flows: Flows) -> None:
    """An output that a suicide arrow waits for was made: remove the task if all are true."""
    pool = draft.pool
    task = pool.tasks.get((point, node.name))
    if task is not None:
        if not flows.isdisjoint(task.flows):
            apply_to(draft, task)
        flows -= task.flows
    if point < pool.run.start or not node.is_at(point):
        return
    memory = pool.recall(point, node.name)
    for flow in sorted(flows):
        known = memory is not None and (flow in memory.spawned or flow in memory.verdicts)
        if not known and suicide_holds(pool, node, point, frozenset({flow})):
            condemn(draft, node, point, frozenset({flow}), BY_SUICIDE)


def apply_level_to(draft: Draft, task: Task) -> None:
    """The same for a task to which nothing happened but that it waits or is incomplete now."""
    if task.plan.suicides and draft.plan.policy.suicide_is_a_level:
        apply_to(draft, task)


def apply_to(draft: Draft, task: Task) -> None:
    """Remove a pooled task that waits or is incomplete, if its condition holds."""
    if task.manual or task.stage not in (Stage.WAITING, Stage.INCOMPLETE):
        return
    node = task.plan
    if not suicide_holds(draft.pool, node, task.point, task.flows):
        return
    draft.notice("suicide", task.key, f"{draft.name_of(task.key)} was removed by suicide")
    leave(draft, task)
    condemn(draft, node, task.point, task.flows, BY_SUICIDE)
