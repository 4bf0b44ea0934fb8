"""An ended task finishes, stays incomplete or is tried again (SEMANTICS §3, 4.7).

Two more ways to end stand here. *Suicide* (§4.8): the condition is a level, it applies whenever
the task waits or is incomplete. It is looked up, not stored: when an output with a suicide
arrow arrives, when a task ends incomplete or is to be tried again, and, as what a fixed point
has made concerns points without end, when it is admitted. And a task that ran with `--wait`
*flows on*, without running again, when a flow arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import Retries
from tidewheel.core.graph.outputs import ENDS, FAILED, STANDARD, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import IndexedLink, IndexedNode
from tidewheel.core.sched.dependents import links_from
from tidewheel.core.sched.evaluation import suicide_holds
from tidewheel.core.sched.events import SetTimer
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.propagation import complete_output, publish
from tidewheel.core.sched.reachability import FINISHED, finished_as, mark_unreachable
from tidewheel.core.sched.spawn import RETRY, leave, set_expiry, settle
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    Verdict,
    VerdictKind,
)

NAMED_MAX = 3  # outputs, or tasks that wait for them, in one sentence


def deactivate(context: StepContext, task: PooledTask) -> None:
    """Makes room in the limit group of a task whose job is over."""
    limit = task.plan.limit
    context.pool.queues[limit].active -= 1
    context.freed[limit] = None


def end(context: StepContext, task: PooledTask, output: str) -> None:
    """Ends a task with this output; it will not be tried again."""
    complete_output(context, task, output)
    task.manual = False
    task.ended = output
    conclude(context, task)


def conclude(context: StepContext, task: PooledTask) -> None:
    """Lets an ended task leave if it is complete or runs alone; else it stays as incomplete."""
    stop_after(context, task.key)
    if not task.flows:
        leave(context, task)
    elif is_complete(task):
        finish(context, task)
    else:
        task.stage = JobPhase.INCOMPLETE
        task.waits.clear()
        what = lacking_text(context.pool, task) or f"{task.ended}, which nothing handles"
        context.notice("incomplete", task.key, f"{context.name_of(task.key)} {what}")
        settle(context, task)
        apply_level_to(context, task)


def stop_after(context: StepContext, key: Key) -> None:
    """Stops the run if it was to stop after this task, which has ended, however it did."""
    run = context.pool.run
    if run.stop_after == key:
        run.stop_after = None
        run.stopping = "clean"
        context.touched.run = True


def is_complete(task: PooledTask) -> bool:
    """Says whether a task's outputs suffice; custom ones count from any submission."""
    outputs = task.outputs
    if SUCCEEDED in outputs and task.plan.success_suffices:
        return True
    return task.plan.completion.is_complete({*outputs, *_made_earlier(task)})


def _made_earlier(task: PooledTask) -> Iterator[str]:
    for output, flows in task.memory.made.items():
        if output not in STANDARD and task.flows <= flows:
            yield output


def lacking(task: PooledTask) -> list[frozenset[str]]:
    """Returns what a task that succeeded would have had to make besides: any of these."""
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
    told = ", ".join(who) + f" and {rest} more" if rest else " and ".join(_two_parts(who))
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"succeeded without {names}{more}, which {told} {verb} for"


def _two_parts(names: list[str]) -> list[str]:
    return [part for part in (", ".join(names[:-1]), names[-1]) if part]


def _who_waits(pool: TaskPool, task: PooledTask, outputs: Iterable[str]) -> Iterator[str]:
    """Yields the tasks of the run that these outputs lead to, each once."""
    plan, node = pool.plan, task.plan
    seen = set()
    for output in outputs:
        for link in links_from(node, task.point, output):
            for point in () if link.arrow.suicide else _first_points(pool, link, task.point):
                for target, _ in link.arrow.targets:
                    if (point, target.name) not in seen:
                        seen.add((point, target.name))
                        yield f"{plan.text(point)}/{target.name}"


def _first_points(pool: TaskPool, link: IndexedLink, parent: Point) -> Iterator[Point]:
    """Yields the first points of the run to which a link leads; of a fixed point, only one."""
    if link.leaf.absolute is not None and link.leaf.group is None:
        first = link.arrow.sequence.sequence.first_from(pool.run.start)
        found: Iterable[Point] = () if first is None else (first,)
    else:
        found = islice(pool.plan.child_points(link, parent), NAMED_MAX)
    final = pool.plan.final
    return (point for point in found if final is None or point <= final)


def finish(context: StepContext, task: PooledTask) -> None:
    """Lets a complete task leave at once; its unmade outputs die, unless it ran with --wait."""
    leave(context, task)
    if task.flow_wait:
        task.memory.held_back = tuple(task.outputs)
        context.touched.memory[task.key] = None
        return
    mark_unreachable(context, task.plan, task.point, task.flows, _verdict_on(task))


def _verdict_on(task: PooledTask) -> Verdict:
    if task.ended == SUCCEEDED:
        return FINISHED
    if (
        SUCCEEDED in task.outputs
    ):  # in an earlier submission, which need not be in all its flows
        return FINISHED._replace(ended=task.ended)
    return finished_as(task.ended)


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
    task.waits[RETRY] = None
    context.effects.append(SetTimer(key, RETRY, at))
    if task.plan.expiry is not None:
        set_expiry(context, task)
    context.notice(
        "retry", key, f"{context.name_of(key)} {output}: retry {tried} of {len(delays)}"
    )
    settle(context, task)
    apply_level_to(context, task)
    return True


BY_SUICIDE = Verdict(VerdictKind.SUICIDE, AtomValue.NOT_TAKEN)


def consider(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    """Removes a task if its suicide condition holds, now that an output it names was made."""
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
    """Removes a task that merely waits or is incomplete, if its suicide condition holds."""
    if task.plan.suicides and context.plan.policy.suicide_is_a_level:
        apply_to(context, task)


def apply_to(context: StepContext, task: PooledTask) -> None:
    """Removes a pooled task that waits or is incomplete, if its suicide condition holds."""
    if task.manual or task.stage not in (JobPhase.WAITING, JobPhase.INCOMPLETE):
        return
    node = task.plan
    if not suicide_holds(context.pool, node, task.point, task.flows):
        return
    context.notice("suicide", task.key, f"{context.name_of(task.key)} was removed by suicide")
    leave(context, task)
    mark_unreachable(context, node, task.point, task.flows, BY_SUICIDE)


def flow_on(context: StepContext) -> None:
    """Announces outputs that were held back, in the flows that arrived and the task's own."""
    arrived, context.flows_arrived = context.flows_arrived, []
    for node, point, flows in arrived:
        memory = context.pool.remember(point, node.name)
        outputs, memory.held_back = memory.held_back, ()
        known = memory.spawned - memory.verdicts.keys()
        memory.spawned |= flows
        context.touched.memory[(point, node.name)] = None
        for output in outputs:
            if output in node.heard:
                publish(context, node, point, output, known | flows)
        ended = next((output for output in ENDS if output in outputs), SUCCEEDED)
        verdict = FINISHED if ended == SUCCEEDED else finished_as(ended)
        mark_unreachable(context, node, point, known | flows, verdict)
