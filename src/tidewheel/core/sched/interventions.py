"""Obeys operators who set, remove, hold, release, kill and poll tasks (SEMANTICS §8).

`remove` takes tasks out of the pool, or forgets that they ran.

`set` completes outputs or satisfies prerequisites by hand. `trigger` has a module of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.findings import nearest
from tidewheel.core.graph.outputs import ENDS, IMPLIED, STANDARD, SUCCEEDED
from tidewheel.core.sched import events
from tidewheel.core.sched.completion import (
    conclude,
    deactivate,
    is_complete,
    stop_after,
    tell_size,
)
from tidewheel.core.sched.dependency_index import (
    IndexedAtom,
    IndexedNode,
    MappedTasks,
)
from tidewheel.core.sched.dependents import Dependent, all_dependents, dependents
from tidewheel.core.sched.elements import (
    flows_there,
    flows_with_its_list,
    refuse_absent_element,
    size_at,
    size_told,
    take_over_size,
)
from tidewheel.core.sched.evaluation import leaf_value, member_value, members_at
from tidewheel.core.sched.flows import (
    active_flows,
    active_flows_of,
    named_flows,
)
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.propagation import (
    complete_output,
    finished_as,
    mark_unreachable,
    merge,
    publish_late,
    reevaluate_dependents,
    restore,
)
from tidewheel.core.sched.spawn import (
    EXPIRY,
    end_checks,
    leave,
    look_again,
    look_up,
    no_longer_missed,
    no_longer_waits,
    settle,
    show_next_blocked,
    spawn,
)
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
from tidewheel.errors import Refused


def held(context: StepContext, event: events.TasksHeld) -> None:
    """Holds tasks; those that are not spawned yet are held when they are."""
    refuse_unknown(context.pool, event.tasks)
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is None:
            context.pool.run.held_tasks[key] = None
            context.touched.run = True
        else:
            task.held = True
            settle(context, task)


def released(context: StepContext, event: events.TasksReleased) -> None:
    for key in event.tasks:
        _release(context, key)


def all_held_after(context: StepContext, event: events.AllHeldAfter) -> None:
    context.pool.run.hold_after = event.point
    context.touched.run = True
    for task in list(context.pool.tasks.values()):
        if task.point > event.point and not task.is_active:
            task.held = True
            settle(context, task)


def all_released(context: StepContext, event: events.AllReleased) -> None:  # noqa: ARG001
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


def killed(context: StepContext, event: events.JobsKilled) -> None:
    """Kills the jobs of tasks and holds these, so that they do not run again by themselves."""
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and task.is_active:
            task.held = True
            context.touched.tasks[key] = None
            context.effects.append(events.KillJob(key, task.submit))


def polled(context: StepContext, event: events.JobsPolled) -> None:
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and task.is_active:
            context.effects.append(events.PollJob(key, task.submit))


REMOVED = Verdict(VerdictKind.REMOVED, AtomValue.LOST)


def removed(context: StepContext, event: events.TasksRemoved) -> None:
    """Takes pooled tasks out of their flows; of others, forgets that they ran.

    Raises Refused for active tasks, unless their jobs are to be killed.
    """
    refuse_unknown(context.pool, event.tasks)
    tasks = context.pool.tasks
    active = [key for key in event.tasks if key in tasks and tasks[key].is_active]
    if active and not event.kill:
        names = ", ".join(map(context.plan.name_of, active))
        raise Refused(
            f"{names}: active; remove with --kill, or wait until no job of these tasks runs"
        )
    for key in event.tasks:
        task = tasks.get(key)
        if task is None:
            forget(context, key, event.flows)
        else:
            _remove(context, task, event)


def _remove(context: StepContext, task: PooledTask, event: events.TasksRemoved) -> None:
    flows = (event.flows & task.flows) if event.flows else task.flows
    if task.is_active and task.flows <= flows:
        context.effects.append(events.KillJob(task.key, task.submit))
        deactivate(context, task)
    _leave_flows(context, task, flows)
    if not event.forget:
        mark_unreachable(context, task.plan, task.point, flows, REMOVED)


def _leave_flows(context: StepContext, task: PooledTask, flows: Flows) -> None:
    """Takes a task out of these flows, and out of the pool if it is in no other."""
    if task.flows <= flows:
        leave(context, task)
        return
    counts = context.pool.flow_counts
    for flow in flows:
        counts[flow] -= 1
        if context.pool.chains.get((task.plan.name, flow)) == task.point:
            del context.pool.chains[(task.plan.name, flow)]
            context.touched.chains[(task.plan.name, flow)] = None
            context.chains_to_start.append((task.plan, flow, task.point))
    task.flows -= flows
    look_again(context, task)
    context.touched.tasks[task.key] = context.touched.memory[task.key] = None
    context.evaluate(task.key, task.flows)


def forget(context: StepContext, key: Key, flows: Flows) -> None:
    """Drops spawn memory, verdict and outputs of a task, so that it can run again in the flows.

    Without flows it does so in all. A verdict that the task is pruned stays, since it does not
    record what happened but follows from other tasks; evaluating the task again may end it.
    """
    pool = context.pool
    point, name = key
    if pool.recall(point, name) is None:
        return
    memory = pool.remember(point, name)
    pruned = {
        flow for flow, verdict in memory.verdicts.items() if verdict.kind is VerdictKind.PRUNED
    }
    flows = (flows or (memory.spawned.union(memory.verdicts))) - pruned
    memory.spawned -= flows
    for flow in flows:
        memory.verdicts.pop(flow, None)
    for output in list(memory.made):
        memory.made[output] -= flows
        if not memory.made[output]:
            del memory.made[output]
    context.touched.memory[key] = None
    node = pool.node(name)
    for tasks in node.lists:
        _forget_elements(context, tasks, point, flows)
    reevaluate_dependents(context, node, point, flows)
    for child in all_dependents(pool, node, point):
        _open_again(context, child, flows)
    context.evaluate(key, flows)


def _forget_elements(
    context: StepContext, tasks: MappedTasks, point: Point, flows: Flows
) -> None:
    """Drops elements of a list that is forgotten, unless they have run or were helped by hand:
    the next list may be shorter."""
    pool = context.pool
    for node in [node for made in tasks.made.values() for node in made.values()]:
        memory = pool.recall(point, node.name)
        if memory is None:
            continue
        gone = flows - flows_there(pool, node, point, flows)
        task = pool.tasks.get((point, node.name))
        if task is not None and _only_waits(task) and gone & task.flows:
            _leave_flows(context, task, gone & task.flows)
            memory.spawned -= gone
        for flow in sorted(gone & memory.verdicts.keys()):
            if memory.verdicts[flow].kind is VerdictKind.PRUNED:
                restore(context, node, point, flow)


def _open_again(context: StepContext, child: Dependent, flows: Flows) -> None:
    """Opens an atom of a child again, unless the child was submitted or helped by hand."""
    pool = context.pool
    task = pool.tasks.get(child.key)
    if task is None or not _only_waits(task):
        return
    # It may have been earned in a flow that is not concerned, and was left since.
    others = frozenset(pool.flows) - flows
    if task.flows.isdisjoint(flows) and (
        leaf_value(pool, child.link.leaf, child.point, others) is AtomValue.TRUE
    ):
        return
    task.true &= ~child.bit
    look_up(pool, task)
    settle(context, task)


def _only_waits(task: PooledTask) -> bool:
    """Says whether a task was neither submitted nor helped by hand."""
    by_hand = task.manual or task.satisfied_by_hand or task.stage is not JobPhase.WAITING
    return not by_hand and not task.outputs and task.submit == task.memory.submits


def refuse_unknown(pool: TaskPool, keys: Iterable[Key]) -> None:
    """Raises Refused, before anything is changed, if a task is not in the graph."""
    for point, name in keys:
        node = pool.plan.nodes.get(name)
        if node is None:
            like = nearest(name, pool.plan.nodes)
            hint = f"; did you mean {like}?" if like else ""
            raise Refused(f"there is no task {name} in this workflow{hint}")
        if not node.is_at(point) and (point, name) not in pool.tasks:
            text = pool.plan.text(point)
            raise Refused(f"there is no {text}/{name}: the graph does not run {name} at {text}")
        if (point, name) not in pool.tasks:
            refuse_absent_element(pool, node, point)


def bring(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> PooledTask:
    """Puts a task into the pool by hand; verdicts that it would not run are taken back."""
    _acquit(context, node, point, flows)
    take_over_size(context, node, point, flows)
    return spawn(context, node, point, flows)


def merge_by_hand(context: StepContext, task: PooledTask, flows: Flows) -> None:
    """Lets a task that is pooled join the flows that it is not in."""
    asked = flows - task.flows
    new = flows_with_its_list(context.pool, task.plan, task, asked)
    if new != asked:
        name = context.plan.name_of(task.key)
        text = (
            f"in the named flow, {name} has another list: it runs there when the {name} that "
            "is in the pool now has ended"
        )
        context.notice("another list", task.key, text)
    if new:
        _acquit(context, task.plan, task.point, new)
        take_over_size(context, task.plan, task.point, new)
        merge(context, task, new)


def _acquit(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    memory = context.pool.recall(point, node.name)
    if memory is not None:
        for flow in sorted(flows & memory.verdicts.keys()):
            if memory.verdicts[flow].kind is not VerdictKind.FINISHED:
                restore(context, node, point, flow)
            else:
                _keep_end(context, node, point, flow)


def _keep_end(context: StepContext, node: IndexedNode, point: Point, flow: int) -> None:
    """Records how a task ended which may now end otherwise: since a reload others may need it,
    and have taken it for made."""
    memory = context.pool.remember(point, node.name)
    ended = memory.verdicts[flow].ended
    for output in (*IMPLIED.get(ended, ()), ended):
        made = memory.made.get(output, NO_FLOW)
        if output in node.heard and flow not in made:
            memory.made[output] = made | {flow}
            context.touched.memory[(point, node.name)] = None


def drop_waits(context: StepContext, task: PooledTask) -> None:
    """Lets a task wait no longer for timers or xtriggers."""
    if task.admitted:
        end_checks(context, task)
        if task.plan.in_sequence:
            context.chains_to_advance.append(task)
    task.waits.clear()


def outputs_set(context: StepContext, event: events.OutputsSet) -> None:
    """Completes outputs of a task by hand; its children follow as if a job had made them."""
    refuse_unknown(context.pool, (event.task,))
    node = context.pool.node(event.task[1])
    memory = context.pool.recall(*event.task)
    outputs = event.outputs or completing(node, () if memory is None else memory.made)
    if node.lists:
        _refuse_without_size(context.pool, node, event.task, outputs)
    flows = named_flows(context, event.flow)
    task = context.pool.tasks.get(event.task)
    if task is None:
        _set_absent(context, node, event, outputs, flows)
    else:
        merge_by_hand(context, task, flows or NO_FLOW)
        _set_pooled(context, task, outputs)


def _refuse_without_size(
    pool: TaskPool, node: IndexedNode, key: Key, outputs: tuple[str, ...]
) -> None:
    """Refuses a success by hand while nobody has said how many elements the lists have."""
    told = [found[0] for output in outputs if (found := size_told(node, output)) is not None]
    flows = frozenset(pool.flows)
    for tasks in node.lists if SUCCEEDED in outputs else ():
        if tasks not in told and size_at(pool, tasks, key[0], flows) is None:
            name, value = pool.plan.name_of(key), tasks.over.value
            word = pool.plan.word_of(key)
            raise Refused(
                f"{next(iter(tasks.templates))} needs the list {value}, which {name} has not "
                f"returned; give the list first (set {word} --value '{value}=[…]')"
            )


def completing(node: IndexedNode, made: Collection[str] = ()) -> tuple[str, ...]:
    """Returns the outputs to set if none is named: the first alternative that completes a task.

    Of several ways to succeed it is the one of which a custom output was made already.
    """
    alternatives = node.completion.alternatives
    first = alternatives[0]
    own = frozenset(made) - frozenset(STANDARD)
    begun = (one for one in alternatives if SUCCEEDED in one and one & own)
    return tuple(sorted(next(begun, first) if SUCCEEDED in first else first))


def _set_pooled(context: StepContext, task: PooledTask, outputs: tuple[str, ...]) -> None:
    before = set(task.outputs)
    for output in outputs:
        told = size_told(task.plan, output)
        if told is not None:
            tell_size(context, task, output, *told)
        else:
            complete_output(context, task, output)
            context.touched.tasks[task.key] = None
    added = [output for output in task.outputs if output not in before]
    task.by_hand = tuple(dict.fromkeys((*task.by_hand, *added)))
    if task.is_active:
        return
    ended = next((output for output in reversed(outputs) if output in ENDS), "")
    if task.flows and is_complete(task):
        # It may have succeeded before a flow arrived, and then not in that one.
        succeeded = SUCCEEDED in task.outputs and (
            task.flows <= task.memory.made.get(SUCCEEDED, task.flows)
        )
        task.ended = SUCCEEDED if succeeded else outputs[-1]
        conclude(context, task)
    elif ended and task.stage is JobPhase.WAITING:
        _end_by_hand(context, task, ended)


def _end_by_hand(context: StepContext, task: PooledTask, ended: str) -> None:
    """Ends a task that waits, for a retry or for anything else, with an output that ends it but
    does not complete it: it will not run by itself any more."""
    drop_waits(context, task)
    if task.plan.expiry is not None:
        context.effects.append(events.CancelTimer(task.key, EXPIRY))
    task.manual, task.ended = False, ended
    conclude(context, task)


def _set_absent(
    context: StepContext,
    node: IndexedNode,
    event: events.OutputsSet,
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
    no_longer_missed(context, key)
    if event.wait:
        memory.held_back = tuple(made)
        memory.spawned |= flows
        return
    for output in made:
        publish_late(context, node, key[0], output, flows)
    for flow in sorted(flows):
        earlier = _made_before(memory, flow)
        if node.completion.is_complete(earlier | made.keys()):
            if context.pool.run.stop_after == key:
                stop_after(context)
            memory.spawned |= {flow}
            ended = SUCCEEDED if SUCCEEDED in earlier | made.keys() else outputs[-1]
            mark_unreachable(context, node, key[0], frozenset({flow}), finished_as(ended))


def _made_before(memory: TaskHistory, flow: int) -> set[str]:
    """Returns the outputs that a task made in a flow, even those that nothing waits for."""
    found = {output for output, where in memory.made.items() if flow in where}
    verdict = memory.verdicts.get(flow)
    if verdict is not None and verdict.ended:
        found |= {*IMPLIED.get(verdict.ended, ()), verdict.ended}
    return found


def _flows_that_wait(
    pool: TaskPool, node: IndexedNode, key: Key, outputs: tuple[str, ...]
) -> Flows:
    """Returns the flows of pooled children that wait for one of these outputs."""
    found: Flows = NO_FLOW
    for output in outputs:
        for child in dependents(pool, node, key[0], output):
            task = pool.tasks.get(child.key)
            if task is not None and task.missing and not task.true & child.bit:
                found |= task.flows
    return found


def prerequisites_set(context: StepContext, event: events.PrerequisitesSet) -> None:
    """Satisfies prerequisites by hand, spawning the task if needed."""
    refuse_unknown(context.pool, (event.task,))
    pool = context.pool
    point, name = event.task
    node = pool.node(name)
    flows = named_flows(context, event.flow)
    task = pool.tasks.get(event.task)
    if task is None:
        chosen = active_flows_of(pool, node, point) if flows is None else flows
        task = bring(context, node, point, chosen)
    else:
        merge_by_hand(context, task, flows or NO_FLOW)
    if task.stage is not JobPhase.WAITING:
        return
    task.satisfied_by_hand = True
    show_next_blocked(context, task)
    task.blocked = False
    if event.everything:
        drop_waits(context, task)
        task.missing = 0
    else:
        _satisfy_named(context, task, event)
    settle(context, task)


def _satisfy_named(
    context: StepContext, task: PooledTask, event: events.PrerequisitesSet
) -> None:
    for label in event.xtriggers:
        if label in task.waits:
            no_longer_waits(context, task, label)
            if task.admitted:
                context.effects.append(events.DropXtrigger(task.key, label))
    wanted = set(event.atoms)
    for leaf, bit in task.plan.leaves_at(task.point):
        parent = leaf.parent_point(task.point, context.plan.initial)
        if _is_wanted(context.pool, task, leaf, parent, wanted):
            task.true |= bit
    if task.missing:
        look_up(context.pool, task)


def _is_wanted(
    pool: TaskPool,
    task: PooledTask,
    leaf: IndexedAtom,
    parent: Point,
    wanted: set[tuple[Point, str, str]],
) -> bool:
    """Says whether a command names an atom; a family's, if it names the members that lack."""
    if leaf.group is None:
        return (parent, leaf.node, leaf.output) in wanted
    met = (
        any((parent, member, output) in wanted for output in leaf.group.outputs)
        or member_value(pool.recall(parent, member), leaf.group, task.flows) is AtomValue.TRUE
        for member in members_at(pool, leaf.group, parent, task.flows)
    )
    return all(met) if leaf.group.every else any(met)
