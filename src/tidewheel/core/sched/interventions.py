"""Operators hold, release, kill, poll and remove single tasks (SEMANTICS §8).

`remove` takes tasks out of the pool, or forgets that they ran. `refuse_unknown` refuses tasks
that no intervention may name.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.graph.suggestions import nearest
from tidewheel.core.sched.completion import deactivate
from tidewheel.core.sched.dependents import Dependent, all_dependents
from tidewheel.core.sched.effects import KillJob, PollJob
from tidewheel.core.sched.evaluation import leaf_value
from tidewheel.core.sched.events import (
    AllHeldAfter,
    AllReleased,
    JobsKilled,
    JobsPolled,
    TasksHeld,
    TasksReleased,
    TasksRemoved,
)
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.reachability import mark_unreachable, reevaluate_dependents
from tidewheel.core.sched.spawn import leave, look_up, settle
from tidewheel.core.sched.step_context import StepContext
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    TaskHistory,
    Verdict,
    VerdictKind,
)
from tidewheel.errors import Refused


def held(context: StepContext, event: TasksHeld) -> None:
    """Tasks that are not spawned yet are held when they are."""
    refuse_unknown(context.pool, event.tasks)
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is None:
            context.pool.run.held_tasks[key] = None
            context.touched.run = True
        else:
            task.held = True
            settle(context, task)


def released(context: StepContext, event: TasksReleased) -> None:
    for key in event.tasks:
        _release(context, key)


def all_held_after(context: StepContext, event: AllHeldAfter) -> None:
    context.pool.run.hold_after = event.point
    context.touched.run = True
    for task in list(context.pool.tasks.values()):
        if task.point > event.point and not task.is_active:
            task.held = True
            settle(context, task)


def all_released(context: StepContext, event: AllReleased) -> None:  # noqa: ARG001
    run = context.pool.run
    run.hold_after = None
    context.touched.run = True
    for key in [*run.held_tasks, *context.pool.tasks]:
        _release(context, key)


def _release(context: StepContext, key: Key) -> None:
    run = context.pool.run
    if key in run.held_tasks:
        del run.held_tasks[key]
        context.touched.run = True
    task = context.pool.tasks.get(key)
    if task is not None and task.held:
        task.held = False
        settle(context, task)


def killed(context: StepContext, event: JobsKilled) -> None:
    """The job is killed; the task is held, so that it does not run again by itself."""
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and task.is_active:
            task.held = True
            context.touched.tasks[key] = None
            context.effects.append(KillJob(key, task.submit))


def polled(context: StepContext, event: JobsPolled) -> None:
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and task.is_active:
            context.effects.append(PollJob(key, task.submit))


REMOVED = Verdict(VerdictKind.REMOVED, AtomValue.LOST)


def removed(context: StepContext, event: TasksRemoved) -> None:
    """Pooled tasks leave with a verdict; of others it is forgotten that they ran."""
    refuse_unknown(context.pool, event.tasks)
    tasks = context.pool.tasks
    active = [key for key in event.tasks if key in tasks and tasks[key].is_active]
    if active and not event.kill:
        names = ", ".join(map(context.name_of, active))
        raise Refused(f"{names}: active; remove with --kill, or wait until it has ended")
    for key in event.tasks:
        task = tasks.get(key)
        if task is None:
            forget(context, key, event.flows)
        else:
            _remove(context, task, event)


def _remove(context: StepContext, task: PooledTask, event: TasksRemoved) -> None:
    flows = (event.flows & task.flows) if event.flows else task.flows
    left = task.flows - flows
    node, point = task.plan, task.point
    if left:
        _leave_flows(context, task, flows)
    else:
        if task.is_active:
            context.effects.append(KillJob(task.key, task.submit))
            deactivate(context, task)
        leave(context, task)
    if not event.forget:
        mark_unreachable(context, node, point, flows, REMOVED)


def _leave_flows(context: StepContext, task: PooledTask, flows: Flows) -> None:
    counts = context.pool.flow_counts
    for flow in flows:
        counts[flow] -= 1
        if context.pool.chains.get((task.plan.name, flow)) == task.point:
            del context.pool.chains[(task.plan.name, flow)]
            context.touched.chains[(task.plan.name, flow)] = None
            context.chains_to_start.append((task.plan, flow, task.point))
    task.flows -= flows
    context.touched.tasks[task.key] = None
    context.evaluate(task.key, task.flows)


def forget(context: StepContext, key: Key, flows: Flows) -> None:
    """Spawn memory, verdict and outputs go, so that it can run again in those flows.

    That it is pruned is no memory but a conclusion, which stands until it is drawn again.
    """
    pool = context.pool
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
    context.touched.memory[key] = None
    node = pool.node(name)
    reevaluate_dependents(context, node, point, flows)
    for child in all_dependents(pool, node, point):
        _open_again(context, child, flows)
    context.evaluate(key, flows)


def _pruned_in(memory: TaskHistory) -> Flows:
    return frozenset(
        flow for flow, verdict in memory.verdicts.items() if verdict.kind is VerdictKind.PRUNED
    )


def _open_again(context: StepContext, child: Dependent, flows: Flows) -> None:
    """A natural atom of a child that was not submitted is open again."""
    pool = context.pool
    task = pool.tasks.get(child.key)
    if task is None or task.stage is not JobPhase.WAITING:
        return
    by_hand = task.manual or task.satisfied_by_hand
    submitted = task.outputs or task.submit != task.memory.submits
    if by_hand or submitted or _has_it_from_elsewhere(pool, task, child, flows):
        return
    task.true &= ~child.bit
    look_up(pool, task)
    settle(context, task)


def _has_it_from_elsewhere(
    pool: TaskPool, task: PooledTask, child: Dependent, flows: Flows
) -> bool:
    """Says whether an atom was earned in a flow that is not concerned, and was left since."""
    others = frozenset(pool.flows) - flows
    return task.flows.isdisjoint(flows) and (
        leaf_value(pool, child.link.leaf, child.point, others) is AtomValue.TRUE
    )


def refuse_unknown(pool: TaskPool, keys: Iterable[Key]) -> None:
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
