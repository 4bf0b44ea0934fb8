"""What follows from an output: children are spawned, merged into, satisfied (SEMANTICS §4.4).

Theory of operation. `announce` is the only way in which an output becomes known. It records it
in the parent's memory first and then visits the children, so that a child which looks up its
atoms while being spawned already finds this one. Children are visited along links: tasks at
relative points, families (counted; their children are visited only when the count decides
something), and absolute atoms. A parent without flows tells only children that are pooled.

A flow that meets a pooled task merges into it, which may announce outputs in turn (a task that
ran alone flows on when a flow arrives); that is why merging lives here.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import IMPLIED, STANDARD
from tidewheel.core.sched.absolute_triggers import first_child_point, settle_absolute
from tidewheel.core.sched.dependency_index import GroupPlan, LinkPlan, NodePlan
from tidewheel.core.sched.dependents import children
from tidewheel.core.sched.evaluation import (
    group_count,
    group_value,
    leaf_value,
    member_value,
    never_comes,
)
from tidewheel.core.sched.flows import going_on, may_spawn
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.spawn import look_up_in, satisfy, settle, spawn
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import Flows, Key, Memory, Stage, Task, Value, VerdictKind

_STANDARD = frozenset(STANDARD)
_WITH_IMPLIED = {output: (*implied, output) for output, implied in IMPLIED.items()}


def make(draft: Draft, task: Task, output: str) -> None:
    """A pooled task completes an output, after those that it implies."""
    outputs = task.outputs
    node = task.plan
    for one in _WITH_IMPLIED.get(output) or (output,):
        if one in outputs and task.memory.made.get(one, task.flows) == task.flows:
            continue
        outputs[one] = None
        if (one in node.heard or one not in _STANDARD) and not task.flow_wait:
            announce(draft, node, task.point, one, task.flows)
    draft.touched.tasks[task.key] = None


def announce(draft: Draft, node: NodePlan, point: Point, output: str, flows: Flows) -> None:
    """An output was made in these flows: record it and tell everyone who waits for it."""
    key = (point, node.name)
    fresh = flows
    if flows:
        memory = draft.pool.remember(point, node.name)
        known = memory.made.get(output)
        if known is not None:
            fresh = flows - known
            if not fresh:
                return
            memory.made[output] = known | fresh
        else:
            memory.made[output] = flows
        draft.touched.memory[key] = None
        fresh = going_on(draft.pool, fresh, key)
        if not fresh:
            return
    else:
        _tell_pooled(draft, node, point, output)
        return
    for link in node.links.get(output, ()):
        _along(draft, link, point, fresh)
    if node.groups:
        for group in node.groups.get(output, ()):
            count_member(draft, group, key, fresh)
            _wake_children(draft, group, point, fresh)
    if node.absolute and (point, output) in node.absolute and point >= draft.pool.run.start:
        for link in node.absolute[(point, output)]:
            _make_absolute(draft, link, fresh)


def _tell_pooled(draft: Draft, node: NodePlan, point: Point, output: str) -> None:
    """What a task that runs alone has made counts for pooled children, and spawns nothing."""
    pool = draft.pool
    for child in children(pool, node, point, output):
        task = pool.tasks.get(child.key)
        group = child.link.leaf.group
        if task is None or (
            group is not None and not _completes(pool, group, (point, node.name), task.flows)
        ):
            continue
        satisfy(draft, task, child.link.arrow, child.base, child.link.leaf.number)


def _completes(pool: Pool, group: GroupPlan, member: Key, flows: Flows) -> bool:
    """Whether a family has all that is asked of it once this member has made its output."""
    point, name = member
    return not group.every or all(
        member_value(pool.recall(point, other), group, flows) is Value.TRUE
        for other in group.members
        if other != name
    )


def _along(draft: Draft, link: LinkPlan, point: Point, flows: Flows) -> None:
    arrow = link.arrow
    shift = link.leaf.shift
    if shift is not None:
        child = Point(point - shift)
        points: Iterable[Point] = (child,) if arrow.sequence.has(child) else ()
    else:
        points = draft.plan.child_points(link, point)
    number = link.leaf.number
    for child in points:
        if arrow.suicide:
            draft.to_consider.extend((node, child, flows) for node, _ in arrow.targets)
        else:
            for node, base in arrow.targets:
                reach(draft, link, (node, base, number), child, flows)


def reach(
    draft: Draft, link: LinkPlan, bit: tuple[NodePlan, int, int], point: Point, flows: Flows
) -> None:
    """An atom of this child is true now."""
    node, base, number = bit
    task = draft.pool.tasks.get((point, node.name))
    if task is None:
        come(draft, node, point, flows, 1 << (base + number))
        return
    if flows == task.flows or not flows.isdisjoint(task.flows):
        satisfy(draft, task, link.arrow, base, number)
    if flows != task.flows:
        _judge_pruned(draft, task.key, task.memory, flows - task.flows)
        new = _unknown_flows(draft, task, flows - task.flows)
        if new:
            merge(draft, task, new)
            satisfy(draft, task, link.arrow, base, number)  # of one that is active, too


def come(draft: Draft, node: NodePlan, point: Point, flows: Flows, true: int = 0) -> None:
    """Spawn a task on demand, in those flows in which it is not known yet."""
    pool = draft.pool
    memory = pool.recall(point, node.name)
    fresh = flows
    if memory is not None:
        fresh = flows - memory.spawned
        if memory.held_back:
            waited = memory.spawned - memory.verdicts.keys()
            if pool.plan.policy.any_flow_ends_waiting or not flows.isdisjoint(waited):
                draft.to_flow_on.append((node, point, flows))
                return
        if memory.verdicts:
            _judge_pruned(draft, (point, node.name), memory, flows)
            fresh -= memory.verdicts.keys()
    if len(pool.flows) > 1 or pool.flows[1].stopped or point < pool.run.start:
        fresh = frozenset(flow for flow in fresh if may_spawn(pool, flow, point))
    if fresh and not never_comes(pool, node, point):
        spawn(draft, node, point, fresh, true)
        consider_level(draft, node, point, fresh)


def consider_level(draft: Draft, node: NodePlan, point: Point, flows: Flows) -> None:
    """A task came, or came into these flows: its suicide condition may hold already."""
    if node.suicides and draft.plan.policy.suicide_is_a_level:
        draft.to_consider.append((node, point, flows))


def _judge_pruned(draft: Draft, key: Key, memory: Memory, flows: Flows) -> None:
    """An atom is true now: a verdict may have followed from what was thought of it."""
    for flow in flows & memory.verdicts.keys():
        if memory.verdicts[flow].kind is VerdictKind.PRUNED:
            draft.to_judge.append((key, flow))


def _unknown_flows(draft: Draft, task: Task, flows: Flows) -> Flows:
    """Those in which a task was neither spawned nor judged."""
    memory = task.memory
    return frozenset(
        flow
        for flow in flows - memory.spawned - memory.verdicts.keys()
        if may_spawn(draft.pool, flow, task.point)
    )


def count_member(
    draft: Draft, group: GroupPlan, member: Key, flows: Flows, *, spawns: bool = True
) -> None:
    """A member's worth changed: tell the family's children if that decides something."""
    point, name = member
    pool = draft.pool
    memory = pool.recall(point, name)
    for flow in sorted(flows):
        count = group_count(pool, group, point, flow, name)
        before = count.value(group.every)
        one = frozenset({flow})
        value = member_value(memory, group, one)
        # A reload may have taken an active one off its sequence.
        is_off = value is Value.OPEN and not pool.node(name).is_at(point)
        count.put(name, Value.LOST if is_off else value)
        after = count.value(group.every)
        if after is before:
            if len(pool.flow_counts) > 1:
                _tell_merged(draft, group, point, flow)
            continue
        for link in group.links:
            if link.leaf.absolute is not None:
                if link.leaf.absolute == point:
                    settle_absolute(draft, link, flow, after, spawns=spawns)
            elif after is Value.TRUE:
                if spawns:
                    _along(draft, link, point, one)
            else:
                children_to_judge(draft, link, point, one)


def _wake_children(draft: Draft, group: GroupPlan, point: Point, flows: Flows) -> None:
    """A member has made its output: where that is enough, the children come."""
    if not draft.plan.policy.any_member_spawns_children:
        return
    for link in group.links:
        if link.arrow.suicide:
            continue
        for child in _children_to_wake(draft, link, point, flows):
            draft.to_come.extend((node, child, flows) for node, _ in link.arrow.targets)


def _children_to_wake(
    draft: Draft, link: LinkPlan, point: Point, flows: Flows
) -> Iterable[Point]:
    """Of a family at a fixed point, the first child only (SEMANTICS §14)."""
    if link.leaf.absolute is None:
        return draft.plan.child_points(link, point)
    if link.leaf.absolute != point or not flows:
        return ()
    first = first_child_point(draft, link, min(flows))
    return () if first is None else (first,)


def _tell_merged(draft: Draft, group: GroupPlan, point: Point, flow: int) -> None:
    """A child in several flows may have its members from different ones.

    One that ended incomplete and waits again does so for what the new flow makes, by itself.
    """
    for link in group.links:
        if link.arrow.suicide or link.leaf.absolute is not None:
            continue
        for child in draft.plan.child_points(link, point):
            for node, base in link.arrow.targets:
                task = draft.pool.tasks.get((child, node.name))
                if task is None or len(task.flows) == 1 or flow not in task.flows:
                    continue
                value = group_value(draft.pool, group, point, task.flows)
                if value is Value.TRUE and not task.outputs:
                    satisfy(draft, task, link.arrow, base, link.leaf.number)
                elif value <= Value.LOST:
                    draft.to_judge.append((task.key, flow))


def children_to_judge(draft: Draft, link: LinkPlan, point: Point, flows: Flows) -> None:
    """An atom of these children died or is open again: the closing judges them."""
    if link.arrow.suicide:
        return
    for child in draft.plan.child_points(link, point):
        for node, _ in link.arrow.targets:
            draft.to_judge.extend(((child, node.name), flow) for flow in flows)


def _make_absolute(draft: Draft, link: LinkPlan, flows: Flows) -> None:
    for flow in sorted(flows):
        settle_absolute(draft, link, flow, Value.TRUE)


def merge(draft: Draft, task: Task, new: Flows) -> None:
    """A flow arrives at a pooled task: the task now belongs to both."""
    pool = draft.pool
    key = task.key
    memory = pool.remember(*key)
    memory.spawned |= new
    draft.touched.memory[key] = None
    for flow in new:
        pool.flow_counts[flow] = pool.flow_counts.get(flow, 0) + 1
    before = task.flows
    task.flows = before | new
    numbers = ", ".join(map(str, sorted(new)))
    draft.notice("merged", key, f"{draft.name_of(key)} merged in flow(s) {numbers}")
    if task.flow_wait or not before:
        task.flow_wait = False
        for output in list(task.outputs):
            if output in task.plan.heard:
                announce(draft, task.plan, task.point, output, task.flows)
    elif task.is_active:
        _record_made(draft, task, new)
    if task.stage is Stage.INCOMPLETE:
        wait_again(draft, task, new)
    elif task.stage is Stage.WAITING and task.missing:
        look_up_in(pool, task, new if task.outputs else task.flows)
        task.blocked = False
        draft.to_judge.extend((key, flow) for flow in task.flows)
    settle(draft, task)
    consider_level(draft, task.plan, task.point, new)


def _record_made(draft: Draft, task: Task, new: Flows) -> None:
    """What an active task has made counts in a flow that arrives later, but spawns nothing."""
    made = task.memory.made
    for output in task.outputs:
        if output not in task.plan.heard:
            continue
        made[output] = made.get(output, new) | new
        for group in task.plan.groups.get(output, ()):
            count_member(draft, group, task.key, new, spawns=False)
        for link in task.plan.absolute.get((task.point, output), ()):
            for flow in sorted(new):
                settle_absolute(draft, link, flow, Value.TRUE, spawns=False)
        for child in children(draft.pool, task.plan, task.point, output):
            pooled = draft.pool.tasks.get(child.key)
            if pooled is None or new.isdisjoint(pooled.flows):
                continue
            leaf = child.link.leaf
            if leaf_value(draft.pool, leaf, child.point, new & pooled.flows) is Value.TRUE:
                satisfy(draft, pooled, child.link.arrow, child.base, leaf.number)


def wait_again(draft: Draft, task: Task, flows: Flows) -> None:
    """An incomplete task met by a new flow waits for that flow's prerequisites."""
    task.stage = Stage.WAITING
    task.ended = ""
    if draft.plan.policy.met_incomplete_runs_at_once:
        task.missing = 0
        return
    task.true = 0
    look_up_in(draft.pool, task, flows)
