"""`set`: complete outputs, or satisfy prerequisites, by hand (SEMANTICS §8)."""

from __future__ import annotations

from collections.abc import Collection

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import IMPLIED, STANDARD, SUCCEEDED
from tidewheel.core.sched.completion import conclude, is_complete, stop_after
from tidewheel.core.sched.dependency_index import IndexedAtom, IndexedNode
from tidewheel.core.sched.dependents import dependents
from tidewheel.core.sched.effects import DropXtrigger
from tidewheel.core.sched.evaluation import member_value
from tidewheel.core.sched.events import FlowChoice, OutputsSet, PrerequisitesSet
from tidewheel.core.sched.flows import active_flows, named_flows, new_flow
from tidewheel.core.sched.interventions import refuse_unknown
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.propagation import complete_output, publish
from tidewheel.core.sched.reachability import mark_unreachable
from tidewheel.core.sched.spawn import look_up, no_longer_waits, settle
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import (
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
from tidewheel.core.sched.trigger import bring, drop_waits, merge_by_hand


def outputs_set(context: StepContext, event: OutputsSet) -> None:
    """Children follow as if it had happened."""
    refuse_unknown(context.pool, (event.task,))
    node = context.pool.node(event.task[1])
    memory = context.pool.recall(*event.task)
    outputs = event.outputs or completing(node, () if memory is None else memory.made)
    if event.flow is FlowChoice.NEW:
        flows: Flows | None = frozenset({new_flow(context)})
    else:
        flows = named_flows(context, event.flow)
    task = context.pool.tasks.get(event.task)
    if task is None:
        _set_absent(context, node, event, outputs, flows)
    else:
        merge_by_hand(context, task, flows or NO_FLOW)
        _set_pooled(context, task, outputs)


def completing(node: IndexedNode, made: Collection[str] = ()) -> tuple[str, ...]:
    """Returns what completes a task, if nothing is said: its first alternative.

    Of several ways to succeed it is the one of which an own output was made already.
    """
    alternatives = node.completion.alternatives
    if not alternatives:
        return (SUCCEEDED,)
    first = alternatives[0]
    own = frozenset(made) - frozenset(STANDARD)
    begun = (one for one in alternatives if SUCCEEDED in one and one & own)
    return tuple(sorted(next(begun, first) if SUCCEEDED in first else first))


def _set_pooled(context: StepContext, task: PooledTask, outputs: tuple[str, ...]) -> None:
    before = set(task.outputs)
    for output in outputs:
        complete_output(context, task, output)
    added = [output for output in task.outputs if output not in before]
    task.by_hand = tuple(dict.fromkeys((*task.by_hand, *added)))
    if not task.is_active and task.flows and is_complete(task):
        # It may have succeeded before a flow arrived, and then not in that one.
        succeeded = SUCCEEDED in task.outputs and (
            task.flows <= task.memory.made.get(SUCCEEDED, task.flows)
        )
        task.ended = SUCCEEDED if succeeded else outputs[-1]
        conclude(context, task)


def _set_absent(
    context: StepContext,
    node: IndexedNode,
    event: OutputsSet,
    outputs: tuple[str, ...],
    flows: Flows | None,
) -> None:
    pool, key = context.pool, event.task
    if flows is None:
        flows = _flows_that_wait(pool, node, key, outputs) or active_flows(pool)
    made = dict.fromkeys(
        one for output in outputs for one in (*IMPLIED.get(output, ()), output)
    )
    memory = pool.remember(*key)
    context.touched.memory[key] = None
    if event.wait:
        memory.held_back = tuple(made)
        memory.spawned |= flows
        return
    for output in made:
        if output in node.heard:
            publish(context, node, key[0], output, flows)
    for flow in sorted(flows):
        earlier = _made_before(memory, flow)
        if node.completion.is_complete(earlier | made.keys()):
            stop_after(context, key)
            memory.spawned |= {flow}
            ended = SUCCEEDED if SUCCEEDED in earlier | made.keys() else outputs[-1]
            death = AtomValue.NOT_TAKEN if ended == SUCCEEDED else AtomValue.LOST
            verdict = Verdict(VerdictKind.FINISHED, death, ended=ended)
            mark_unreachable(context, node, key[0], frozenset({flow}), verdict)


def _made_before(memory: TaskHistory, flow: int) -> set[str]:
    """Returns what a task has made in a flow, heard or not."""
    found = {output for output, where in memory.made.items() if flow in where}
    verdict = memory.verdicts.get(flow)
    if verdict is not None and verdict.ended:
        found |= {*IMPLIED.get(verdict.ended, ()), verdict.ended}
    return found


def _flows_that_wait(
    pool: TaskPool, node: IndexedNode, key: Key, outputs: tuple[str, ...]
) -> Flows:
    """The flows of pooled children that wait for one of these outputs."""
    found: Flows = NO_FLOW
    for output in outputs:
        for child in dependents(pool, node, key[0], output):
            task = pool.tasks.get(child.key)
            if task is not None and task.missing and not task.true & child.bit:
                found |= task.flows
    return found


def prerequisites_set(context: StepContext, event: PrerequisitesSet) -> None:
    """Satisfy prerequisites by hand, spawning the task if needed."""
    refuse_unknown(context.pool, (event.task,))
    pool = context.pool
    point, name = event.task
    node = pool.node(name)
    if event.flow is FlowChoice.NEW:
        flows: Flows | None = frozenset({new_flow(context)})
    else:
        flows = named_flows(context, event.flow)
    task = pool.tasks.get(event.task)
    if task is None:
        task = bring(context, node, point, active_flows(pool) if flows is None else flows)
    else:
        merge_by_hand(context, task, flows or NO_FLOW)
    if task.stage is not JobPhase.WAITING:
        return
    task.satisfied_by_hand = True
    task.blocked = False
    if event.everything:
        drop_waits(context, task)
        task.missing = 0
    else:
        _satisfy_named(context, task, event)
    settle(context, task)


def _satisfy_named(context: StepContext, task: PooledTask, event: PrerequisitesSet) -> None:
    for label in event.xtriggers:
        if label in task.waits:
            no_longer_waits(context, task, label)
            if task.admitted:
                context.effects.append(DropXtrigger(task.key, label))
    wanted = set(event.atoms)
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            parent = leaf.parent_point(task.point, context.plan.initial)
            if _is_wanted(context.pool, task, leaf, parent, wanted):
                task.true |= 1 << (base + leaf.number)
    if task.missing:
        look_up(context.pool, task)


def _is_wanted(
    pool: TaskPool,
    task: PooledTask,
    leaf: IndexedAtom,
    parent: Point,
    wanted: set[tuple[Point, str, str]],
) -> bool:
    """A family's atom is met by hand when those of its members that lack are named."""
    if leaf.group is None:
        return (parent, leaf.node, leaf.output) in wanted
    met = (
        any((parent, member, output) in wanted for output in leaf.group.outputs)
        or member_value(pool.recall(parent, member), leaf.group, task.flows) is AtomValue.TRUE
        for member in leaf.group.members
    )
    return all(met) if leaf.group.every else any(met)
