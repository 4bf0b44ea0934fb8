"""Operators hold, release, kill, poll and remove single tasks (SEMANTICS §8).

`remove` takes tasks out of the pool, or forgets that they ran. `refuse_unknown` refuses tasks
that no intervention may name.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.graph.suggestions import nearest
from tidewheel.core.sched.completion import deactivate
from tidewheel.core.sched.dependents import Child, all_children
from tidewheel.core.sched.effects import KillJob, PollJob
from tidewheel.core.sched.evaluation import leaf_value
from tidewheel.core.sched.events import Hold, HoldAfter, Kill, Poll, Release, ReleaseAll, Remove
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.reachability import condemn, reassess
from tidewheel.core.sched.spawn import leave, look_up, settle
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import (
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


def held(draft: Draft, event: Hold) -> None:
    """Tasks that are not spawned yet are held when they are."""
    refuse_unknown(draft.pool, event.tasks)
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is None:
            draft.pool.run.held_tasks[key] = None
            draft.touched.run = True
        else:
            task.held = True
            settle(draft, task)


def released(draft: Draft, event: Release) -> None:
    for key in event.tasks:
        _release(draft, key)


def all_held_after(draft: Draft, event: HoldAfter) -> None:
    draft.pool.run.hold_after = event.point
    draft.touched.run = True
    for task in list(draft.pool.tasks.values()):
        if task.point > event.point and not task.is_active:
            task.held = True
            settle(draft, task)


def all_released(draft: Draft, event: ReleaseAll) -> None:  # noqa: ARG001
    run = draft.pool.run
    run.hold_after = None
    draft.touched.run = True
    for key in [*run.held_tasks, *draft.pool.tasks]:
        _release(draft, key)


def _release(draft: Draft, key: Key) -> None:
    run = draft.pool.run
    if key in run.held_tasks:
        del run.held_tasks[key]
        draft.touched.run = True
    task = draft.pool.tasks.get(key)
    if task is not None and task.held:
        task.held = False
        settle(draft, task)


def killed(draft: Draft, event: Kill) -> None:
    """The job is killed; the task is held, so that it does not run again by itself."""
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is not None and task.is_active:
            task.held = True
            draft.touched.tasks[key] = None
            draft.effects.append(KillJob(key, task.submit))


def polled(draft: Draft, event: Poll) -> None:
    for key in event.tasks:
        task = draft.pool.tasks.get(key)
        if task is not None and task.is_active:
            draft.effects.append(PollJob(key, task.submit))


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


def refuse_unknown(pool: Pool, keys: Iterable[Key]) -> None:
    """Raise, before anything is changed, if a task is not in the graph."""
    for point, name in keys:
        node = pool.plan.nodes.get(name)
        if node is None:
            like = nearest(name, pool.plan.nodes)
            hint = f"; did you mean {like}?" if like else ""
            raise Refused(f"there is no task {name} in this workflow{hint}")
        if not node.is_at(point) and (point, name) not in pool.tasks:
            text = pool.plan.text(point)
            raise Refused(f"{name} is on no sequence at {text}: there is no {text}/{name}")
