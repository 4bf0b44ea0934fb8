"""Applies one event in one step: what it changes and what it wants done.

`step` is pure: it sees no clock, no chance and no world; the pool it is given is the only thing
that it changes. A step costs what it touches. It has two halves: the rule of the event, and the
closing, which does what every rule may have made necessary, in this order: evaluate what
can no longer happen, move chains on, admit what is within the runahead limit, until nothing is
left; then submit what is ready, evict what cannot be reached, end services that nobody needs
any more, and set the status of the run.

`evict` drops the memory of points that nothing in the pool can reach any more (SEMANTICS §4.5).
Every event concerns a pooled task or follows from one, so what lies further back than the
earliest pooled point and the offsets of the graph reach is only needed by operators, and they
are answered from the store: it keeps the last that was known of every task, outputs and
verdicts included, as long as the run itself (SEMANTICS §5). An atom at a fixed point may start
or condemn its children at any point, back to the first: until it is settled, all that they
could be evaluated by is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.sched import completion, events, interventions, lifecycle, trigger
from tidewheel.core.sched.completion import consider, expire_ready, flow_on
from tidewheel.core.sched.evaluation import absolute_key
from tidewheel.core.sched.events import Effect, Event
from tidewheel.core.sched.flows import report_ended_flows
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.lifecycle import update_status
from tidewheel.core.sched.limits import admit_within_limit, move_on, start_chain, submit_ready
from tidewheel.core.sched.persistence import Change, changes
from tidewheel.core.sched.pool import Past, RunState, RunStatus, StepContext, TaskPool, Touched
from tidewheel.core.sched.propagation import meet_other_lists, spawn_on_demand
from tidewheel.core.sched.reachability import evaluate_all
from tidewheel.core.sched.services import end_services
from tidewheel.core.sched.task_state import PoolState
from tidewheel.lazy_dataclasses import NamedTuple

# What an active task says of itself: it holds the base, and its children lie beyond it.
REPORTS = (events.JobSubmitted, events.OutputMade, events.JobEnded)
_ACTIVE, _RUNNING = PoolState.ACTIVE, RunStatus.RUNNING
_tuple = tuple.__new__  # as a tuple, what is made for each step costs a third
ROUNDS_MAX = 100_000  # of looking at what follows from one event

Rule = Callable[[StepContext, Event], None]


class Outcome(NamedTuple):
    """Holds what a step did. `changes` are made when asked for: ask before the next step."""

    pool: TaskPool
    touched: Touched
    effects: list[Effect]

    @property
    def changes(self) -> list[Change]:
        return changes(self.pool, self.touched)


def _reloaded(context: StepContext, event: events.RunReloaded) -> None:
    old = context.plan
    lifecycle.reloaded(context, event)
    _follow_up(context)
    lifecycle.tell_missed(context, old)


RULES: Mapping[type, Rule] = cast(
    "Mapping[type, Rule]",
    {
        events.RunStarted: lifecycle.run_started,
        events.JobSubmitted: completion.job_submitted,
        events.OutputMade: completion.output_made,
        events.JobEnded: completion.job_ended,
        events.TimerFired: completion.timer_fired,
        events.XtriggerSatisfied: completion.xtrigger_satisfied,
        events.TasksTriggered: trigger.triggered,
        events.OutputsSet: interventions.outputs_set,
        events.PrerequisitesSet: interventions.prerequisites_set,
        events.TasksRemoved: interventions.removed,
        events.TasksHeld: interventions.held,
        events.TasksReleased: interventions.released,
        events.AllHeldAfter: interventions.all_held_after,
        events.AllReleased: interventions.all_released,
        events.JobsKilled: interventions.killed,
        events.JobsPolled: interventions.polled,
        events.RunPaused: lifecycle.paused,
        events.RunResumed: lifecycle.resumed,
        events.RunStopped: lifecycle.stopped,
        events.StopPointSet: lifecycle.stop_point_set,
        events.StopTaskSet: lifecycle.stop_task_set,
        events.FlowStopped: lifecycle.flow_stopped,
        events.RunContinued: lifecycle.run_continued,
        events.RunReloaded: _reloaded,
    },
)


def new_pool(
    graph: Graph,
    *,
    start: Point | None = None,
    past: Past | None = None,
    prune_across_points: bool = False,
) -> TaskPool:
    """Returns the pool of a run that has not started yet."""
    cycling = graph.cycling
    first = start if start is not None else cycling.start
    run = RunState(
        start=cycling.initial if first is None else first,
        stop=cycling.stop,
        hold_after=cycling.hold_after,
        prune_across_points=prune_across_points,
    )
    return TaskPool(build_index(graph), run, past)


def step(graph: Graph, pool: TaskPool, event: Event) -> Outcome:
    """Applies an event to a pool of this graph; returns what it touched and wants done."""
    plan, context = pool.plan, pool.scratch
    assert plan.graph is graph, "the pool was made from another graph"
    if context is None or context.pool is not pool:
        context = pool.scratch = StepContext(pool)
    context.plan, context.now = plan, event.at
    context.touched, context.effects = Touched(), []
    kind = type(event)
    context.base_is_firm = plan.leads_forward and kind in REPORTS
    RULES[kind](context, event)
    _follow_up(context)
    if context.ready or context.freed:
        submit_ready(context)
    if pool.population.emptied:
        evict(context)
    flows = pool.flow_counts
    if len(flows) > 1 or 1 not in flows:
        report_ended_flows(context)
    if pool.serving:
        end_services(context, event)
    run = pool.run
    goes_on = run.status is _RUNNING and pool.standings[_ACTIVE] > len(pool.serving)
    if not goes_on or run.stopping or run.paused:
        update_status(context)
    return _tuple(Outcome, (pool, context.touched, context.effects))


def _follow_up(context: StepContext) -> None:
    """Does what the event makes necessary, and what follows from that, until nothing does."""
    pool = context.pool
    for _ in range(ROUNDS_MAX):
        may_have_more = False
        if (
            context.suicides
            or context.to_evaluate
            or context.to_seek_blocked
            or context.chains_to_advance
            or context.chains_to_start
            or context.flows_arrived
            or context.to_spawn
            or context.elements_left
        ):
            if _work_off(context):
                continue
            may_have_more = True
        if pool.may_admit or pool.counted.emptied:
            if admit_within_limit(context):
                continue
            may_have_more = True
        if may_have_more and (
            context.to_evaluate
            or context.to_seek_blocked
            or context.chains_to_advance
            or context.chains_to_start
        ):
            continue
        if not (context.plan.expires and expire_ready(context)):
            return
    raise AssertionError("the graph continues without end and has nothing to run")


def _work_off(context: StepContext) -> bool:
    """Does what is on the agenda; says whether all of it is to be looked at again at once."""
    if context.suicides:
        _apply_suicides(context)
    if context.to_evaluate or context.to_seek_blocked:
        evaluate_all(context)
    if context.chains_to_advance or context.chains_to_start:
        _move_chains(context)
    to_spawn = context.to_spawn or context.elements_left
    if context.suicides or context.flows_arrived or to_spawn:
        _catch_up(context)
        return True
    return False


def _catch_up(context: StepContext) -> None:
    """Applies suicides, announces outputs for flows that arrived, and spawns queued tasks."""
    _apply_suicides(context)
    flow_on(context)
    if context.elements_left:
        meet_other_lists(context)
    todo, context.to_spawn = context.to_spawn, []
    for node, point, flows in todo:
        if (point, node.name) not in context.pool.tasks:
            spawn_on_demand(context, node, point, flows)


def _apply_suicides(context: StepContext) -> None:
    todo, context.suicides = context.suicides, []
    for node, point, flows in todo:
        consider(context, node, point, flows)


def _move_chains(context: StepContext) -> None:
    moving, context.chains_to_advance = context.chains_to_advance, []
    starting, context.chains_to_start = context.chains_to_start, []
    for task in moving:
        move_on(context, task)
    for node, flow, first in starting:
        start_chain(context, node, flow, first)


def evict(context: StepContext) -> None:
    """Drops the memory of points before the horizon, if it has moved."""
    pool = context.pool
    pool.population.emptied = False
    earliest = pool.population.earliest()
    if earliest is None:
        return
    plan = pool.plan
    horizon = Point(earliest - plan.reach_back - plan.lead)
    old = pool.run.horizon
    if old is not None and horizon <= old:
        return
    gone = [point for point in pool.memory if point < horizon]
    if not gone:
        return
    pool.run.horizon = horizon
    touched = context.touched
    touched.run = True
    needed = plan.concerned if _may_be_settled(pool, horizon) else frozenset[str]()
    for point in gone:
        there = pool.memory[point]
        for name in sorted(there.keys() - needed if needed else there):
            touched.forgotten[point, name] = there.pop(name)
        if not there:
            del pool.memory[point]
    # When a family there is asked for, it is counted again from all that is known.
    for counted in [one for one in pool.groups if one[1] < horizon]:
        del pool.groups[counted]


def _may_be_settled(pool: TaskPool, horizon: Point) -> bool:
    """Says whether an atom at a fixed point may still get a value in a flow that has tasks. An
    atom before the horizon gets none, unless another such atom brings its task."""
    plan = pool.plan
    first = max(horizon, pool.run.start)
    flows = [flow for flow, count in pool.flow_counts.items() if count]
    return any(
        leaf.absolute is not None
        and first <= leaf.absolute
        and (plan.final is None or leaf.absolute <= plan.final)
        and any(flow not in pool.absolute.get(absolute_key(leaf), {}) for flow in flows)
        for leaf, _ in plan.absolute
    )
