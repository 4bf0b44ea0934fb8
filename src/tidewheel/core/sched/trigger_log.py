"""Off which parents a task was submitted, to be compared with other engines (§13)."""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.conditions import is_true, member_value
from tidewheel.core.sched.effects import Submit
from tidewheel.core.sched.plan import GroupPlan, PreviousInstance
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.states import Flows, Key, Task, Value


def trigger_line(pool: Pool, submit: Submit) -> str:
    """`POINT/NAME -triggered off ['P/N', …] in flow N[,M]`; ask right after the step."""
    task = pool.tasks[submit.task]
    text = pool.plan.text
    parents = [f"{text(point)}/{name}" for point, name in triggered_off(pool, task)]
    flows = ",".join(map(str, sorted(submit.flows))) or "none"
    name = f"{text(task.point)}/{task.plan.name}"
    return f"{name} -triggered off {parents} in flow {flows}"


def triggered_off(pool: Pool, task: Task) -> tuple[Key, ...]:
    """The parents of every atom that is true, sorted, each once.

    An arrow that is not true and does not keep the task was made true by an operator, with all
    of its atoms.
    """
    arrows = task.plan.arrows
    if not arrows:
        return ()
    point, true = task.point, task.true
    initial = pool.plan.initial
    found: set[Key] = set()
    for arrow, base in arrows:
        if not arrow.sequence.has(point):
            continue
        mask = true >> base if is_true(arrow, base, true) else arrow.full
        for leaf in arrow.leaves:
            if not mask >> leaf.number & 1:
                continue
            parent = leaf.parent_point(point, initial)
            if parent < initial and isinstance(leaf.offset, PreviousInstance):
                continue  # the first instance has none before it
            if leaf.group is None:
                found.add((parent, leaf.node))
            else:
                by_hand = not true >> (base + leaf.number) & 1
                found |= _members(pool, leaf.group, parent, task.flows, by_hand)
    return tuple(sorted(found))


def _members(
    pool: Pool, group: GroupPlan, point: Point, flows: Flows, by_hand: bool
) -> set[Key]:
    """Those that made a family's atom true: every one, or of `-any` those that did it."""
    every = {(point, member) for member in group.members}
    if group.every or by_hand or point < pool.run.start:
        return every
    made = {key for key in every if member_value(pool.recall(*key), group, flows) is Value.TRUE}
    return made or every
