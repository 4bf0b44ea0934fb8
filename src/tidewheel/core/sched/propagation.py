"""Tells children that an output was made or never will be: spawns, merges, satisfies (§4.4).

Theory of operation. `publish` is the only way in which an output becomes known. It records it
in the parent's memory first and then visits the children, so that a child which looks up its
atoms while being spawned already finds this one. Children are visited along links: tasks at
relative points, families (counted; their children are visited only when the count decides
something), and absolute atoms. A parent without flows tells only children that are pooled.

`mark_unreachable` is the only way in which it becomes known that a task makes no more outputs:
its verdict is recorded, and the children of those that it has not made are to be evaluated.

A flow that meets a pooled task merges into it, which may announce outputs in turn (a task that
ran alone flows on when a flow arrives); that is why merging lives here.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.outputs import IMPLIED, STANDARD, STARTED, SUBMITTED, SUCCEEDED
from tidewheel.core.sched import evaluation
from tidewheel.core.sched.absolute_triggers import first_child_point, settle_absolute
from tidewheel.core.sched.dependency_index import (
    IndexedFamily,
    IndexedLink,
    IndexedNode,
    MappedTasks,
)
from tidewheel.core.sched.dependents import dependents
from tidewheel.core.sched.elements import (
    flows_there,
    flows_with_its_list,
    record_size,
    size_at,
    size_told,
)
from tidewheel.core.sched.flows import may_spawn, spawning, spawning_or_cut_off
from tidewheel.core.sched.pool import GroupCount, StepContext, TaskPool
from tidewheel.core.sched.spawn import look_up_in, satisfy, settle, spawn
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    NO_FLOW,
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    TaskHistory,
    Verdict,
    VerdictKind,
)

_STANDARD = frozenset(STANDARD)
_WITH_IMPLIED = {output: (*implied, output) for output, implied in IMPLIED.items()}
_IMPLIED = {output: dict.fromkeys(implied) for output, implied in IMPLIED.items()}


def complete_output(context: StepContext, task: PooledTask, output: str) -> None:
    """Completes an output of a pooled task, which the caller touches, after those implied."""
    outputs, node, flows, memory = task.outputs, task.plan, task.flows, task.memory
    heard = node.heard
    todo = _WITH_IMPLIED.get(output) or (output,)
    if not outputs and len(todo) > 1 and SUBMITTED not in heard and STARTED not in heard:
        outputs.update(_IMPLIED[output])  # all at once, since nobody waits for any of them
        todo = todo[-1:]
    for one in todo:
        if one in outputs and memory.made.get(one, flows) == flows:
            continue
        outputs[one] = None
        if (one in heard or one not in _STANDARD) and not task.flow_wait:
            if flows:
                _announce(context, node, task.key, memory, one, flows)
            else:
                _tell_pooled(context, node, task.point, one)


def publish(
    context: StepContext, node: IndexedNode, point: Point, output: str, flows: Flows
) -> None:
    """Records an output that was made in these flows and tells every task that waits for it."""
    if flows:
        memory = context.pool.remember(point, node.name)
        _announce(context, node, (point, node.name), memory, output, flows)
    else:
        _tell_pooled(context, node, point, output)


def publish_late(
    context: StepContext, node: IndexedNode, point: Point, output: str, flows: Flows
) -> None:
    """Publishes an output that a task made before these flows came to it."""
    if output in node.heard:
        publish(context, node, point, output, flows)
    elif (told := size_told(node, output)) is not None and flows:
        record_size(context.pool.remember(point, node.name), output, *told, flows)
        context.touched.memory[point, node.name] = None


def _announce(
    context: StepContext,
    node: IndexedNode,
    key: Key,
    memory: TaskHistory,
    output: str,
    flows: Flows,
) -> None:
    """Publishes an output in flows, of a task whose history is at hand."""
    known = memory.made.get(output)
    fresh = flows if known is None else flows - known
    if not fresh:
        return
    memory.made[output] = flows if known is None else known | flows
    context.touched.memory[key] = None
    pool, point = context.pool, key[0]
    states = pool.flows
    if len(states) > 1:  # one of them may have been asked to end with this task
        fresh = _going_on(pool, key, fresh)
        if not fresh:
            return
    groups = node.groups
    # Elements are counted before a child looks them up: a new count has all that is known.
    counts_first = groups and (node.lists or node.element is not None)
    if counts_first:
        _tell_families(context, node, key, output, fresh)
    for link in node.links.get(output, ()):
        _along(context, link, point, fresh)
    if groups and not counts_first:
        _tell_families(context, node, key, output, fresh)
    if node.absolute and (point, output) in node.absolute and point >= pool.run.start:
        for link in node.absolute[(point, output)]:
            for flow in sorted(fresh):
                settle_absolute(context, link, flow, AtomValue.TRUE)


def _going_on(pool: TaskPool, key: Key, flows: Flows) -> Flows:
    """Returns those of these flows that were not asked to end with this task."""
    states = pool.flows
    ending = {flow for flow in flows & states.keys() if key in states[flow].until_tasks}
    return flows - ending


def _tell_pooled(context: StepContext, node: IndexedNode, point: Point, output: str) -> None:
    """Satisfies the pooled children of a task that runs alone; spawns nothing."""
    pool = context.pool
    for child in dependents(pool, node, point, output):
        task = pool.tasks.get(child.key)
        if task is None:
            continue
        if child.link.leaf.group is None:
            satisfy(context, task, child.link.arrow, child.base, child.link.leaf.number)
            continue
        task.heard = tuple(dict.fromkeys((*task.heard, (point, node.name, output))))
        pool.hearing[task.key] = None
        context.touched.tasks[task.key] = None
        _satisfy_if_heard(context, task)
        if task.blocked:  # by this member, perhaps, while others may still come
            context.evaluate(task.key, task.flows)


def _tell_families(
    context: StepContext, node: IndexedNode, key: Key, output: str, flows: Flows
) -> None:
    """Counts a member of families that made an output, and satisfies children if that decides.
    For a pooled child, members that ran alone while it waited count as well."""
    for group in node.groups.get(output, ()):
        count_member(context, group, key, flows)
        _wake_children(context, group, key[0], flows)
    for hearing in list(context.pool.hearing):
        _satisfy_if_heard(context, context.pool.tasks[hearing])


def _satisfy_if_heard(context: StepContext, task: PooledTask) -> None:
    """Satisfies a task's family atoms, with outputs that members made alone while it waited."""
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            if leaf.group is None:
                continue
            if evaluation.value_to(context.pool, leaf, task) is AtomValue.TRUE:
                satisfy(context, task, arrow, base, leaf.number)


def _along(context: StepContext, link: IndexedLink, point: Point, flows: Flows) -> None:
    arrow, shift = link.arrow, link.leaf.shift
    if shift is None or arrow.suicide:
        _along_any(context, link, point, flows)
        return
    child = Point(point - shift) if shift else point
    if arrow.sequence.has(child):
        for target in arrow.targets:
            satisfy_child(context, link, target, child, flows)


def _along_any(context: StepContext, link: IndexedLink, point: Point, flows: Flows) -> None:
    """Does what `_along` does, for links that lead to several points or to suicides, too."""
    arrow = link.arrow
    for child in context.plan.child_points(link, point):
        if arrow.suicide:
            for node, _ in arrow.targets:
                context.suicides.append((node, child, flows))
        else:
            for target in arrow.targets:
                satisfy_child(context, link, target, child, flows)


def satisfy_child(
    context: StepContext,
    link: IndexedLink,
    target: tuple[IndexedNode, int],
    point: Point,
    flows: Flows,
) -> None:
    """Makes an atom of a child true: spawns the child, satisfies it or merges flows into it.

    The target is the child's node, with the base that the atoms of the link's arrow have there.
    """
    node, base = target
    number = link.leaf.number
    task = context.pool.tasks.get((point, node.name))
    if task is None:
        spawn_on_demand(context, node, point, flows, 1 << (base + number))
        return
    if flows == task.flows:
        satisfy(context, task, link.arrow, base, number)
        return
    if not flows.isdisjoint(task.flows):
        satisfy(context, task, link.arrow, base, number)
    context.evaluate_pruned(task.key, task.memory, flows - task.flows)
    known = task.memory.spawned.union(task.memory.verdicts)
    new = spawning(context.pool, flows - task.flows - known, point)
    if new and context.plan.mapped:
        new = flows_there(context.pool, node, point, new)
        new = flows_with_its_list(context.pool, node, task, new)
    if new:
        merge(context, task, new)
        satisfy(context, task, link.arrow, base, number)  # of one that is active, too


def spawn_on_demand(
    context: StepContext, node: IndexedNode, point: Point, flows: Flows, true: int = 0
) -> None:
    """Spawns a task because of an output, in those flows that have not spawned or judged it."""
    pool = context.pool
    run, states, there = pool.run, pool.flows, pool.memory.get(point)
    fresh, horizon = flows, run.horizon
    if (there and node.name in there) or (horizon is not None and point < horizon):
        fresh = _unknown(context, node, point, flows)
    if len(states) > 1 or states[1].stopped or point < run.start:
        fresh = spawning_or_cut_off(context, node, point, fresh)
    if node.element is not None:
        fresh = flows_there(pool, node, point, fresh)
    if fresh and (pool.plan.leads_forward or not evaluation.never_comes(pool, node, point)):
        spawn(context, node, point, fresh, true)
        if node.suicides:
            consider_level(context, node, point, fresh)
        if len(states) > 1 or (horizon is not None and point < horizon):
            # It may have parents that were dead before: a reload evaluates nobody behind the
            # horizon, and a new flow nobody before the point from which on it counts.
            context.evaluate((point, node.name), fresh)


def _unknown(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> Flows:
    """Returns those of these flows in which a task that may have a history was not spawned or
    judged; none, if it ran with --wait and they are what it waited for."""
    pool = context.pool
    memory = pool.recall(point, node.name)
    if memory is None:
        return flows
    if memory.held_back:
        waited = memory.spawned.difference(memory.verdicts)
        if pool.plan.policy.any_flow_ends_waiting or not flows.isdisjoint(waited):
            context.flows_arrived.append((node, point, flows))
            return NO_FLOW
    if memory.verdicts:
        context.evaluate_pruned((point, node.name), memory, flows)
    return flows.difference(memory.spawned, memory.verdicts)


def consider_level(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    """Queues a look at the suicide arrows of a task new in these flows: they may hold now."""
    if context.plan.policy.suicide_is_a_level:
        context.suicides.append((node, point, flows))


def count_member(
    context: StepContext,
    group: IndexedFamily,
    member: Key,
    flows: Flows,
    *,
    spawns: bool = True,
) -> None:
    """Counts a member whose value changed, and tells the family's children if that decides."""
    point, name = member
    pool = context.pool
    memory = pool.recall(point, name)
    if group.elements is not None and not group.family:
        _meet_elements(context, group.elements, point, flows)
        return
    for flow in sorted(flows):
        count = evaluation.group_count(pool, group, point, flow, name)
        before, one = count.value(group.every), frozenset({flow})
        count = _counted(pool, group, count, member, memory, flow)
        after = count.value(group.every)
        if after is before:
            if len(pool.flow_counts) > 1:
                _tell_merged(context, group, point, flow)
            continue
        for link in group.links:
            if link.leaf.absolute is not None:
                if link.leaf.absolute == point:
                    settle_absolute(context, link, flow, after, spawns=spawns)
            elif after is AtomValue.TRUE:
                if spawns:
                    _along(context, link, point, one)
            else:
                evaluate_children(context, link, point, one)


def _counted(
    pool: TaskPool,
    group: IndexedFamily,
    count: GroupCount,
    member: Key,
    memory: TaskHistory | None,
    flow: int,
) -> GroupCount:
    """Returns the counts of a group with the value that one member has now."""
    point, name = member
    one = frozenset({flow})
    elements = group.elements
    if elements is not None and name == elements.over.source:
        count = evaluation.count_elements(pool, group, point, one)
        pool.groups[(group.index, point)][flow] = count
    elif elements is None or flows_there(pool, pool.node(name), point, one):
        value = evaluation.member_value(memory, group, one)
        # A reload may have taken an active one off its sequence.
        is_off = value is AtomValue.OPEN and not pool.node(name).is_at(point)
        count.put(name, AtomValue.LOST if is_off else value)
    return count


def _meet_elements(
    context: StepContext, tasks: MappedTasks, point: Point, flows: Flows
) -> None:
    """Has elements evaluated, and spawned, when their number becomes known: what they wait for
    besides their list may have died or been made before."""
    pool = context.pool
    for flow in sorted(flows):
        one = frozenset({flow})
        size = size_at(pool, tasks, point, one) or 0
        for template in tasks.templates.values():
            names = [element_name(template.name, index) for index in range(size)]
            was_made = False
            if size and template.may_be_born_dead:
                context.to_evaluate.extend(((point, name), flow) for name in names)
                was_made = _was_made(pool, tasks, template, point, one)
            nodes = map(pool.node, names)
            context.to_spawn.extend(
                (node, point, one)
                for node in nodes
                if was_made or _has_made_pair(pool, node, point, one)
            )


def _was_made(
    pool: TaskPool, tasks: MappedTasks, template: IndexedNode, point: Point, flows: Flows
) -> bool:
    """Says whether anything was made that all elements of a mapped task wait for."""
    for leaf, _ in template.leaves_at(point):
        parent = leaf.parent_point(point, pool.plan.initial)
        is_pair = leaf.node in tasks.templates
        if is_pair or evaluation.outside_value(pool, leaf, parent, flows) is not None:
            continue
        if evaluation.leaf_value(pool, leaf, point, flows) is AtomValue.TRUE:
            return True
    return False


def _has_made_pair(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    """Says whether another element, for which one waits, has made its output already: it ran
    while its list was forgotten, or in a flow that has got one of its own since."""
    there = pool.memory.get(point, {})
    return any(
        leaf.node in there
        and pool.node(leaf.node).element is not None
        and evaluation.leaf_value(pool, leaf, point, flows) is AtomValue.TRUE
        for leaf, _ in node.leaves_at(point)
    )


def meet_other_lists(context: StepContext) -> None:
    """Spawns elements, and those who join them, that left, in flows with another list, which
    waited for that: elements of two lists are two things under one name."""
    pool = context.pool
    left, context.elements_left = context.elements_left, []
    for node, point in dict.fromkeys(left):
        memory = pool.recall(point, node.name)
        known = frozenset[int]() if memory is None else memory.spawned.union(memory.verdicts)
        for flow in sorted(pool.flows.keys() - known):
            one, task = frozenset({flow}), pool.tasks.get((point, node.name))
            if not flows_there(pool, node, point, one) or not any(
                evaluation.leaf_value(pool, leaf, point, one) is AtomValue.TRUE
                for leaf, _ in node.leaves_at(point)
            ):
                continue
            if task is None:
                spawn_on_demand(context, node, point, one)
            elif may_spawn(pool, flow, point) and flows_with_its_list(pool, node, task, one):
                merge(context, task, one)


def _wake_children(
    context: StepContext, group: IndexedFamily, point: Point, flows: Flows
) -> None:
    """Spawns a family's children when one member made its output, where the policy says so."""
    if not context.plan.policy.any_member_spawns_children:
        return
    for link in group.links:
        children: Iterable[Point | None] = ()
        if link.leaf.absolute is None:
            children = context.plan.child_points(link, point)
        elif link.leaf.absolute == point:  # the first only (§14)
            children = (first_child_point(context, link, min(flows)),)
        for child in () if link.arrow.suicide else children:
            if child is not None:
                context.to_spawn += [(node, child, flows) for node, _ in link.arrow.targets]


def _tell_merged(context: StepContext, group: IndexedFamily, point: Point, flow: int) -> None:
    """Tells children that are in several flows, to which members count from any of these.

    A child that has outputs ended incomplete and waits again: for what the new flow makes
    alone, so members of other flows do not satisfy it.
    """
    for link in group.links:
        if link.arrow.suicide or link.leaf.absolute is not None:
            continue
        for child in context.plan.child_points(link, point):
            for node, base in link.arrow.targets:
                task = context.pool.tasks.get((child, node.name))
                if task is None or len(task.flows) == 1 or flow not in task.flows:
                    continue
                value = evaluation.group_value(context.pool, group, point, task.flows)
                if value is AtomValue.TRUE and not task.outputs:
                    satisfy(context, task, link.arrow, base, link.leaf.number)
                elif value <= AtomValue.LOST:
                    context.to_evaluate.append((task.key, flow))


def evaluate_children(
    context: StepContext, link: IndexedLink, point: Point, flows: Flows
) -> None:
    """Queues the children of an atom that died or is open again, to be evaluated this step."""
    if link.arrow.suicide:
        return
    for child in context.plan.child_points(link, point):
        for node, _ in link.arrow.targets:
            context.evaluate((child, node.name), flows)


def merge(context: StepContext, task: PooledTask, new: Flows) -> None:
    """Merges flows that arrive at a pooled task: it then belongs to old and new ones."""
    pool = context.pool
    key = task.key
    memory = pool.remember(*key)
    memory.spawned |= new
    context.touched.memory[key] = None
    for flow in new:
        pool.flow_counts[flow] = pool.flow_counts.get(flow, 0) + 1
    before = task.flows
    task.flows = before | new
    numbers = ", ".join(map(str, sorted(new)))
    context.notice("merged", key, f"{context.plan.name_of(key)} merged in flow(s) {numbers}")
    if task.flow_wait or not before:
        task.flow_wait = False
        for output in list(task.outputs):
            publish_late(context, task.plan, task.point, output, task.flows)
    elif task.is_active:
        _record_made(context, task, new)
    if task.stage is JobPhase.INCOMPLETE:
        # It waits for the prerequisites of the new flow, unless the policy says otherwise.
        task.stage, task.ended = JobPhase.WAITING, ""
        if context.plan.policy.met_incomplete_runs_at_once:
            task.missing = 0
        else:
            task.true = 0
            look_up_in(pool, task, new)
    elif task.stage is JobPhase.WAITING and task.missing:
        look_up_in(pool, task, new if task.outputs else task.flows)
        task.blocked = False
        context.evaluate(key, task.flows)
    settle(context, task)
    if task.plan.suicides:
        consider_level(context, task.plan, task.point, new)


def _record_made(context: StepContext, task: PooledTask, new: Flows) -> None:
    """Lets the outputs of an active task count in a flow that arrives later; spawns nothing."""
    made = task.memory.made
    for output in task.outputs:
        if (told := size_told(task.plan, output)) is not None:
            record_size(task.memory, output, *told, new)
            context.touched.memory[task.key] = None
        if output not in task.plan.heard:
            continue
        made[output] = made.get(output, new) | new
        for group in task.plan.groups.get(output, ()):
            count_member(context, group, task.key, new, spawns=False)
        for link in task.plan.absolute.get((task.point, output), ()):
            for flow in sorted(new):
                settle_absolute(context, link, flow, AtomValue.TRUE, spawns=False)
        for child in dependents(context.pool, task.plan, task.point, output):
            pooled = context.pool.tasks.get(child.key)
            if pooled is None or new.isdisjoint(pooled.flows):
                continue
            leaf, flows = child.link.leaf, new & pooled.flows
            value = evaluation.leaf_value(context.pool, leaf, child.point, flows)
            if value is AtomValue.TRUE:
                satisfy(context, pooled, child.link.arrow, child.base, leaf.number)


FINISHED = Verdict(VerdictKind.FINISHED, AtomValue.NOT_TAKEN, ended=SUCCEEDED)


def finished_as(ended: str) -> Verdict:
    """Returns the verdict on a complete task, by the output with which it ended."""
    if ended == SUCCEEDED:
        return FINISHED
    return Verdict(VerdictKind.FINISHED, AtomValue.LOST, ended=ended)


def mark_unreachable(
    context: StepContext, node: IndexedNode, point: Point, flows: Flows, verdict: Verdict
) -> None:
    """Records that a task makes no more outputs in these flows: those not made die there."""
    key = (point, node.name)
    memory = context.pool.remember(point, node.name)
    context.touched.memory[key] = None
    judge(context, node, key, memory, flows, verdict)


def judge(
    context: StepContext,
    node: IndexedNode,
    key: Key,
    memory: TaskHistory,
    flows: Flows,
    verdict: Verdict,
) -> None:
    """Does what `mark_unreachable` does, to a task whose history is at hand and touched."""
    verdicts = memory.verdicts
    if flows is FIRST_FLOW:
        verdicts[1] = verdict
    else:
        verdicts.update(dict.fromkeys(flows, verdict))
    if node.heard and context.plan.policy.prunes_unreachable:
        made = memory.made
        for output in node.heard:
            if (known := made.get(output)) is not flows and known != flows:
                reevaluate_dependents(context, node, key[0], flows)
                break


def restore(context: StepContext, node: IndexedNode, point: Point, flow: int) -> None:
    """Takes a task's verdict in a flow back: outputs that died by it are open again."""
    del context.pool.remember(point, node.name).verdicts[flow]
    context.touched.memory[(point, node.name)] = None
    if context.plan.policy.prunes_unreachable:
        reevaluate_dependents(context, node, point, frozenset({flow}))


def reevaluate_dependents(
    context: StepContext, node: IndexedNode, point: Point, flows: Flows
) -> None:
    """Has the children evaluated that wait for outputs not made by a task in these flows."""
    key = (point, node.name)
    memory = context.pool.remember(point, node.name)
    for output in node.heard:
        made = memory.made.get(output)
        unmade = flows - made if made is not None else flows
        if not unmade:
            continue
        for link in node.links.get(output, ()):
            evaluate_children(context, link, point, unmade)
        for group in node.groups.get(output, ()):
            count_member(context, group, key, unmade)
        for link in node.absolute.get((point, output), ()):
            for flow in sorted(unmade):
                value = evaluation.output_value(memory, output, frozenset({flow}))
                settle_absolute(context, link, flow, value)
