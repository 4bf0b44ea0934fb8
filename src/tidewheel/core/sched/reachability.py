"""Finds the tasks that will not run, those that are blocked, and those that come back (§5).

Theory of operation. Evaluating a task is a pure question: which value do its prerequisites have
in a flow, given the outputs made and the verdicts recorded so far? The answer does not depend
on the order of events, so evaluating too often is harmless and evaluating again is how verdicts
are taken back. A task is evaluated whenever one of its atoms stopped being open or became open
again:

- not taken, or lost by atoms of its own point: *pruned*. It leaves the pool, or never enters
  it; its outputs die in turn, so its children are evaluated next.
- lost only by atoms of other points: *blocked*. It is put into the pool if need be and stays
  there, where it can be seen and stalls the run.
- otherwise a verdict it had is withdrawn; if it had been pooled, or an atom of it is true, it
  is spawned, else it comes on demand.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUBMITTED, SUCCEEDED
from tidewheel.core.sched import evaluation, propagation
from tidewheel.core.sched.absolute_triggers import is_shown, seek_blocked
from tidewheel.core.sched.dependency_index import IndexedNode, names_of
from tidewheel.core.sched.dependents import dependents
from tidewheel.core.sched.elements import flows_there, flows_with_its_list
from tidewheel.core.sched.flows import flows_it_ran_in, may_spawn
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.spawn import leave, settle, spawn
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    Verdict,
    VerdictKind,
)

ROUNDS_MAX = 100  # of evaluating at once what follows from a verdict at points not reached
CHAIN_MAX = 100  # links of a chain of verdicts: what was forgotten is looked up in the store
NO_STOP = "no stop"  # the notice that a task after which the run was to stop will not run

Cause = tuple[Point, str, str]


def evaluate_all(context: StepContext) -> None:
    """Evaluates every task that is to be evaluated, and those that follow from that."""
    if not context.plan.policy.prunes_unreachable:
        context.to_evaluate.clear()
        context.to_seek_blocked.clear()
    rounds = 0
    while context.to_evaluate or context.to_seek_blocked:
        rounds += 1
        if not context.to_evaluate:
            seek_blocked(context)
            rounds = 0
        elif rounds > ROUNDS_MAX:
            # What is not taken may have no end where a graph has none: the run will come there.
            rounds = 0
            pool, last = context.pool, context.pool.last_admitted() + context.plan.lead
            if all(key[0] > last and key not in pool.tasks for key, _ in context.to_evaluate):
                pool.ahead.update(dict.fromkeys(context.to_evaluate))
                context.to_evaluate.clear()
        todo = dict.fromkeys(context.to_evaluate)
        context.to_evaluate.clear()
        for key, flow in todo:
            task = context.pool.tasks.get(key)
            if task is not None and (flow in task.flows or not task.flows):
                # Of one that runs alone its flows are evaluated when it has left.
                _evaluate_pooled(context, task)
            else:
                _evaluate_absent(context, context.pool.node(key[1]), key[0], flow)


def may_be_pruned(task: PooledTask) -> bool:
    """Says whether a task may be pruned: it waits for parents, unsubmitted and not helped."""
    return bool(
        task.stage is JobPhase.WAITING
        and task.missing
        and task.flows
        and not task.manual
        and not task.satisfied_by_hand
        and SUBMITTED not in task.outputs
    )


def _evaluate_pooled(context: StepContext, task: PooledTask) -> None:
    if not may_be_pruned(task):
        return
    pool, node, point = context.pool, task.plan, task.point
    overall, own = evaluation.task_values(pool, node, point, task.flows, task)
    death = evaluation.prune_value(pool, overall, own)
    if death is not None:
        cause = _cause(pool, node, point, task.flows, death)
        leave(context, task)
        verdict = Verdict(VerdictKind.PRUNED, death, cause=cause, pooled=True)
        _prune(context, node, point, task.flows, verdict)
        return
    blocked = overall is AtomValue.LOST
    if blocked is not task.blocked:
        task.blocked = blocked
        if blocked:
            cause = _cause(pool, node, point, task.flows, AtomValue.LOST)
            text = (
                f"{context.plan.name_of(task.key)} is blocked: it needs {_text(context, cause)}"
            )
            context.notice("blocked", task.key, text)
        settle(context, task)


def _evaluate_absent(context: StepContext, node: IndexedNode, point: Point, flow: int) -> None:
    pool = context.pool
    if not may_spawn(pool, flow, point) or not _is_there(pool, node, point, flow):
        return
    memory = pool.recall(point, node.name)
    old = None if memory is None else memory.verdicts.get(flow)
    if old is not None and old.kind is not VerdictKind.PRUNED:
        return
    taken_out = memory is not None and flow in memory.spawned and not (old and old.pooled)
    if taken_out and flow in flows_it_ran_in(pool, (point, node.name)):
        return
    flows = frozenset({flow})
    overall, own = evaluation.task_values(pool, node, point, flows)
    death = evaluation.prune_value(pool, overall, own)
    if death is not None:
        if old is None or old.death is not death:
            cause = _cause(pool, node, point, flows, death)
            pooled = old is not None and old.pooled
            verdict = Verdict(VerdictKind.PRUNED, death, cause=cause, pooled=pooled)
            _prune(context, node, point, flows, verdict)
        else:
            _renew_cause(context, node, point, flow, old)
        return
    if old is not None:
        propagation.restore(context, node, point, flow)
    if taken_out:
        return
    if old is not None and (old.pooled or _has_true_atom(pool, node, point, flows)):
        _bring_back(context, node, point, flow)
        return
    pooled_now = (point, node.name) in pool.tasks
    if overall is AtomValue.LOST and not pooled_now and _blocks_here(pool, node, point, flows):
        _spawn_blocked(context, node, point, flows)


def _is_there(pool: TaskPool, node: IndexedNode, point: Point, flow: int) -> bool:
    """Says whether the graph has this task in a flow, if its elements are known there."""
    return node.is_at(point) and bool(flows_there(pool, node, point, frozenset({flow})))


def _spawn_blocked(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    """Puts a task into the pool that waits for something lost, where it can be seen."""
    _evaluate_pooled(context, spawn(context, node, point, flows))
    if node.suicides:
        propagation.consider_level(context, node, point, flows)


def _bring_back(context: StepContext, node: IndexedNode, point: Point, flow: int) -> None:
    """Spawns a pruned task that may run after all, or merges its flow into the pooled one."""
    key, flows = (point, node.name), frozenset({flow})
    pooled = context.pool.tasks.get(key)
    if pooled is not None:
        flows = flows_with_its_list(context.pool, node, pooled, flows)
        if flows:
            propagation.merge(context, pooled, flows)
        return
    spawn(context, node, point, flows)
    context.notice("back", key, f"{context.plan.name_of(key)} is back in the pool")
    if node.suicides:
        propagation.consider_level(context, node, point, flows)


def _blocks_here(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    """Says whether a lost task is put into the pool, where it is seen as blocked.

    Of those that are lost by fixed atoms alone, only the first is. One that asks for a parent
    off its sequence is, when its point comes within the runahead limit.
    """
    looked_at = pool.run.looked_at
    far = looked_at is None or point > looked_at[1]
    by_others, by_fixed = AtomValue.TRUE, AtomValue.TRUE
    for arrow, _ in node.arrows_at(point):
        values, fixed_values = [], []
        for leaf in arrow.leaves:
            value = evaluation.leaf_value(pool, leaf, point, flows)
            if value is AtomValue.LOST and far and leaf.absolute is None:
                parent = leaf.parent_point(point, pool.plan.initial)
                if any(not pool.node(name).is_at(parent) for name in names_of(leaf)):
                    value = AtomValue.OPEN  # it asks for somebody who is never there
            fixed_values.append(value)
            fixed = value is AtomValue.LOST and leaf.absolute is not None
            values.append(AtomValue.OPEN if fixed else value)
        by_others = min(by_others, evaluation.worth(arrow.expression, values))
        by_fixed = min(by_fixed, evaluation.worth(arrow.expression, fixed_values))
    if by_others is AtomValue.LOST:
        return True
    return by_fixed is AtomValue.LOST and not is_shown(pool, node, point, flows)


def _prune(
    context: StepContext, node: IndexedNode, point: Point, flows: Flows, verdict: Verdict
) -> None:
    propagation.mark_unreachable(context, node, point, flows, verdict)
    key = (point, node.name)
    if verdict.death is AtomValue.LOST:
        context.notice("lost", key, chain_text(context.pool, key, min(flows)))
    if context.pool.run.stop_after == key:
        name = context.plan.name_of(key)
        context.notice(NO_STOP, key, f"the run does not stop after {name}, which will not run")


def _has_true_atom(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> bool:
    found_inside = False
    for leaf, _ in node.leaves_at(point):
        parent = leaf.parent_point(point, pool.plan.initial)
        if evaluation.outside_value(pool, leaf, parent, flows) is not None:
            continue
        found_inside = True
        if evaluation.leaf_value(pool, leaf, point, flows) is AtomValue.TRUE:
            return True
    return not found_inside


def _renew_cause(
    context: StepContext, node: IndexedNode, point: Point, flow: int, old: Verdict
) -> None:
    """Renews the cause of a task that is still dead, if the one it has is none any more."""
    causes = list(_causes(context.pool, node, point, frozenset({flow}), old.death))
    if old.cause not in causes:
        memory = context.pool.remember(point, node.name)
        memory.verdicts[flow] = old._replace(cause=causes[0])
        context.touched.memory[(point, node.name)] = None


def _cause(
    pool: TaskPool, node: IndexedNode, point: Point, flows: Flows, death: AtomValue
) -> Cause:
    """Returns the first atom with this value, which explains a verdict."""
    return next(_causes(pool, node, point, flows, death))


def _causes(
    pool: TaskPool, node: IndexedNode, point: Point, flows: Flows, death: AtomValue
) -> Iterator[Cause]:
    for leaf, _ in node.leaves_at(point):
        if evaluation.leaf_value(pool, leaf, point, flows) is not death:
            continue
        parent, group = leaf.parent_point(point, pool.plan.initial), leaf.group
        if group is None:
            yield (parent, leaf.node, leaf.output)
            continue
        dead = None
        for member in evaluation.members_at(pool, group, parent, flows):
            memory = pool.recall(parent, member)
            if evaluation.member_value(memory, group, flows) <= AtomValue.LOST:
                dead = member
                yield (parent, member, leaf.output)
        if dead is None:
            elements = group.elements
            name = group.family if elements is None else elements.over.source
            yield (parent, name, leaf.output)


def _text(context: StepContext, cause: Cause) -> str:
    return context.plan.output_of(cause[:2], cause[2])


def chain_text(pool: TaskPool, key: Key, flow: int) -> str:
    """Returns why a task will not run, as a sentence back to the task whose end caused it."""
    plan = pool.plan
    parts: list[str] = []
    for here, verdict in _chain(pool, key, flow):
        name = plan.name_of(here)
        if verdict is None:
            parts.append(_outside_text(pool, here))
        elif verdict.cause is None:
            parts.append(_end_text(pool, here, verdict))
        else:
            point, parent, output = verdict.cause
            verb = "will not run: it needs" if len(parts) == 0 else "needs"
            parts.append(f"{name} {verb} {plan.output_of((point, parent), output)}")
    return "; ".join(part for part in parts if part)


def failed_cause(pool: TaskPool, key: Key, flow: int) -> Key | None:
    """Returns the task whose failure is why another will not run; None for other reasons."""
    *_, (cause, verdict) = _chain(pool, key, flow)
    if verdict is None or verdict.kind is not VerdictKind.FINISHED:
        return None
    return None if verdict.ended == SUCCEEDED else cause


def _chain(pool: TaskPool, key: Key, flow: int) -> Iterator[tuple[Key, Verdict | None]]:
    """Yields a task with its verdict, then the task that caused it, and so on to the first."""
    here: Key | None = key
    for _ in range(CHAIN_MAX):
        if here is None:
            return
        memory = pool.recall(*here)
        verdict = None if memory is None else memory.verdicts.get(flow)
        yield here, verdict
        here = None if verdict is None or verdict.cause is None else verdict.cause[:2]


def _outside_text(pool: TaskPool, key: Key) -> str:
    name = pool.plan.name_of(key)
    if pool.plan.final is not None and key[0] > pool.plan.final:
        return f"{name} is beyond the final point"
    node = pool.plan.nodes.get(key[1])
    known = node is None or node.is_at(key[0])
    return "" if known else f"there is no {name}"


def _end_text(pool: TaskPool, key: Key, verdict: Verdict) -> str:
    name = pool.plan.name_of(key)
    if verdict.kind is not VerdictKind.FINISHED:
        return f"{name} was {verdict.kind}"
    if verdict.ended == SUCCEEDED:
        return f"{name} succeeded without it"
    handlers = handlers_of(pool, key, verdict.ended)
    handled = f", handled by {', '.join(handlers[:3])}" if handlers else ""
    return f"{name} {verdict.ended}{handled}"


def handlers_of(pool: TaskPool, key: Key, ended: str) -> list[str]:
    """Returns the tasks that the graph runs because this one ended so."""
    node = pool.plan.nodes.get(key[1])  # None: a reload took it out of the graph
    found = () if node is None else dependents(pool, node, key[0], ended)
    return [pool.plan.name_of((child.point, child.node.name)) for child in found]
