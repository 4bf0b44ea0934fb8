"""Why a task is not running: every reason, whether it passes by itself, and what would help.

Answers come from the same data by which the scheduler decides, so they cannot disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.conditions import leaf_value, untrue_leaves
from tidewheel.core.sched.ending import NAMED_MAX, lacking, lacking_text
from tidewheel.core.sched.judgement import chain_text, failed_cause
from tidewheel.core.sched.plan import Leaf, NodePlan
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.spawning import CLOCK, RETRY
from tidewheel.core.sched.states import Flows, Key, Standing, Task, Value, VerdictKind
from tidewheel.core.tasks.task import Instant

DueAt = Callable[[Key, str], Instant | None]  # when a task need not wait for a thing any more


def _unknown(_key: Key, _wait: str) -> Instant | None:
    return None


class Reason(NamedTuple):
    """One reason; `passes` if nobody need do anything; `command` is what would help."""

    text: str
    passes: bool
    command: str = ""
    until: Instant | None = None  # when it passes by itself, where that is known


def why(pool: Pool, key: Key, due_at: DueAt = _unknown) -> list[Reason]:
    """Everything that keeps a task from running, in the order in which it is looked at.

    Times are not kept in the pool: `due_at` knows those of clocks and retries.
    """
    node = pool.plan.nodes.get(key[1])
    if node is None:
        return [Reason(f"there is no task {key[1]} in this workflow", passes=False)]
    task = pool.tasks.get(key)
    if task is None:
        return _why_absent(pool, node, key)
    return list(_why_pooled(pool, task, due_at))


def _name(pool: Pool, key: Key) -> str:
    return f"{pool.plan.text(key[0])}/{key[1]}"


def _why_pooled(pool: Pool, task: Task, due_at: DueAt) -> Iterator[Reason]:
    name = _name(pool, task.key)
    if task.standing is Standing.ACTIVE:
        yield Reason(f"{name} is {task.stage.name.lower()}", passes=True)
        return
    if task.standing is Standing.INCOMPLETE:
        yield _why_incomplete(pool, task)
        return
    if task.held:
        yield Reason(f"{name} is held", passes=False, command=f"release {name}")
    if task.missing:
        yield from _why_missing(pool, task)
    for wait in task.waits:
        yield _why_waiting(name, wait)._replace(until=due_at(task.key, wait))
    if not task.released:
        yield _why_unreleased(pool, task)
    if task.standing is Standing.READY:
        yield _why_not_submitted(pool, task)


def _why_incomplete(pool: Pool, task: Task) -> Reason:
    name = _name(pool, task.key)
    choices = lacking(task)
    if not choices:
        rule = str(task.plan.completion)
        needed = rule if " " in rule else f"the output {rule}"
        text = f"{name} {task.ended} and is incomplete: it needs {needed}"
        return Reason(text, passes=False, command=f"trigger {name}, or set {name}")
    sets = [f"set {name} --out {','.join(sorted(one))}" for one in choices[:NAMED_MAX]]
    text = f"{name} {lacking_text(pool, task)}"
    return Reason(text, passes=False, command=", or ".join([f"trigger {name}", *sets]))


def _why_waiting(name: str, wait: str) -> Reason:
    if wait == RETRY:
        return Reason(
            f"{name} waits for its retry delay", passes=True, command=f"trigger {name}"
        )
    if wait == CLOCK:
        return Reason(f"{name} waits for the clock", passes=True, command=f"trigger {name}")
    command = f"set {name} --pre xtrigger/{wait}"
    return Reason(f"{name} waits for the xtrigger {wait}", passes=True, command=command)


def _why_unreleased(pool: Pool, task: Task) -> Reason:
    stop = pool.run.stop
    name = _name(pool, task.key)
    if stop is not None and task.point > stop:
        text = f"{name} is beyond the stop point {pool.plan.text(stop)}"
        return Reason(text, passes=False, command=f"trigger {name}")
    base = pool.counted.earliest()
    oldest = [
        _name(pool, one.key)
        for one in pool.tasks.values()
        if one.point == base and one.standing is not Standing.WAITING
    ]
    limit = "none" if pool.limit is None else pool.plan.text(pool.limit)
    text = (
        f"{name} is beyond the runahead limit {limit}, set by {', '.join(sorted(oldest)[:3])}"
    )
    stuck = any(
        one.standing in (Standing.INCOMPLETE, Standing.BLOCKED, Standing.HELD)
        for one in pool.tasks.values()
        if one.point == base
    )
    return Reason(text, passes=not stuck, command=f"trigger {name}")


def _why_not_submitted(pool: Pool, task: Task) -> Reason:
    name = _name(pool, task.key)
    if pool.run.paused:
        return Reason("the run is paused", passes=False, command="resume")
    if pool.run.stopping:
        return Reason("the run is being stopped", passes=False)
    queue = pool.queues[task.plan.limit]
    text = (
        f"{name} waits for room in its limit group: {queue.active} of {queue.limit} are active"
    )
    return Reason(text, passes=True, command=f"trigger {name}")


def _why_missing(pool: Pool, task: Task) -> Iterator[Reason]:
    for arrow, base in task.plan.arrows_at(task.point):
        for number in untrue_leaves(arrow.expression, task.true >> base):
            yield why_open(pool, arrow.leaves[number], task.point, task.flows, task.key)


def why_open(pool: Pool, leaf: Leaf, point: Point, flows: Flows, child: Key) -> Reason:
    """Why one atom is not true yet."""
    parent = (leaf.parent_point(point, pool.plan.initial), leaf.node)
    if leaf.group is not None:
        kind = "all" if leaf.group.every else "any"
        text = f"{_name(pool, child)} needs {leaf.wanted} of {kind} of {leaf.group.family}"
        return Reason(text, passes=True)
    needed = f"{_name(pool, child)} needs {_name(pool, parent)}:{leaf.output}"
    command = f"set {_name(pool, child)} --pre {_name(pool, parent)}:{leaf.output}"
    value = leaf_value(pool, leaf, point, flows)
    if value <= Value.LOST:
        flow = min(flows, default=1)
        text = f"{needed}: {chain_text(pool, parent, flow)}"
        return Reason(text, passes=False, command=_mending(pool, parent, flow))
    return _why_parent(pool, leaf, parent, flows, Reason(needed, passes=True, command=command))


def _why_parent(pool: Pool, leaf: Leaf, parent: Key, flows: Flows, reason: Reason) -> Reason:
    task = pool.tasks.get(parent)
    if task is not None:
        stuck = task.standing in (Standing.INCOMPLETE, Standing.BLOCKED, Standing.HELD)
        word = task.ended or task.standing.name.lower()
        command = f"trigger {_name(pool, parent)}" if stuck else reason.command
        return Reason(f"{reason.text}, which is {word}", passes=not stuck, command=command)
    memory = pool.recall(*parent)
    made = None if memory is None else memory.made.get(leaf.output)
    if made:
        # Of a task that ended incomplete and was met by a new flow, that one's count.
        lacking = flows - made or flows
        theirs = ", ".join(map(str, sorted(made)))
        ours = ", ".join(map(str, sorted(lacking)))
        text = f"{reason.text}, which was made in flow {theirs}, not in flow {ours}"
        command = f"set {_name(pool, parent)} --flow {min(lacking, default=1)}"
        return Reason(text, passes=False, command=command)
    return Reason(
        f"{reason.text}, which has not run", passes=reason.passes, command=reason.command
    )


def _why_absent(pool: Pool, node: NodePlan, key: Key) -> list[Reason]:
    name = _name(pool, key)
    if not node.is_at(key[0]):
        return [Reason(f"{name} is on no sequence: there is no such task", passes=False)]
    memory = pool.recall(*key)
    found = []
    for flow, verdict in sorted(memory.verdicts.items()) if memory is not None else ():
        if verdict.kind is VerdictKind.FINISHED:
            text = f"{name} {verdict.ended} in flow {flow}"
            command = f"trigger {name}" + (" --reflow" if verdict.ended == SUCCEEDED else "")
        elif verdict.kind is VerdictKind.PRUNED:
            text, command = chain_text(pool, key, flow), _mending(pool, key, flow)
        else:
            text, command = f"{name} was {verdict.kind}", f"trigger {name}"
        found.append(Reason(text, passes=False, command=command))
    return found or _why_unspawned(pool, node, key)


def _mending(pool: Pool, key: Key, flow: int) -> str:
    """What failed comes first: once it succeeds, all that was lost because of it is back."""
    cause = failed_cause(pool, key, flow)
    first = "" if cause is None or cause == key else f"trigger {_name(pool, cause)}, or "
    return f"{first}trigger {_name(pool, key)}"


def _why_unspawned(pool: Pool, node: NodePlan, key: Key) -> list[Reason]:
    flows = frozenset(flow for flow, count in pool.flow_counts.items() if count)
    found = []
    for arrow, _ in node.arrows_at(key[0]):
        values = ((leaf, leaf_value(pool, leaf, key[0], flows)) for leaf in arrow.leaves)
        true = sum(1 << leaf.number for leaf, value in values if value is Value.TRUE)
        for number in untrue_leaves(arrow.expression, true):
            found.append(why_open(pool, arrow.leaves[number], key[0], flows, key))
    text = f"{_name(pool, key)} comes when the instance before it is released"
    return found or [Reason(text, passes=True, command=f"trigger {_name(pool, key)}")]
