"""Finds which value atoms and tasks have for a child (SEMANTICS §1, §2, §5).

Everything here only reads. An atom is true if its output was made in any flow of the child,
dead only if it is dead in every one of them; to a task in no flow nothing is dead.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import IMPLIED, SUCCEEDED
from tidewheel.core.sched.dependency_index import (
    Any,
    Expression,
    IndexedArrow,
    IndexedAtom,
    IndexedFamily,
    IndexedNode,
)
from tidewheel.core.sched.elements import (
    element_names,
    size_at,
)
from tidewheel.core.sched.index_builder import BAD_ENDS
from tidewheel.core.sched.pool import AbsoluteKey, GroupCount, TaskPool
from tidewheel.core.sched.task_state import AtomValue, Flows, PooledTask, TaskHistory

NOT_TAKEN, LOST, OPEN, TRUE = AtomValue


def holds(expression: Expression, mask: int) -> bool:
    """Says whether a condition is true; `mask` has the bits of those of its leaves that are."""
    if isinstance(expression, int):
        return bool(mask >> expression & 1)
    if isinstance(expression, Any):
        return any(holds(term, mask) for term in expression.terms)
    return all(holds(term, mask) for term in expression.terms)


def untrue_leaves(expression: Expression, mask: int) -> list[int]:
    """Returns the leaves that keep a condition from being true; of terms that hold, none."""
    if holds(expression, mask):
        return []
    if isinstance(expression, int):
        return [expression]
    found = (untrue_leaves(term, mask) for term in expression.terms)
    return list(dict.fromkeys(number for numbers in found for number in numbers))


def is_true(arrow: IndexedArrow, base: int, true: int) -> bool:
    mask = true >> base & arrow.full
    if arrow.is_conjunction:
        return mask == arrow.full
    return holds(arrow.expression, mask)


def missing_arrows(task: PooledTask) -> int:
    """Returns how many arrows into a task are not true."""
    arrows = task.plan.arrows_at(task.point)
    return sum(not is_true(arrow, base, task.true) for arrow, base in arrows)


def worth(expression: Expression, values: list[AtomValue]) -> AtomValue:
    """Returns the value of a condition: AND is the minimum, OR the maximum of its terms."""
    if isinstance(expression, int):
        return values[expression]
    found = (worth(term, values) for term in expression.terms)
    return max(found) if isinstance(expression, Any) else min(found)


def output_value(memory: TaskHistory | None, output: str, flows: Flows) -> AtomValue:
    """Returns the value that an output of one task has for a child in these flows."""
    if memory is None:
        return OPEN
    made = memory.made.get(output)
    if made is not None and not made.isdisjoint(flows):
        return TRUE
    verdicts = memory.verdicts
    if not verdicts or not flows:
        return OPEN
    value = NOT_TAKEN
    for flow in flows:
        verdict = verdicts.get(flow)
        if verdict is None:
            value = OPEN
            continue
        if output == verdict.ended or output in IMPLIED.get(verdict.ended, ()):
            return TRUE  # nobody waited for it then: a reload has changed that
        value = max(value, NOT_TAKEN if output in BAD_ENDS else verdict.death)
    return value


def member_value(memory: TaskHistory | None, group: IndexedFamily, flows: Flows) -> AtomValue:
    return max(output_value(memory, output, flows) for output in group.outputs)


def absolute_key(leaf: IndexedAtom) -> AbsoluteKey:
    assert leaf.absolute is not None
    if leaf.group is None:
        return (leaf.absolute, leaf.node, leaf.output)
    return (leaf.absolute, *leaf.group.term)


def outside_value(
    pool: TaskPool, leaf: IndexedAtom, parent: Point, flows: Flows
) -> AtomValue | None:
    """Returns the value of an atom whose parent lies before the start or beyond the end.

    None means that the parent lies inside, so that its history decides.
    """
    if parent < pool.run.start:
        return pool.plan.policy.bad_end_before_start if leaf.output in BAD_ENDS else TRUE
    if len(pool.flows) > 1:
        ignoring = _ignoring(pool, parent, flows)
        if ignoring and leaf.output not in BAD_ENDS:
            return TRUE
        if ignoring and ignoring == flows:
            return pool.plan.policy.bad_end_before_start
    final = pool.plan.final
    if final is not None and parent > final:
        return pool.plan.policy.beyond_final
    return None


def _ignoring(pool: TaskPool, parent: Point, flows: Flows) -> Flows:
    """Returns those of the flows that were started to ignore what lies at the parent."""
    states = ((flow, pool.flows.get(flow)) for flow in flows)
    return frozenset(
        flow
        for flow, state in states
        if state is not None
        and state.ignore_before is not None
        and parent < state.ignore_before
    )


def leaf_value(pool: TaskPool, leaf: IndexedAtom, point: Point, flows: Flows) -> AtomValue:
    """Returns the value that one leaf of an arrow has for a child at this point."""
    plan = pool.plan
    parent = leaf.parent_point(point, plan.initial)
    # A task placed before the start by hand must earn what could have run.
    if (
        point >= pool.run.start
        or not plan.policy.earned_before_the_start
        or leaf.absolute is not None
        or parent < plan.initial
    ):
        outside = outside_value(pool, leaf, parent, flows)
        if outside is not None:
            return outside
    if len(pool.flows) > 1:
        flows -= _ignoring(pool, parent, flows)
    if leaf.absolute is not None:
        values = pool.absolute.get(absolute_key(leaf), {})
        found = [values.get(flow, OPEN) for flow in flows] or [OPEN]
        return TRUE if TRUE in found else (OPEN if OPEN in found else max(found))
    if leaf.group is not None:
        return group_value(pool, leaf.group, parent, flows)
    memory = pool.recall(parent, leaf.node)
    if memory is None and leaf.shift != 0 and not pool.node(leaf.node).is_at(parent):
        return LOST
    return output_value(memory, leaf.output, flows)


def recorded_value(pool: TaskPool, leaf: IndexedAtom, flow: int) -> AtomValue:
    """Returns the value of a fixed atom in a flow, from the histories of its tasks."""
    assert leaf.absolute is not None
    flows = frozenset({flow})
    if leaf.group is not None:
        return group_value(pool, leaf.group, leaf.absolute, flows)
    return output_value(pool.recall(leaf.absolute, leaf.node), leaf.output, flows)


def group_value(pool: TaskPool, group: IndexedFamily, point: Point, flows: Flows) -> AtomValue:
    if len(flows) == 1:
        (flow,) = flows
        return group_count(pool, group, point, flow).value(group.every)
    # Several flows together know more than each for itself; this is rare, so it is looked up.
    if group.elements is not None:
        return count_elements(pool, group, point, flows).value(group.every)
    values = []
    for member in group.members:
        at = pool.node(member).is_at(point)
        values.append(member_value(pool.recall(point, member), group, flows) if at else LOST)
    return min(values) if group.every else max(values)


def group_count(
    pool: TaskPool, group: IndexedFamily, point: Point, flow: int, changing: str = ""
) -> GroupCount:
    """Returns the counts of a family at a point in a flow, made if there are none.

    Members that end are counted when they do. Where the pool has dropped the histories of a
    point, new counts begin with what is stored of each member; the member `changing` is counted
    as it was before the change.
    """
    by_flow = pool.groups.setdefault((group.index, point), {})
    count = by_flow.get(flow)
    if count is None and group.elements is not None:
        count = by_flow[flow] = count_elements(pool, group, point, frozenset({flow}), changing)
    elif count is None:
        count = by_flow[flow] = GroupCount(len(group.members))
        horizon, flows = pool.run.horizon, frozenset({flow})
        is_forgotten = horizon is not None and point < horizon
        for member in group.members:
            if not pool.node(member).is_at(point):
                count.put(member, LOST)
            elif is_forgotten:
                source = pool.past if member == changing else pool
                count.put(member, member_value(source.recall(point, member), group, flows))
    return count


def count_elements(
    pool: TaskPool, group: IndexedFamily, point: Point, flows: Flows, changing: str = ""
) -> GroupCount:
    """Returns the counts of all elements of a mapped task, from what is known of each.

    Before the source of its list has succeeded the group is worth what that success is. What
    is `changing`, an element or the source, is counted as open.
    """
    assert group.elements is not None
    tasks = group.elements
    source = pool.recall(point, tasks.over.source)
    value, size = OPEN, None
    if changing != tasks.over.source:
        value = output_value(source, SUCCEEDED, flows)
        size = size_at(pool, tasks, point, flows)
    if size is None:
        count = GroupCount(1)
        if value <= LOST:  # as if there were one, which never runs
            value = max(NOT_TAKEN if one in BAD_ENDS else value for one in group.outputs)
        count.put(tasks.over.source, OPEN if value is TRUE else value)
        return count
    count = GroupCount(size)
    for name in element_names(group, size):
        memory = None if name == changing else pool.recall(point, name)
        if memory is not None:
            count.put(name, member_value(memory, group, flows))
    return count


def count_remembered(pool: TaskPool, point: Point) -> None:
    """Counts the values of families at a point from what is remembered of their members."""
    for name, memory in pool.memory.get(point, {}).items():
        node = pool.plan.nodes.get(name)
        if node is None or not node.groups:
            continue
        flows = memory.verdicts.keys() | {f for made in memory.made.values() for f in made}
        for group in dict.fromkeys(g for found in node.groups.values() for g in found):
            for flow in flows:
                if group.elements is not None:
                    if group.family:
                        group_count(pool, group, point, flow)  # which counts all that is known
                    continue
                value = member_value(memory, group, frozenset({flow}))
                if value is TRUE or pool.plan.policy.prunes_unreachable:
                    group_count(pool, group, point, flow).put(name, value)


def value_to(pool: TaskPool, leaf: IndexedAtom, task: PooledTask) -> AtomValue:
    """Returns the value that a leaf has for a pooled task.

    What members of a family made in no flow counts only for tasks that waited at that time.
    """
    value = leaf_value(pool, leaf, task.point, task.flows)
    if not task.heard or leaf.group is None or value is TRUE:
        return value
    group, parent = leaf.group, leaf.parent_point(task.point, pool.plan.initial)
    values = []
    for member in members_at(pool, group, parent, task.flows):
        if any((parent, member, output) in task.heard for output in group.outputs):
            values.append(TRUE)
        elif pool.node(member).is_at(parent):
            values.append(member_value(pool.recall(parent, member), group, task.flows))
        else:
            values.append(LOST)
    if not values:
        return value
    return min(values) if group.every else max(values)


def members_at(
    pool: TaskPool, group: IndexedFamily, point: Point, flows: Flows
) -> Sequence[str]:
    """Returns the members of a group at a point; of a mapped task the elements there are."""
    if group.elements is None:
        return group.members
    return tuple(element_names(group, size_at(pool, group.elements, point, flows) or 0))


def task_values(
    pool: TaskPool,
    node: IndexedNode,
    point: Point,
    flows: Flows,
    task: PooledTask | None = None,
) -> tuple[AtomValue, AtomValue]:
    """Returns the value of a task by the atoms of all points, and by its own point's only.

    In the second, lost atoms of other points are taken as open (SEMANTICS §5). Atoms that a
    pooled task has already are true in both.
    """
    overall, own = TRUE, TRUE
    final = pool.plan.final
    true = 0 if task is None else task.true
    for arrow, base in node.arrows_at(point):
        values, own_values = [], []
        for leaf in arrow.leaves:
            known = true >> (base + leaf.number) & 1
            if known:
                value = TRUE
            elif task is None:
                value = leaf_value(pool, leaf, point, flows)
            else:
                value = value_to(pool, leaf, task)
            values.append(value)
            if value is LOST:
                parent = leaf.parent_point(point, pool.plan.initial)
                inside = parent == point or (final is not None and parent > final)
                value = LOST if inside else OPEN
            own_values.append(value)
        overall = min(overall, worth(arrow.expression, values))
        own = min(own, worth(arrow.expression, own_values))
    return overall, own


def suicide_holds(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    """Says whether all suicide arrows into a task are true; False if there are none.

    An atom before the start or beyond the end is never true here.
    """
    arrows = [arrow for arrow in node.suicides if arrow.sequence.has(point)]
    if not arrows:
        return False
    for arrow in arrows:
        mask = 0
        for leaf in arrow.leaves:
            parent = leaf.parent_point(point, pool.plan.initial)
            outside = outside_value(pool, leaf, parent, flows)
            if outside is None and leaf_value(pool, leaf, point, flows) is TRUE:
                mask |= 1 << leaf.number
        if not holds(arrow.expression, mask):
            return False
    return True


def never_comes(pool: TaskPool, node: IndexedNode, point: Point) -> bool:
    """Says whether a task is not spawned because it needs something beyond the last point."""
    plan = pool.plan
    if plan.policy.spawns_what_needs_beyond_the_end:
        return False
    last = plan.final if pool.run.stop is None else pool.run.stop
    if last is None or point > last:
        return False
    return any(
        leaf.parent_point(point, plan.initial) > last for leaf, _ in node.leaves_at(point)
    )


def prune_value(pool: TaskPool, overall: AtomValue, own: AtomValue) -> AtomValue | None:
    """Returns the value with which a task is pruned, lost or not taken; None if it is not."""
    if overall is AtomValue.NOT_TAKEN:
        return AtomValue.NOT_TAKEN
    across = pool.run.prune_across_points
    if own <= AtomValue.LOST or (across and overall is AtomValue.LOST):
        return AtomValue.LOST
    return None
