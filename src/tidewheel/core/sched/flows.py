"""Keeps the flows of a run: which one an intervention goes to, how far it may go, when it ends.

SEMANTICS §8; seed 001, "Reflow restrictions".
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.dependents import all_dependents, evicted_dependents
from tidewheel.core.sched.elements import flows_there
from tidewheel.core.sched.evaluation import leaf_value
from tidewheel.core.sched.events import FlowChoice, TasksTriggered
from tidewheel.core.sched.index_builder import BAD_ENDS
from tidewheel.core.sched.pool import FlowState, StepContext, TaskPool
from tidewheel.core.sched.task_state import NO_FLOW, AtomValue, Flows, Key, VerdictKind

KEPT_MAX = 100  # tasks that nobody spawns any more, for the end of the run


def active_flows(pool: TaskPool) -> Flows:
    """Returns the flows that have pooled tasks and are not stopped; if none, the latest."""
    found = frozenset(
        flow
        for flow, count in pool.flow_counts.items()
        if count and not (flow in pool.flows and pool.flows[flow].stopped)
    )
    return found or frozenset({pool.run.flows_made})


def active_flows_of(pool: TaskPool, node: IndexedNode, point: Point) -> Flows:
    """Returns the active flows in which a task is: an element where its list is, if anywhere;
    in others the list is still to come."""
    active = active_flows(pool)
    return flows_there(pool, node, point, active) or active


def _begin(context: StepContext, state: FlowState) -> None:
    number = state.number
    run = context.pool.run
    run.flows_made = max(run.flows_made, number)
    context.pool.flows[number] = state
    context.touched.flows[number] = None
    context.touched.run = True
    context.notice("flow started", None, f"flow {number} was started")
    evaluate_ends_of_the_graph(context, number)


def named_flows(
    context: StepContext, choice: FlowChoice | Flows, event: TasksTriggered | None = None
) -> Flows | None:
    """Returns the flows that a command asks for, beginning new ones; None if it names none.

    A new flow gets a number that was never used, and the bounds that the event asks for.
    """
    if isinstance(choice, frozenset):
        for number in sorted(choice - context.pool.flows.keys()):
            _begin(context, FlowState(number))
        return choice
    if choice is FlowChoice.NEW:
        state = FlowState(context.pool.run.flows_made + 1)
        if event is not None:
            state.until = event.until
            state.until_tasks = event.until_tasks
            state.chains_from = event.chains_from
            if event.ignore_before:
                state.ignore_before = min(point for point, _ in event.tasks)
        _begin(context, state)
        return frozenset({state.number})
    return existing_flows(context.pool, choice)


def existing_flows(pool: TaskPool, choice: FlowChoice | Flows) -> Flows | None:
    """Returns the flows that a command asks for without those that it would begin as new; None
    if it names none."""
    if isinstance(choice, frozenset):
        return choice
    if choice is FlowChoice.ALL:
        return active_flows(pool)
    return None if choice is FlowChoice.DEFAULT else NO_FLOW


def flows_to_trigger(context: StepContext, node: IndexedNode, point: Point) -> Flows:
    """Returns the flows in which a task that is not pooled is triggered by default (§8).

    If there are none, the task runs alone: nothing follows from its outputs.
    """
    pool = context.pool
    active = active_flows_of(pool, node, point)
    if point < pool.run.start:
        return NO_FLOW
    if pool.plan.policy.trigger_joins_active_flows:
        return active
    ran = flows_it_ran_in(pool, (point, node.name)) & active
    if not ran:
        return active
    return frozenset(flow for flow in ran if brings_back(pool, node, point, flow))


def flows_it_ran_in(pool: TaskPool, key: Key) -> Flows:
    """Returns the flows in which a task was run, or counts as if it had been."""
    memory = pool.recall(*key)
    if memory is None:
        return NO_FLOW
    finished = {
        flow
        for flow, verdict in memory.verdicts.items()
        if verdict.kind is VerdictKind.FINISHED
    }
    # Taken out of the pool without a verdict: one that was never submitted never ran.
    left = memory.spawned.difference(memory.verdicts)
    if not finished and memory.submits:
        return left
    made = NO_FLOW.union(*memory.made.values())
    return left & (made if not memory.held_back else left) | finished


def brings_back(pool: TaskPool, node: IndexedNode, point: Point, flow: int) -> list[Key]:
    """Returns the tasks that are lost or blocked in a flow because of how this one ended."""
    flows = frozenset({flow})
    found = {
        child.key: None
        for child in (
            *all_dependents(pool, node, point),
            *evicted_dependents(pool, node, point),
        )
        if leaf_value(pool, child.link.leaf, child.point, flows) is AtomValue.LOST
        and _is_lost_or_blocked(pool, child.key, flow)
    }
    return list(found)


def _is_lost_or_blocked(pool: TaskPool, key: Key, flow: int) -> bool:
    task = pool.tasks.get(key)
    if task is not None:
        return task.blocked
    memory = pool.recall(*key)
    verdict = None if memory is None else memory.verdicts.get(flow)
    return verdict is not None and verdict.kind is VerdictKind.PRUNED


def may_spawn(pool: TaskPool, flow: int, point: Point) -> bool:
    """Says whether a task may be spawned at a point in a flow."""
    if point < pool.run.start:
        return False
    state = pool.flows.get(flow)
    if state is None:
        return True
    return not state.stopped and (state.until is None or point <= state.until)


# What hot functions ask for seldom stands in functions of its own: a variable that a
# comprehension uses, too, is slower wherever it is used.
def spawning(pool: TaskPool, flows: Flows, point: Point) -> Flows:
    """Returns those of these flows in which tasks may be spawned at a point."""
    return frozenset(flow for flow in flows if may_spawn(pool, flow, point))


def spawning_or_cut_off(
    context: StepContext, node: IndexedNode, point: Point, flows: Flows
) -> Flows:
    """Returns those of these flows in which a task may be spawned now; if there is none because
    an operator stopped them, the task is kept among those that nobody spawns any more."""
    pool = context.pool
    found, missed = spawning(pool, flows, point), pool.run.missed
    if flows and not found and stopped_flows(pool) & flows and len(missed) < KEPT_MAX:
        is_there = node.element is None or flows_there(pool, node, point, flows)
        memory = pool.recall(point, node.name)
        is_new = memory is None or not (memory.spawned or memory.verdicts)
        if is_there and is_new and point >= pool.run.start:
            missed[(point, node.name)] = None
            context.touched.run = True
    return found


def stopped_flows(pool: TaskPool) -> Flows:
    return frozenset(flow for flow, state in pool.flows.items() if state.stopped)


def report_ended_flows(context: StepContext) -> None:
    """Drops the counters of flows without pooled tasks, and reports all but flow 1 as ended."""
    pool = context.pool
    for flow in [flow for flow, count in pool.flow_counts.items() if not count]:
        del pool.flow_counts[flow]
        if flow != 1:
            context.notice("flow ended", None, f"flow {flow} has ended")


def evaluate_ends_of_the_graph(context: StepContext, flow: int) -> None:
    """Queues tasks whose parents may lie before the start or beyond the end for evaluation.

    Nothing failed before the start and nothing comes after the end, so an atom there may be
    dead although no task has ended.
    """
    pool = context.pool
    final = pool.plan.final
    ignored = pool.flows[flow].ignore_before
    start = pool.run.start if ignored is None else max(pool.run.start, ignored)
    for node in pool.plan.nodes.values():
        leaves = [leaf for arrow, _ in node.arrows for leaf in arrow.leaves]
        offset = [leaf for leaf in leaves if leaf.offset is not None]
        ends = []
        if any(leaf.output in BAD_ENDS and (leaf.shift or -1) < 0 for leaf in offset):
            ends.append((start, Point(start + pool.plan.reach_back)))
        if final is not None and any(
            leaf.absolute is None and (leaf.shift is None or leaf.shift > 0) for leaf in offset
        ):
            ends.append((max(Point(final - pool.plan.reach_ahead), start), final))
        for first, last in ends:
            for point in node.points(first, last):
                context.to_evaluate.append(((point, node.name), flow))
