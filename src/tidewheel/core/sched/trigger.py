"""`trigger`: run now, whatever prerequisites, hold or limits say (SEMANTICS §8).

Where a task goes: pooled, into its own flows; never run in an active flow, into all of them,
so that it is not run twice and its children follow; already run, alone, unless its end is why
others are lost or blocked: then again in those flows, which brings them back. Several ids form
a group: what one of them needs of another must be earned, everything else counts as met.
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.effects import CancelTimer, DropXtrigger
from tidewheel.core.sched.events import FlowChoice, TasksTriggered
from tidewheel.core.sched.flows import active_flows, flows_to_trigger, named_flows, new_flow
from tidewheel.core.sched.interventions import forget, refuse_unknown
from tidewheel.core.sched.limit_groups import launch
from tidewheel.core.sched.parentless import join_chain
from tidewheel.core.sched.propagation import merge
from tidewheel.core.sched.reachability import restore
from tidewheel.core.sched.runahead import admit_by_hand
from tidewheel.core.sched.spawn import TIMERS, look_up_in, settle, spawn
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import (
    NO_FLOW,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    VerdictKind,
)


def triggered(context: StepContext, event: TasksTriggered) -> None:
    """Run these tasks, each in the flows that were asked for or that it belongs to."""
    refuse_unknown(context.pool, event.tasks)
    new = frozenset({new_flow(context, event)}) if event.flow is FlowChoice.NEW else None
    flows = new if new is not None else named_flows(context, event.flow)
    group = frozenset(event.tasks)
    flows = _forget_runs(context, group, flows)
    later = event.on_resume and context.pool.run.paused
    for key in sorted(group):
        task = _trigger(context, key, flows, group)
        if task is not None:
            (be_ready if later else run_now)(context, task)
    if event.wait:
        for key in sorted(group):
            context.pool.tasks[key].flow_wait = True
            context.touched.tasks[key] = None


def _forget_runs(
    context: StepContext, group: frozenset[Key], flows: Flows | None
) -> Flows | None:
    """Forgets what the tasks of a group did before in these flows; returns the flows."""
    pool = context.pool
    together = pool.plan.policy.trigger_joins_active_flows
    if together and flows is None:
        pooled = [pool.tasks[key].flows for key in group if key in pool.tasks]
        flows = NO_FLOW.union(*pooled) or None
    again = active_flows(pool) if together and flows is None else flows
    if again and (together or len(group) > 1):
        for key in sorted(group - pool.tasks.keys()):
            forget(context, key, again)
    return flows


def _trigger(
    context: StepContext, key: Key, flows: Flows | None, group: frozenset[Key]
) -> PooledTask | None:
    """Bring a task into the pool and its flows; None if it does not run now."""
    task = context.pool.tasks.get(key)
    if task is None:
        point, name = key
        node = context.pool.node(name)
        chosen = flows_to_trigger(context, node, point) if flows is None else flows
        task = bring(context, node, point, chosen)
    elif flows is not None:
        merge_by_hand(context, task, flows)
    if task.is_active:
        context.notice("trigger", key, f"{context.name_of(key)} is active already")
        return None
    where = ", ".join(map(str, sorted(task.flows))) or "none"
    context.notice("trigger", key, f"{context.name_of(key)} was triggered in flow {where}")
    return None if _wait_for_group(context, task, group, flows or task.flows) else task


def bring(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> PooledTask:
    """Put a task into the pool by hand; verdicts that it would not run are taken back."""
    _acquit(context, node, point, flows)
    return spawn(context, node, point, flows)


def merge_by_hand(context: StepContext, task: PooledTask, flows: Flows) -> None:
    """Lets a task that is pooled join the flows that it is not in."""
    new = flows - task.flows
    if new:
        _acquit(context, task.plan, task.point, new)
        merge(context, task, new)


def _acquit(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    memory = context.pool.recall(point, node.name)
    if memory is not None:
        for flow in sorted(flows & memory.verdicts.keys()):
            if memory.verdicts[flow].kind is not VerdictKind.FINISHED:
                restore(context, node, point, flow)


def run_now(context: StepContext, task: PooledTask) -> None:
    """Submit a task that is not active."""
    _let_go(context, task)
    launch(context, task)


def be_ready(context: StepContext, task: PooledTask) -> None:
    """Makes it ready, to be submitted as soon as the run is resumed."""
    task.held = False
    _let_go(context, task)
    settle(context, task)


def _let_go(context: StepContext, task: PooledTask) -> None:
    drop_waits(context, task)
    task.manual = True
    task.blocked = False
    task.missing = 0
    task.try_number = task.submit_try = 1
    task.stage, task.ended = JobPhase.WAITING, ""
    admit_by_hand(context, task)
    join_chain(context, task)


def drop_waits(context: StepContext, task: PooledTask) -> None:
    """Lets a task wait no longer for timers or xtriggers."""
    if task.admitted:
        for name in task.waits:
            context.effects.append(
                (CancelTimer if name in TIMERS else DropXtrigger)(task.key, name)
            )
        if task.plan.in_sequence:
            context.chains_to_advance.append(task)
    task.waits.clear()


def _wait_for_group(
    context: StepContext, task: PooledTask, group: frozenset[Key], flows: Flows
) -> bool:
    """Satisfy what comes from outside the group; says whether anything is left to wait for."""
    if len(group) == 1:
        return False
    initial = context.plan.initial
    inside, outside = 0, 0
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            parent: Point = leaf.parent_point(task.point, initial)
            members = (leaf.node,) if leaf.group is None else leaf.group.members
            bit = 1 << (base + leaf.number)
            if any((parent, member) in group for member in members):
                inside |= bit
            else:
                outside |= bit
    if not inside:
        return False
    drop_waits(context, task)
    if task.stage is JobPhase.INCOMPLETE:
        task.stage, task.true = JobPhase.WAITING, 0
    task.satisfied_by_hand = True
    task.true |= outside
    look_up_in(context.pool, task, flows)
    if not task.missing:
        return False
    settle(context, task)
    return True
