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
from tidewheel.core.graph.node import Retries
from tidewheel.core.graph.outputs import ENDS, FAILED, STANDARD, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import NodePlan
from tidewheel.core.sched.effects import SetTimer
from tidewheel.core.sched.evaluation import suicide_holds
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.propagation import announce, make
from tidewheel.core.sched.reachability import FINISHED, condemn, finished_as
from tidewheel.core.sched.spawn import RETRY, leave, set_expiry, settle
from tidewheel.core.sched.step_context import Draft
from tidewheel.core.sched.task_state import Flows, Key, Stage, Task, Value, Verdict, VerdictKind

NAMED_MAX = 3  # outputs, or tasks that wait for them, in one sentence


def deactivate(draft: Draft, task: Task) -> None:
    """Its job is over: there is room in its limit group."""
    limit = task.plan.limit
    draft.pool.queues[limit].active -= 1
    draft.freed[limit] = None


def end(draft: Draft, task: Task, output: str) -> None:
    """A task ended with this output, and will not be tried again."""
    make(draft, task, output)
    task.manual = False
    task.ended = output
    conclude(draft, task)


def conclude(draft: Draft, task: Task) -> None:
    """An ended task leaves if it is complete or runs alone, else it stays as incomplete."""
    stop_after(draft, task.key)
    if not task.flows:
        leave(draft, task)
    elif is_complete(task):
        finish(draft, task)
    else:
        task.stage = Stage.INCOMPLETE
        task.waits.clear()
        what = lacking_text(draft.pool, task) or f"{task.ended}, which nothing handles"
        draft.notice("incomplete", task.key, f"{draft.name_of(task.key)} {what}")
        settle(draft, task)
        apply_level_to(draft, task)


def stop_after(draft: Draft, key: Key) -> None:
    """A task has ended, however: the run stops if it was to stop after that."""
    run = draft.pool.run
    if run.stop_after == key:
        run.stop_after = None
        run.stopping = "clean"
        draft.touched.run = True


def is_complete(task: Task) -> bool:
    """Whether its outputs suffice; its own ones count whichever submission made them."""
    outputs = task.outputs
    if SUCCEEDED in outputs and task.plan.success_suffices:
        return True
    return task.plan.completion.is_complete({*outputs, *_made_earlier(task)})


def _made_earlier(task: Task) -> Iterator[str]:
    for output, flows in task.memory.made.items():
        if output not in STANDARD and task.flows <= flows:
            yield output


def lacking(task: Task) -> list[frozenset[str]]:
    """What a task that succeeded would have had to make besides: any of these."""
    if task.ended != SUCCEEDED:
        return []
    made = {*task.outputs, *_made_earlier(task)}
    return [one - made for one in task.plan.completion.alternatives if SUCCEEDED in one]


def lacking_text(pool: Pool, task: Task) -> str:
    """`succeeded without x, which 1/b waits for`; nothing if it did not succeed."""
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


def _who_waits(pool: Pool, task: Task, outputs: Iterable[str]) -> Iterator[str]:
    """The tasks of the run that an output of this one leads to, each once."""
    plan, node = pool.plan, task.plan
    seen = set()
    for output in outputs:
        near = [*node.links.get(output, ())]
        for group in node.groups.get(output, ()):
            near += group.links
        places = [
            (link, point)
            for link in near
            for point in islice(plan.child_points(link, task.point), NAMED_MAX)
        ]
        for link in node.absolute.get((task.point, output), ()):
            first = link.arrow.sequence.sequence.first_from(pool.run.start)
            places += [] if first is None else [(link, first)]
        for link, point in places:
            if link.arrow.suicide or (plan.final is not None and point > plan.final):
                continue
            for target, _ in link.arrow.targets:
                if (point, target.name) not in seen:
                    seen.add((point, target.name))
                    yield f"{plan.text(point)}/{target.name}"


def finish(draft: Draft, task: Task) -> None:
    """A complete task leaves at once, and its unmade outputs die."""
    leave(draft, task)
    if task.flow_wait:
        task.memory.held_back = tuple(task.outputs)
        draft.touched.memory[task.key] = None
        return
    condemn(draft, task.plan, task.point, task.flows, _verdict_on(task))


def _verdict_on(task: Task) -> Verdict:
    if task.ended == SUCCEEDED:
        return FINISHED
    if (
        SUCCEEDED in task.outputs
    ):  # in an earlier submission, which need not be in all its flows
        return FINISHED._replace(ended=task.ended)
    return finished_as(task.ended)


def try_again(draft: Draft, task: Task, output: str, had: Retries | None = None) -> bool:
    """Go back to waiting for the retry delay, if there is a retry left."""
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
    at = Instant(draft.now + delays[tried - 1])
    task.stage = Stage.WAITING
    task.missing = 0
    task.waits[RETRY] = None
    draft.effects.append(SetTimer(key, RETRY, at))
    if task.plan.expiry is not None:
        set_expiry(draft, task)
    draft.notice("retry", key, f"{draft.name_of(key)} {output}: retry {tried} of {len(delays)}")
    settle(draft, task)
    apply_level_to(draft, task)
    return True


BY_SUICIDE = Verdict(VerdictKind.SUICIDE, Value.NOT_TAKEN)


def consider(draft: Draft, node: NodePlan, point: Point, flows: Flows) -> None:
    """An output that a suicide arrow waits for was made: remove the task if all are true."""
    pool = draft.pool
    task = pool.tasks.get((point, node.name))
    if task is not None:
        if not flows.isdisjoint(task.flows):
            apply_to(draft, task)
        flows -= task.flows
    if point < pool.run.start or not node.is_at(point):
        return
    memory = pool.recall(point, node.name)
    for flow in sorted(flows):
        known = memory is not None and (flow in memory.spawned or flow in memory.verdicts)
        if not known and suicide_holds(pool, node, point, frozenset({flow})):
            condemn(draft, node, point, frozenset({flow}), BY_SUICIDE)


def apply_level_to(draft: Draft, task: Task) -> None:
    """The same for a task to which nothing happened but that it waits or is incomplete now."""
    if task.plan.suicides and draft.plan.policy.suicide_is_a_level:
        apply_to(draft, task)


def apply_to(draft: Draft, task: Task) -> None:
    """Remove a pooled task that waits or is incomplete, if its condition holds."""
    if task.manual or task.stage not in (Stage.WAITING, Stage.INCOMPLETE):
        return
    node = task.plan
    if not suicide_holds(draft.pool, node, task.point, task.flows):
        return
    draft.notice("suicide", task.key, f"{draft.name_of(task.key)} was removed by suicide")
    leave(draft, task)
    condemn(draft, node, task.point, task.flows, BY_SUICIDE)


def flow_on(draft: Draft) -> None:
    """Announce what was held back, in the flows that arrived and in its own."""
    arrived, draft.to_flow_on = draft.to_flow_on, []
    for node, point, flows in arrived:
        memory = draft.pool.remember(point, node.name)
        outputs, memory.held_back = memory.held_back, ()
        known = memory.spawned - memory.verdicts.keys()
        memory.spawned |= flows
        draft.touched.memory[(point, node.name)] = None
        for output in outputs:
            if output in node.heard:
                announce(draft, node, point, output, known | flows)
        ended = next((output for output in ENDS if output in outputs), SUCCEEDED)
        verdict = FINISHED if ended == SUCCEEDED else finished_as(ended)
        condemn(draft, node, point, known | flows, verdict)
