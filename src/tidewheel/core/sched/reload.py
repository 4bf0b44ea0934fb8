"""`reload`: a new definition replaces the old one, whole or not at all (SEMANTICS §8).

The pool is rebuilt from its own rows under the new plan, as after a restart: that is the one
way in which a pool is made from what is known. What differs is looked up afterwards:
prerequisites that changed, tasks that are gone, tasks that are new, and points that a later
final point adds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.absolute_triggers import settle_absolute
from tidewheel.core.sched.completion import conclude, is_complete
from tidewheel.core.sched.dependency_index import (
    DependencyIndex,
    IndexedAtom,
    IndexedLink,
    names_of,
    orphan,
)
from tidewheel.core.sched.dependents import Dependent, dependents
from tidewheel.core.sched.evaluation import absolute_key, leaf_value, recorded_value
from tidewheel.core.sched.events import RunReloaded
from tidewheel.core.sched.flows import active_flows
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.parentless import start_chain
from tidewheel.core.sched.persistence import everything, rebuild
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.propagation import publish, satisfy_child
from tidewheel.core.sched.reachability import reevaluate_dependents
from tidewheel.core.sched.spawn import leave, look_up, settle
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import NO_FLOW, AtomValue, Flows, JobPhase, PooledTask

# (point of the parent, tasks, outputs, whether each of the tasks must make one of them)
Atom = tuple[Point, tuple[str, ...], tuple[str, ...], bool]


def reloaded(context: StepContext, event: RunReloaded) -> None:
    """Go on with another graph."""
    pool = context.pool
    old = pool.plan
    plan = build_index(event.graph)
    for name in sorted(old.nodes.keys() - plan.nodes.keys()):
        plan.nodes[name] = orphan(name, len(plan.nodes))
    known = {key: _true_atoms(old, task) for key, task in pool.tasks.items()}
    _replace(pool, rebuild(plan, everything(pool), pool.past))
    context.plan = plan
    context.touched.tasks.update(dict.fromkeys(pool.tasks))
    _drop_removed(context, plan)
    settled = _settled_since(pool)
    kept = list(pool.tasks.values())
    for task in kept:
        _look_up_again(context, task, known[task.key])
    for link, flow, value in settled:
        settle_absolute(context, link, flow, value)
    for task in kept:
        _tell_of_outputs(context, task)
    if plan.policy.prunes_unreachable:
        _evaluate_anew(context)
    _begin_chains(context, old, plan)
    if old.final is not None and _ended(old, plan):
        _go_beyond(context, old.final)
    _leave_what_cannot_be_evaluated(context)
    context.freed.update(dict.fromkeys(range(len(pool.queues))))
    if pool.run.status == RunStatus.COMPLETED:
        pool.run.status = RunStatus.RUNNING
        context.touched.run = True


def _settled_since(pool: TaskPool) -> list[tuple[IndexedLink, int, AtomValue]]:
    """Atoms at fixed points that nobody waited for before have their values, too.

    They count at once; what follows from them comes when the tasks know what they wait for.
    """
    found: list[tuple[IndexedLink, int, AtomValue]] = [
        (link, flow, value)
        for leaf, link in _fixed_leaves(pool.plan)
        for flow in _flows_known(pool, leaf)
        if (value := recorded_value(pool, leaf, flow)) is not AtomValue.OPEN
        and value is not pool.absolute.get(absolute_key(leaf), {}).get(flow)
    ]
    for link, flow, value in found:
        pool.absolute.setdefault(absolute_key(link.leaf), {})[flow] = value
    return found


def _fixed_leaves(plan: DependencyIndex) -> Iterator[tuple[IndexedAtom, IndexedLink]]:
    links = [link for group in plan.groups for link in group.links]
    for node in plan.nodes.values():
        links += (link for found in node.absolute.values() for link in found)
    return ((link.leaf, link) for link in links if link.leaf.absolute is not None)


def _flows_known(pool: TaskPool, leaf: IndexedAtom) -> Flows:
    """The flows in which anything is known of whom an atom at a fixed point asks for."""
    assert leaf.absolute is not None
    if leaf.absolute < pool.run.start:
        return NO_FLOW
    memories = [pool.recall(leaf.absolute, name) for name in names_of(leaf)]
    known = [one for one in memories if one is not None]
    return NO_FLOW.union(*(made for one in known for made in one.made.values())).union(
        *(one.verdicts.keys() for one in known)
    )


def _begin_chains(context: StepContext, old: DependencyIndex, plan: DependencyIndex) -> None:
    """Begins chains: of new nodes from the base on, of others beyond the old final point."""
    pool = context.pool
    base = pool.counted.earliest()
    if base is None:
        base = pool.run.horizon or pool.run.start
    for node in plan.nodes.values():
        if node.name not in old.graph.nodes and plan.policy.reload_spawns_new_tasks:
            first = base
        elif old.final is not None and _ended(old, plan):
            first = max(base, Point(old.final + 1))
        else:
            continue
        for flow in sorted(active_flows(pool)):
            if (node.name, flow) not in pool.chains:
                start_chain(context, node, flow, first)


def _evaluate_anew(context: StepContext) -> None:
    """Evaluates the dependents of all that has ended, since a new graph may need an old end."""
    for point, there in list(context.pool.memory.items()):
        for name, memory in list(there.items()):
            if memory.verdicts:
                flows = frozenset(memory.verdicts)
                reevaluate_dependents(context, context.pool.node(name), point, flows)


def _leave_what_cannot_be_evaluated(context: StepContext) -> None:
    """Leaves tasks alone whose parents are forgotten: they were evaluated in their time."""
    pool = context.pool
    horizon = pool.run.horizon
    if horizon is None:
        return
    first = horizon + pool.plan.reach_back
    context.to_evaluate = [
        one for one in context.to_evaluate if one[0][0] >= first or one[0] in pool.tasks
    ]


def _replace(pool: TaskPool, other: TaskPool) -> None:
    """The pool keeps its identity: the service holds on to it."""
    scratch = pool.scratch
    pool.__dict__.update(other.__dict__)
    pool.scratch = scratch


def _drop_removed(context: StepContext, plan: DependencyIndex) -> None:
    for task in list(context.pool.tasks.values()):
        if task.plan.name not in plan.graph.nodes and not task.is_active:
            leave(context, task)


def _look_up_again(context: StepContext, task: PooledTask, known: set[Atom]) -> None:
    """Keeps what was true where it is still asked for, and looks up the rest.

    A task that needed nothing more because an operator said so, or because it is tried again,
    needs nothing more.
    """
    task.true = 0
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            if _atom(context.plan, leaf, task.point) in known:
                task.true |= 1 << (base + leaf.number)
    if task.stage is not JobPhase.WAITING:
        return
    helped = task.outputs or task.satisfied_by_hand or task.manual
    if task.missing or not helped:
        task.blocked = False
        look_up(context.pool, task)
        context.evaluate(task.key, task.flows)
    settle(context, task)


def _true_atoms(old: DependencyIndex, task: PooledTask) -> set[Atom]:
    """The atoms of a task that were true; of a family also who its members were."""
    return {
        _atom(old, leaf, task.point)
        for arrow, base in old.nodes[task.plan.name].arrows_at(task.point)
        for leaf in arrow.leaves
        if task.true >> (base + leaf.number) & 1
    }


def _atom(plan: DependencyIndex, leaf: IndexedAtom, point: Point) -> Atom:
    group = leaf.group
    names = (leaf.node,) if group is None else group.members
    outputs = (leaf.output,) if group is None else group.outputs
    every = group is None or group.every
    return (leaf.parent_point(point, plan.initial), names, outputs, every)


def _tell_of_outputs(context: StepContext, task: PooledTask) -> None:
    """Outputs that nobody waited for may be waited for now, and may be all that was missing."""
    if not task.flow_wait and task.flows:
        for output in list(task.outputs):
            if output in task.plan.heard and output not in task.memory.made:
                publish(context, task.plan, task.point, output, task.flows)
    if task.stage is JobPhase.INCOMPLETE and is_complete(task):
        conclude(context, task)


def _ended(old: DependencyIndex, plan: DependencyIndex) -> bool:
    return old.final is not None and (plan.final is None or plan.final > old.final)


def _go_beyond(context: StepContext, final: Point) -> None:
    """Outputs made before the old final point reach children beyond it now."""
    pool = context.pool
    for point, there in list(pool.memory.items()):
        for name, memory in list(there.items()):
            node = pool.node(name)
            for output, flows in list(memory.made.items()):
                for child in list(dependents(pool, node, point, output)):
                    if child.point > final:
                        _reach(context, child, flows)


def _reach(context: StepContext, child: Dependent, flows: Flows) -> None:
    leaf = child.link.leaf
    bit = (child.node, child.base, leaf.number)
    true = frozenset(
        flow
        for flow in flows
        if leaf_value(context.pool, leaf, child.point, frozenset({flow})) is AtomValue.TRUE
    )
    if true:
        satisfy_child(context, child.link, bit, child.point, true)
