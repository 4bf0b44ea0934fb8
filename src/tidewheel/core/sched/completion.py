"""Makes outputs and ends of what jobs, timers and xtriggers report (SEMANTICS §3, 4.7, 4.9, 6).

A report counts only for the submission that is current: what an older one says is ignored. A
timer says when a task expires; a task that becomes ready later than that expires at once,
without waiting for the timer's event. An ended task finishes, stays incomplete or is tried
again.

Two more ways to end stand here. *Suicide* (§4.8): the condition applies whenever the task waits
or is incomplete, not only at the moment when it becomes true. It is looked up, not stored: when
an output with a suicide arrow arrives, when a task ends incomplete or is to be tried again, and
when a task is admitted, since an output at a fixed point concerns tasks at points without end.
And a task that ran with `--wait` *flows on* when a flow arrives: its outputs are announced
then, without running it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop
from itertools import islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import Retries
from tidewheel.core.graph.outputs import (
    ENDS,
    EXPIRED,
    FAILED,
    STANDARD,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
)
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events, spawn
from tidewheel.core.sched.dependency_index import IndexedLink, IndexedNode, MappedTasks
from tidewheel.core.sched.dependents import links_from
from tidewheel.core.sched.elements import record_size, size_told, size_told_in, untold
from tidewheel.core.sched.evaluation import suicide_holds
from tidewheel.core.sched.pool import RunStatus, StepContext, TaskPool
from tidewheel.core.sched.propagation import (
    FINISHED,
    complete_output,
    finished_as,
    judge,
    mark_unreachable,
    publish_late,
)
from tidewheel.core.sched.services import before_text, end_of_service
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    Verdict,
    VerdictKind,
)

_ACTIVE, _RUNNING = PoolState.ACTIVE, JobPhase.RUNNING
_SUCCEEDED = events.JobEnd.SUCCEEDED
_STANDARD = frozenset(STANDARD)
NAMED_MAX = 3  # outputs, or tasks that wait for them, in one sentence


def current(context: StepContext, key: Key, submit: int) -> PooledTask | None:
    """Returns the active task that a report is about; None, with a notice, if it is late."""
    task = context.pool.tasks.get(key)
    if task is None or task.submit != submit or task.standing is not _ACTIVE:
        context.notice(
            "late", key, f"a late report of {context.plan.name_of(key)}/{submit} was ignored"
        )
        return None
    return task


def job_submitted(context: StepContext, event: events.JobSubmitted) -> None:
    task = current(context, event.task, event.submit)
    if task is not None:
        task.stage = max(task.stage, JobPhase.SUBMITTED)
        context.touched.tasks[event.task] = None
        complete_output(context, task, SUBMITTED)


def output_made(context: StepContext, event: events.OutputMade) -> None:
    task = current(context, event.task, event.submit)
    if task is None:
        return
    declared = task.plan.definition.outputs
    told = size_told(task.plan, event.output) if task.plan.lists else None
    known = told is not None or any(event.output == name for name, _ in declared)
    if event.output not in _STANDARD and not known:
        name, output = context.plan.name_of(event.task), event.output
        context.notice("unknown output", event.task, f"{name} has no output {output}: ignored")
        return
    context.touched.tasks[event.task] = None
    if event.output == SUBMITTED:
        task.stage = max(task.stage, JobPhase.SUBMITTED)
    else:
        task.stage = JobPhase.RUNNING
        if task.plan.definition.until:
            context.pool.serving[event.task] = None
        if STARTED not in task.outputs:
            complete_output(context, task, STARTED)
    if told is None:
        complete_output(context, task, event.output)
    else:
        tell_size(context, task, event.output, *told)


def tell_size(
    context: StepContext, task: PooledTask, output: str, tasks: MappedTasks, size: int
) -> None:
    """Records how many elements a list has that a task returns; in a flow the first counts."""
    task.outputs[output] = None
    other = frozenset[int]()
    if not task.flow_wait:
        other = record_size(task.memory, output, tasks, size, task.flows)
    if other:
        there = size_told_in(tasks, task.memory, other)
        name, where = context.plan.name_of(task.key), ", ".join(map(str, sorted(other)))
        elements = "1 element" if size == 1 else f"{size} elements"
        text = f"{name} returned {elements} of {tasks.over.value}; flow {where} continues"
        length = "" if there == size else f" of length {there}"
        first = f"the list{length} that it already has"
        context.notice("list changed", task.key, f"{text} with {first}")
    context.touched.tasks[task.key] = context.touched.memory[task.key] = None


def job_ended(context: StepContext, event: events.JobEnded) -> None:
    key, submit, how, _, retries, _ = event  # a name of a tuple is looked up each time
    task = current(context, key, submit)
    if task is None:
        return
    if task.let_go or task.plan.definition.until:
        how = end_of_service(task, event).how
    deactivate(context, task)
    if how is _SUCCEEDED and not (task.plan.lists and _lacks_a_size(context, task)):
        end(context, task, SUCCEEDED)
        return
    started = task.stage is _RUNNING and how is not events.JobEnd.NOT_STARTED
    output = FAILED if started else SUBMIT_FAILED
    killed = how is events.JobEnd.KILLED
    task.held |= killed
    may_retry = not killed or context.plan.policy.killed_keeps_its_retries
    if may_retry and try_again(context, task, output, retries):
        return
    end(context, task, output)


def _lacks_a_size(context: StepContext, task: PooledTask) -> bool:
    """Says whether a task succeeded without the size of a list that others are mapped over:
    then nobody could say which tasks are to run, so it counts as failed."""
    flows = frozenset() if task.flow_wait else task.flows
    lacks = untold(task.plan, task.memory, flows)
    for tasks in lacks:
        name, value = context.plan.name_of(task.key), tasks.over.value
        text = f"{name} did not return the list {value}, so the task counts as failed"
        context.notice("no list", task.key, text)
    return bool(lacks)


def timer_fired(context: StepContext, event: events.TimerFired) -> None:
    if event.task is None:
        run = context.pool.run
        if event.name == spawn.STALL and run.status == RunStatus.STALLED:
            run.stopping = "now"
            context.touched.run = True
            context.notice("stall timeout", None, "stalled for too long")
        return
    task = context.pool.tasks.get(event.task)
    if task is None:
        return
    if event.name == spawn.EXPIRY:
        expire(context, task)
    elif event.name in task.waits:
        spawn.no_longer_waits(context, task, event.name)
        spawn.settle(context, task)


def xtrigger_satisfied(context: StepContext, event: events.XtriggerSatisfied) -> None:
    for key in event.tasks:
        task = context.pool.tasks.get(key)
        if task is not None and event.label in task.waits:
            spawn.no_longer_waits(context, task, event.label)
            spawn.settle(context, task)


def expire(context: StepContext, task: PooledTask) -> None:
    """Expires a task that has no job, whatever it waits for, unless triggered by hand."""
    if task.stage is not JobPhase.WAITING or task.manual:
        return
    context.notice("expired", task.key, f"{context.plan.name_of(task.key)} expired")
    end(context, task, EXPIRED)


def expire_ready(context: StepContext) -> bool:
    """Lets ready tasks expire whose time has passed; says whether any did.

    Where a limit group has room again, only its next tasks are looked at: they are the oldest.
    """
    late = [task for task in context.ready if _is_late(context, task)]
    late += [task for number in context.freed for task in _late_in(context, number)]
    for task in late:
        expire(context, task)
    return bool(late)


def _late_in(context: StepContext, number: int) -> Iterator[PooledTask]:
    """Yields the next tasks of a limit group that are past their expiry; they are unqueued."""
    pool = context.pool
    heap = pool.queues[number].heap
    while heap:
        _, order, key = heap[0]
        task = pool.tasks.get(key)
        if task is None or task.order != order or task.standing is not PoolState.READY:
            heappop(heap)
        elif _is_late(context, task):
            heappop(heap)
            yield task
        else:
            return


def _is_late(context: StepContext, task: PooledTask) -> bool:
    after = task.plan.expiry
    return (
        after is not None
        and task.standing is PoolState.READY
        and context.pool.tasks.get(task.key) is task
        and not task.manual
        and context.now >= spawn.clock_at(context.pool, task.point, after)
    )


def deactivate(context: StepContext, task: PooledTask) -> None:
    """Makes room in the limit group of a task whose job is over."""
    pool, limit = context.pool, task.plan.limit
    queue = pool.queues[limit]
    queue.active -= 1
    if queue.heap:  # else nobody waits for this room; who is ready later in this step takes it
        context.freed[limit] = None
    if pool.serving:
        pool.serving.pop(task.key, None)


def end(context: StepContext, task: PooledTask, output: str) -> None:
    """Ends a task with this output; it will not be tried again."""
    complete_output(context, task, output)
    task.manual = False
    task.ended = output
    conclude(context, task)


def conclude(context: StepContext, task: PooledTask) -> None:
    """Lets an ended task leave the pool if it is complete or in no flow; else it is incomplete.

    Outputs that a complete task did not make die, unless it ran with --wait.
    """
    last = context.pool.run.stop_after
    if last is not None and last == task.key:
        stop_after(context)
    node, flows = task.plan, task.flows
    succeeded = SUCCEEDED in task.outputs
    if flows and not (succeeded and node.success_suffices) and not is_complete(task):
        task.stage = JobPhase.INCOMPLETE
        task.waits.clear()
        ended = f"{task.ended} {before_text(task)}".rstrip()
        what = lacking_text(context.pool, task) or f"{ended}, which nothing handles"
        context.notice("incomplete", task.key, f"{context.plan.name_of(task.key)} {what}")
        spawn.settle(context, task)
        apply_level_to(context, task)
        return
    spawn.leave(context, task)
    if not flows:
        return
    if task.flow_wait:
        task.memory.held_back = tuple(task.outputs)
        context.touched.memory[task.key] = None
        return
    if task.ended == SUCCEEDED:
        verdict = FINISHED
    elif succeeded:
        # In an earlier submission, which need not be in all its flows.
        verdict = FINISHED._replace(ended=task.ended)
    else:
        verdict = finished_as(task.ended)
    judge(context, node, task.key, task.memory, flows, verdict)


def stop_after(context: StepContext) -> None:
    """Begins a clean stop of the run, because the task after which it was to stop has ended."""
    run = context.pool.run
    run.stop_after = None
    run.stopping = "clean"
    context.touched.run = True


def is_complete(task: PooledTask) -> bool:
    """Says whether a task's outputs meet its completion rule.

    Custom outputs count from any of its submissions, standard ones from the current one.
    """
    outputs = task.outputs
    if SUCCEEDED in outputs and task.plan.success_suffices:
        return True
    return task.plan.completion.is_complete({*outputs, *_made_earlier(task)})


def _made_earlier(task: PooledTask) -> Iterator[str]:
    for output, flows in task.memory.made.items():
        if output not in STANDARD and task.flows <= flows:
            yield output


def lacking(task: PooledTask) -> list[frozenset[str]]:
    """Returns sets of outputs, any one of which would have completed a task that succeeded.

    The list is empty if the task did not succeed.
    """
    if task.ended != SUCCEEDED:
        return []
    made = {*task.outputs, *_made_earlier(task)}
    return [one - made for one in task.plan.completion.alternatives if SUCCEEDED in one]


def lacking_text(pool: TaskPool, task: PooledTask) -> str:
    """Returns `succeeded without x, which 1/b waits for`; "" if the task did not succeed."""
    found = lacking(task)
    if not found:
        return ""
    names = " or ".join(" and ".join(sorted(one)) for one in found[:NAMED_MAX])
    more = " or another" if len(found) > NAMED_MAX else ""
    outputs = dict.fromkeys(name for one in found for name in sorted(one))
    waiting = list(_who_waits(pool, task, outputs))
    if not waiting:
        return f"succeeded without {names}{more}, which the graph uses"
    who = waiting[:NAMED_MAX]
    rest = len(waiting) - len(who)
    two_parts = (part for part in (", ".join(who[:-1]), who[-1]) if part)
    told = ", ".join(who) + f" and {rest} more" if rest else " and ".join(two_parts)
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"succeeded without {names}{more}, which {told} {verb} for"


def _who_waits(pool: TaskPool, task: PooledTask, outputs: Iterable[str]) -> Iterator[str]:
    """Yields ids of tasks that the graph lets wait for these outputs, each once; of each link
    only the first points."""
    plan, node = pool.plan, task.plan
    seen = set()
    for output in outputs:
        for link in links_from(node, task.point, output):
            for point in () if link.arrow.suicide else _first_points(pool, link, task.point):
                for target, _ in link.arrow.targets:
                    if (point, target.name) not in seen:
                        seen.add((point, target.name))
                        yield plan.name_of((point, target.name))


def _first_points(pool: TaskPool, link: IndexedLink, parent: Point) -> Iterator[Point]:
    """Yields the first points at which tasks wait along a link; for a fixed atom, only one."""
    if link.leaf.absolute is not None and link.leaf.group is None:
        first = link.arrow.sequence.sequence.first_from(pool.run.start)
        found: Iterable[Point] = () if first is None else (first,)
    else:
        found = islice(pool.plan.child_points(link, parent), NAMED_MAX)
    final = pool.plan.final
    return (point for point in found if final is None or point <= final)


def try_again(
    context: StepContext, task: PooledTask, output: str, had: Retries | None = None
) -> bool:
    """Sends a task back to wait for its retry delay; says whether there was a retry left."""
    retries = task.plan.definition.retries if had is None else had
    if output == FAILED:
        delays, tried = retries.execution, task.try_number
    else:
        assert output == SUBMIT_FAILED
        delays, tried = retries.submission, task.submit_try
    if tried > len(delays):
        return False
    if output == FAILED:
        task.try_number += 1
        task.submit_try = 1
    else:
        task.submit_try += 1
    key = (task.point, task.plan.name)
    at = Instant(context.now + delays[tried - 1])
    task.stage = JobPhase.WAITING
    task.missing = 0
    task.waits[spawn.RETRY] = None
    context.effects.append(events.SetTimer(key, spawn.RETRY, at))
    if task.plan.expiry is not None:
        spawn.set_expiry(context, task)
    context.notice(
        "retry", key, f"{context.plan.name_of(key)} {output}: retry {tried} of {len(delays)}"
    )
    spawn.settle(context, task)
    apply_level_to(context, task)
    return True


BY_SUICIDE = Verdict(VerdictKind.SUICIDE, AtomValue.NOT_TAKEN)


def consider(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    """Removes a task from these flows if its suicide condition holds, even if not spawned."""
    pool = context.pool
    task = pool.tasks.get((point, node.name))
    if task is not None:
        if not flows.isdisjoint(task.flows):
            apply_to(context, task)
        flows -= task.flows
    if point < pool.run.start or not node.is_at(point):
        return
    memory = pool.recall(point, node.name)
    for flow in sorted(flows):
        known = memory is not None and (flow in memory.spawned or flow in memory.verdicts)
        if not known and suicide_holds(pool, node, point, frozenset({flow})):
            mark_unreachable(context, node, point, frozenset({flow}), BY_SUICIDE)


def apply_level_to(context: StepContext, task: PooledTask) -> None:
    """Removes a task as `apply_to` does, if the policy allows that without a new output."""
    if task.plan.suicides and context.plan.policy.suicide_is_a_level:
        apply_to(context, task)


def apply_to(context: StepContext, task: PooledTask) -> None:
    """Removes a pooled task that waits or is incomplete, if its suicide condition holds."""
    if task.manual or task.stage not in (JobPhase.WAITING, JobPhase.INCOMPLETE):
        return
    node = task.plan
    if not suicide_holds(context.pool, node, task.point, task.flows):
        return
    name = context.plan.name_of(task.key)
    context.notice("suicide", task.key, f"{name} was removed by a suicide trigger")
    spawn.leave(context, task)
    mark_unreachable(context, node, task.point, task.flows, BY_SUICIDE)


def flow_on(context: StepContext) -> None:
    """Publishes outputs of tasks run with --wait, in the flows that arrived and their own."""
    arrived, context.flows_arrived = context.flows_arrived, []
    for node, point, flows in arrived:
        memory = context.pool.remember(point, node.name)
        outputs, memory.held_back = memory.held_back, ()
        known = memory.spawned.difference(memory.verdicts)  # `-` keys() would be no frozenset
        memory.spawned |= flows
        context.touched.memory[(point, node.name)] = None
        for output in outputs:
            publish_late(context, node, point, output, known | flows)
        ended = next((output for output in ENDS if output in outputs), SUCCEEDED)
        mark_unreachable(context, node, point, known | flows, finished_as(ended))
