"""`remove`: take tasks out of the pool, or forget that they ran (SEMANTICS §8)."""

from __future__ import annotations

from tidewheel.core.sched.children import Child, all_children
from tidewheel.core.sched.conditions import leaf_value
from tidewheel.core.sched.deaths import condemn, reassess
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.effects import KillJob
from tidewheel.core.sched.ending import deactivate
from tidewheel.core.sched.events import Remove
from tidewheel.core.sched.ids import refuse_unknown
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.spawning import leave, look_up, settle
from tidewheel.core.sched.states import (
    Flows,
    Key,
    Memory,
    Stage,
    Task,
    Value,
    Verdict,
    VerdictKind,
)
from tidewheel.errors import Refused

REMOVED = Verdict(VerdictKind.REMOVED, Value.LOST)


def removed(draft: Draft, event: Remove) -> None:
    """Pooled tasks leave with a verdict; of others it is forgotten that they ran."""
    refuse_unknown(draft.pool, event.tasks)
    tasks = draft.pool.tasks
    active = [key for key in event.tasks if key in tasks and tasks[key].is_active]
    if active and not event.kill:
        names = ", ".join(map(draft.name_of, active))
        raise Refused(f"{names}: active; remove with --kill, or wait until it has ended")
    for key in event.tasks:
        task = tasks.get(key)
        if task is None:
            forget(draft, key, event.flows)
        else:
            _remove(draft, task, event)


def _remove(draft: Draft, task: Task, event: Remove) -> None:
    flows = (event.flows & task.flows) if event.flows else task.flows
    left = task.flows - flows
    node, point = task.plan, task.point
    if left:
        _leave_flows(draft, task, flows)
    else:
        if task.is_active:
            draft.effects.append(KillJob(task.key, task.submit))
            deactivate(draft, task)
        leave(draft, task)
    if not event.forget:
        condemn(draft, node, point, flows, REMOVED)


def _leave_flows(draft: Draft, task: Task, flows: Flows) -> None:
    counts = draft.pool.flow_counts
    for flow in flows:
        counts[flow] -= 1
        if draft.pool.chains.get((task.plan.name, flow)) == task.point:
            del draft.pool.chains[(task.plan.name, flow)]
            draft.touched.chains[(task.plan.name, flow)] = None
            draft.to_start.append((task.plan, flow, task.point))
    task.flows -= flows
    draft.touched.tasks[task.key] = None
    draft.to_judge.extend((task.key, flow) for flow in task.flows)


def forget(draft: Draft, key: Key, flows: Flows) -> None:
    """Spawn memory, verdict and outputs go, so that it can run again in those flows.

    That it is pruned is no memory but a conclusion, which stands until it is drawn again.
    """
    pool = draft.pool
    point, name = key
    if pool.recall(point, name) is None:
        return
    memory = pool.remember(point, name)
    flows = (flows or (memory.spawned | memory.verdicts.keys())) - _pruned_in(memory)
    memory.spawned -= flows
    for flow in flows:
        memory.verdicts.pop(flow, None)
    for output in list(memory.made):
        memory.made[output] -= flows
        if not memory.made[output]:
            del memory.made[output]
    draft.touched.memory[key] = None
    node = pool.node(name)
    reassess(draft, node, point, flows)
    for child in all_children(pool, node, point):
        _open_again(draft, child, flows)
    draft.to_judge.extend((key, flow) for flow in flows)


def _pruned_in(memory: Memory) -> Flows:
    return frozenset(
        flow for flow, verdict in memory.verdicts.items() if verdict.kind is VerdictKind.PRUNED
    )


def _open_again(draft: Draft, child: Child, flows: Flows) -> None:
    """A natural atom of a child that was not submitted is open again."""
    pool = draft.pool
    task = pool.tasks.get(child.key)
    if task is None or task.stage is not Stage.WAITING:
        return
    by_hand = task.manual or task.satisfied_by_hand
    submitted = task.outputs or task.submit != task.memory.submits
    if by_hand or submitted or _has_it_from_elsewhere(pool, task, child, flows):
        return
    task.true &= ~child.bit
    look_up(pool, task)
    settle(draft, task)


def _has_it_from_elsewhere(pool: Pool, task: Task, child: Child, flows: Flows) -> bool:
    """Whether an atom was earned in a flow that is not concerned, and was left since."""
    others = frozenset(pool.flows) - flows
    return task.flows.isdisjoint(flows) and (
        leaf_value(pool, child.link.leaf, child.point, others) is Value.TRUE
    )
