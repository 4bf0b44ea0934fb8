"""Runs tasks now, because an operator triggers them (SEMANTICS §8).

A task runs whatever prerequisites, hold or limits say. One that is pooled runs in its own
flows. One that has not run in an active flow runs in all active flows, so that it is not run
twice and its children follow. One that has run there runs alone, unless its end is why others
are lost or blocked: then it runs again in those flows, which brings the others back.

Ids that are connected form a *group*: one needs an output of another, or is served by it. What
a task needs of its group must be made by jobs of the group: what these tasks did before is
forgotten; everything else that it needs counts as met. So that it hears of these jobs, a group
runs in one set of flows, those in which any of its tasks would run without the others. A task
of a group that is active is not run again: what its job has made, counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched import events
from tidewheel.core.sched.dependency_index import IndexedAtom, names_of
from tidewheel.core.sched.elements import refuse_to_forget_list
from tidewheel.core.sched.flows import (
    existing_flows,
    flows_to_trigger,
    named_flows,
)
from tidewheel.core.sched.interventions import (
    bring,
    drop_waits,
    forget,
    merge_by_hand,
    refuse_unknown,
)
from tidewheel.core.sched.limits import admit_by_hand, join_chain, launch
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.services import has_service, services_of, services_to_run
from tidewheel.core.sched.spawn import leave, look_up_in, settle, show_next_blocked
from tidewheel.core.sched.task_state import NO_FLOW, Flows, JobPhase, Key, PooledTask

Group = frozenset[Key]


def triggered(context: StepContext, event: events.TasksTriggered) -> None:
    """Runs these tasks, each in the flows that were asked for or that it belongs to."""
    pool = context.pool
    refuse_unknown(pool, event.tasks)
    keys = frozenset((*event.tasks, *services_to_run(pool, event.tasks)))
    groups = _groups(pool, keys)
    flows = _flows_of(context, groups, event.flow)
    old = dict(_runs_to_forget(pool, groups, flows))
    for (point, name), where in old.items():
        refuse_to_forget_list(pool, pool.node(name), point, where)
    named = named_flows(context, event.flow, event) or NO_FLOW
    anew = frozenset(key for key in keys if not _is_active(pool, key))
    for key, where in old.items():
        _forget_run(context, key, where)
    later = event.on_resume and pool.run.paused
    for key in sorted(keys):
        task = _trigger(context, key, named | flows[key], groups[key], anew)
        if task is not None:
            if later:
                task.held = False
            _let_go(context, task)
            (settle if later else launch)(context, task)
    if event.wait:
        for key in sorted(keys):
            pool.tasks[key].flow_wait = True
            context.touched.tasks[key] = None


def _groups(pool: TaskPool, keys: Group) -> dict[Key, Group]:
    """Returns the group of each of these tasks: those with which it is connected."""
    found = {key: frozenset({key}) for key in keys}
    served = has_service(pool, keys)
    for key in sorted(keys):
        near = _parents(pool, key, keys)
        if served:
            near |= keys.intersection(services_of(pool, key))
        together = frozenset({key}).union(*(found[one] for one in (key, *near)))
        found.update(dict.fromkeys(together, together))
    return found


def _parents(pool: TaskPool, key: Key, keys: Group) -> Group:
    """Returns those of the tasks of which one needs an output."""
    point, name = key
    return frozenset(
        one
        for leaf, _ in pool.node(name).leaves_at(point)
        for one in _asked(pool, leaf, point)
        if one in keys
    )


def _asked(pool: TaskPool, leaf: IndexedAtom, point: Point) -> Iterator[Key]:
    parent = leaf.parent_point(point, pool.plan.initial)
    return ((parent, member) for member in names_of(leaf))


def _flows_of(
    context: StepContext, groups: Mapping[Key, Group], choice: events.FlowChoice | Flows
) -> dict[Key, Flows]:
    """Returns the flows in which each task is to run, without one that is to be begun."""
    pool = context.pool
    named = existing_flows(pool, choice)
    if choice is events.FlowChoice.NONE:
        return dict.fromkeys(groups, NO_FLOW)
    if named is not None:
        return {key: named | _flows_that_wait(pool, group) for key, group in groups.items()}
    own = {
        key: pool.tasks[key].flows
        if key in pool.tasks
        else flows_to_trigger(context, pool.node(key[1]), key[0])
        for key in groups
    }
    if pool.plan.policy.trigger_joins_active_flows:
        pooled = NO_FLOW.union(*(own[key] for key in groups if key in pool.tasks))
        return dict.fromkeys(groups, pooled) if pooled else own
    return {
        key: own[key]
        if _is_before_start(pool, key)
        else NO_FLOW.union(*(own[one] for one in group))
        for key, group in groups.items()
    }


def _flows_that_wait(pool: TaskPool, group: Group) -> Flows:
    """Returns the flows in which tasks of a group wait that have not run: what others of the
    group made there counts for them, whichever flow is named."""
    if len(group) == 1:
        return NO_FLOW
    pooled = (pool.tasks[key] for key in group if key in pool.tasks)
    waiting = (one for one in pooled if one.stage is JobPhase.WAITING and not one.outputs)
    return NO_FLOW.union(*(one.flows for one in waiting))


def _is_before_start(pool: TaskPool, key: Key) -> bool:
    return key[0] < pool.run.start


def _runs_to_forget(
    pool: TaskPool, groups: Mapping[Key, Group], flows: Mapping[Key, Flows]
) -> Iterator[tuple[Key, Flows]]:
    """Yields tasks with the flows in which it is to be forgotten what they did."""
    together = pool.plan.policy.trigger_joins_active_flows
    for key, group in sorted(groups.items()):
        task, where = pool.tasks.get(key), flows[key]
        if len(group) == 1 and (task is not None or not together):
            continue
        if task is not None:
            anew = _runs_anew(pool, task, group, where)
            where = where | task.flows if anew else where - task.flows
        if where:
            yield key, where


def _runs_anew(pool: TaskPool, task: PooledTask, group: Group, flows: Flows) -> bool:
    """Says whether a pooled task has made outputs in these flows for which another one of its
    group may wait, and its job is over."""
    if task.is_active or not task.outputs or task.flows.isdisjoint(flows):
        return False
    return any(task.key in _parents(pool, one, group) for one in group)


def _is_active(pool: TaskPool, key: Key) -> bool:
    return key in pool.tasks and pool.tasks[key].is_active


def _forget_run(context: StepContext, key: Key, flows: Flows) -> None:
    """Forgets what a task did in these flows; one that is pooled there begins anew."""
    task = context.pool.tasks.get(key)
    if task is None or task.flows.isdisjoint(flows):
        forget(context, key, flows)
        return
    leave(context, task)
    forget(context, key, flows)
    bring(context, task.plan, task.point, task.flows)


def _trigger(
    context: StepContext, key: Key, flows: Flows, group: Group, anew: Group
) -> PooledTask | None:
    """Brings a task into the pool and its flows; returns None if it does not run now."""
    task = context.pool.tasks.get(key)
    if task is None:
        task = bring(context, context.pool.node(key[1]), key[0], flows)
    else:
        merge_by_hand(context, task, flows)
    if task.is_active:
        context.notice("trigger", key, f"{context.plan.name_of(key)} is active already")
        return None
    where = ", ".join(map(str, sorted(task.flows))) or "none"
    text = f"{context.plan.name_of(key)} was triggered{context.plan.in_flow(where)}"
    context.notice("trigger", key, text)
    known = flows & task.flows or task.flows
    return None if _wait_for_group(context, task, group, anew, known) else task


def _let_go(context: StepContext, task: PooledTask) -> None:
    """Takes away what keeps a task from being submitted."""
    drop_waits(context, task)
    task.manual = True
    show_next_blocked(context, task)
    task.blocked = False
    task.missing = 0
    task.try_number = task.submit_try = 1
    task.stage, task.ended = JobPhase.WAITING, ""
    admit_by_hand(context, task)
    join_chain(context, task)


def _wait_for_group(
    context: StepContext, task: PooledTask, group: Group, anew: Group, flows: Flows
) -> bool:
    """Satisfies what a task needs from outside its group; says whether it waits for the group:
    of those who run anew, for what their next jobs make."""
    pool = context.pool
    inside, outside, made = 0, 0, 0
    for leaf, bit in task.plan.leaves_at(task.point):
        asked = group.intersection(_asked(pool, leaf, task.point))
        if not asked:
            outside |= bit
            continue
        inside |= bit
        # What a task makes that is active alone is on no record but its own.
        if leaf.group is None and any(
            leaf.output in pool.tasks[one].outputs for one in asked - anew
        ):
            made |= bit
    if not inside:
        return False
    drop_waits(context, task)
    if task.stage is JobPhase.INCOMPLETE:
        task.stage, task.true = JobPhase.WAITING, 0
    task.satisfied_by_hand = True
    task.true = task.true & ~inside | outside | made
    task.heard = tuple(one for one in task.heard if one[:2] not in group & anew)
    if not task.heard:
        pool.hearing.pop(task.key, None)
    look_up_in(pool, task, flows if task.outputs else task.flows)
    if not task.missing:
        return False
    task.held = False
    show_next_blocked(context, task)
    task.blocked = False
    settle(context, task)
    return True
