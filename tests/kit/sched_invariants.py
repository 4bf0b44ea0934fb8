"""What is true of every pool after every step (RELIABILITY P1 to P20, if a pool shows it)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.completion import is_complete
from tidewheel.core.sched.dependency_index import names_of
from tidewheel.core.sched.evaluation import (
    absolute_key,
    is_true,
    leaf_value,
    prune_value,
    task_values,
)
from tidewheel.core.sched.persistence import everything
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.reachability import may_be_pruned
from tidewheel.core.sched.spawn import keeps_its_place, standing_of
from tidewheel.core.sched.task_state import (
    AtomValue,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    VerdictKind,
)


def check_invariants(pool: TaskPool, alone: Collection[Key] = ()) -> None:
    """Raise an AssertionError that names what is broken. Looks at everything: for tests.

    `alone` are the tasks that were ever run without a flow: what they made is on no record.
    """
    for key, task in pool.tasks.items():
        assert key == task.key, f"{key} is kept under a wrong key"
        _check_task(pool, task)
        _check_true_atoms(pool, task, alone)
    _check_counters(pool)
    _check_chains(pool)
    _check_memory(pool)


def _check_task(pool: TaskPool, task: PooledTask) -> None:
    name = f"{pool.plan.text(task.point)}/{task.plan.name}"
    assert task.standing is standing_of(task), f"{name} is counted as {task.standing!r}"
    memory = pool.recall(task.point, task.plan.name)
    assert memory is not None, f"{name} is pooled and not remembered"
    assert type(task.flows) is type(memory.spawned) is frozenset, f"{name}: {task.flows!r}"
    assert task.flows <= memory.spawned, f"{name} is in flows it was never spawned in"
    if task.stage is JobPhase.INCOMPLETE:
        assert not is_complete(task), f"P10: {name} is complete and pooled"
        assert task.flows, f"{name} ended alone and is pooled"
    if task.stage is not JobPhase.WAITING:
        return
    _check_atoms(pool, task, name)
    unpruned = pool.plan.policy.prunes_unreachable and may_be_pruned(task)
    if unpruned:
        values = task_values(pool, task.plan, task.point, task.flows, task)
        assert prune_value(pool, *values) is None, f"P7: {name} should have been pruned"
        assert task.blocked is (values[0] is AtomValue.LOST), (
            f"{name} is wrongly blocked or not"
        )


def _check_atoms(pool: TaskPool, task: PooledTask, name: str) -> None:
    if not task.missing or task.outputs:
        return
    missing = 0
    for arrow, base in task.plan.arrows_at(task.point):
        missing += not is_true(arrow, base, task.true)
        for leaf in arrow.leaves:
            known = task.true >> (base + leaf.number) & 1
            value = leaf_value(pool, leaf, task.point, task.flows)
            assert known or value is not AtomValue.TRUE, f"P5: {name} missed an atom"
            if not known and leaf.absolute is not None:
                waiting = pool.waiting_for.get(absolute_key(leaf), {})
                assert task.key in waiting, f"P14: {name} would not hear of an absolute atom"
    assert missing == task.missing, f"{name} counts {task.missing} arrows, {missing} are open"


def _check_true_atoms(pool: TaskPool, task: PooledTask, alone: Collection[Key]) -> None:
    """What is true was made, and is remembered, unless an operator said so or it runs again."""
    helped = task.manual or task.satisfied_by_hand or task.outputs
    if task.stage is not JobPhase.WAITING or helped or task.submit != task.memory.submits:
        return
    name = f"{pool.plan.text(task.point)}/{task.plan.name}"
    # What was earned in a flow counts for a task that has left the flow since.
    flows = frozenset(range(1, pool.run.flows_made + 1))
    for arrow, base in task.plan.arrows_at(task.point):
        for leaf in arrow.leaves:
            if not task.true >> (base + leaf.number) & 1:
                continue
            parent = leaf.parent_point(task.point, pool.plan.initial)
            by_hand = any((parent, one) in alone for one in names_of(leaf))
            if by_hand or _is_outside(pool, parent):
                continue
            true = any(
                leaf_value(pool, leaf, task.point, one) is AtomValue.TRUE
                for one in (flows, *(frozenset({flow}) for flow in flows))
            )
            text = f"{pool.plan.text(parent)}/{'+'.join(names_of(leaf))}:{leaf.output}"
            assert true, f"P5: {name} takes {text} for true"


def _is_outside(pool: TaskPool, point: Point) -> bool:
    """Before the start of the run or of a flow, where who is run by hand may be heard yet, or
    beyond a final point that a reload has brought forward."""
    bounds = (flow.ignore_before for flow in pool.flows.values())
    first = max((one for one in bounds if one is not None), default=pool.run.start)
    final = pool.plan.final
    return point < max(first, pool.run.start) or (final is not None and point > final)


def _check_counters(pool: TaskPool) -> None:
    tasks = list(pool.tasks.values())
    standings = Counter(task.standing for task in tasks)
    assert pool.standings == [standings[one] for one in PoolState], "standings"
    assert pool.population.counts == Counter(task.point for task in tasks), "population"
    everyone = pool.plan.policy.every_task_counts
    counted = Counter(
        task.point for task in tasks if everyone or task.standing is not PoolState.WAITING
    )
    assert pool.counted.counts == counted, "counted points"
    flows = Counter(flow for task in tasks for flow in task.flows)
    assert Counter({f: n for f, n in pool.flow_counts.items() if n}) == flows, "flows"
    for number, queue in enumerate(pool.queues):
        members = [task for task in tasks if task.plan.limit == number]
        active = sum(task.standing is PoolState.ACTIVE for task in members)
        assert queue.active == active, (
            f"limit group {number} counts {queue.active}, not {active}"
        )
        queued = {(point, order, key) for point, order, key in queue.heap}
        closed = pool.run.paused or bool(pool.run.stopping)
        has_room = not 0 < queue.limit <= queue.active
        for task in members:
            if task.standing is PoolState.READY:
                assert (task.point, task.order, task.key) in queued, f"{task.key} is not queued"
                assert closed or not has_room, f"{task.key} is ready and was not submitted"
    serving = {task.key for task in tasks if _serves(task)}
    assert set(pool.serving) == serving, f"services: {pool.serving}, not {serving}"
    beyond_limit = {key for there in pool.beyond_limit.values() for key in there}
    assert beyond_limit == {task.key for task in tasks if not task.admitted}, "beyond_limit"


def _serves(task: PooledTask) -> bool:
    return bool(task.plan.definition.until) and task.stage is JobPhase.RUNNING


def _check_chains(pool: TaskPool) -> None:
    """P13: one instance beyond; the head of a chain is pooled and not admitted."""
    for (name, flow), point in pool.chains.items():
        task = pool.tasks.get((point, name))
        assert task is not None and flow in task.flows, (
            f"chain {name} in flow {flow} has no head"
        )
        moved = task.admitted and not keeps_its_place(task)
        assert not moved, f"chain {name} in flow {flow} has not moved on"


def _check_memory(pool: TaskPool) -> None:
    for point, there in pool.memory.items():
        for name, memory in there.items():
            task = pool.tasks.get((point, name))
            for flow, verdict in memory.verdicts.items():
                again = task is not None and flow in task.flows
                finished = verdict.kind is VerdictKind.FINISHED
                assert finished or not again, f"P8: {point}/{name} is pooled and {verdict.kind}"


def fingerprint(pool: TaskPool) -> dict[str, object]:
    """All that two equal pools share, derived things included."""
    heaps = [
        sorted(
            {
                entry
                for entry in queue.heap
                if entry[2] in pool.tasks
                and pool.tasks[entry[2]].order == entry[1]
                and pool.tasks[entry[2]].standing is PoolState.READY
            }
        )
        for queue in pool.queues
    ]
    return {
        "rows": sorted(map(repr, everything(pool))),
        "standings": pool.standings,
        "counted": pool.counted.counts,
        "flows": {flow: count for flow, count in pool.flow_counts.items() if count},
        "serving": sorted(pool.serving),
        "active": [queue.active for queue in pool.queues],
        "queues": heaps,
        "beyond_limit": sorted(key for there in pool.beyond_limit.values() for key in there),
        "groups": {
            (index, point, flow, member): value
            for (index, point), flows in pool.groups.items()
            # Behind the horizon they are counted when somebody asks.
            if pool.run.horizon is None or point >= pool.run.horizon
            for flow, count in flows.items()
            for member, value in count.values.items()
            if value is not AtomValue.OPEN and pool.recall(point, member) is not None
            # Lost because it is off its sequence: every count begins with that.
            if value is not AtomValue.LOST or pool.node(member).is_at(point)
        },
    }
