"""One event, one step: what it changes and what it wants done. The door of this package.

`step` is pure: it sees no clock, no chance and no world; the pool it is given is the only thing
that it changes. A step costs what it touches. It has two halves: the rule of the event, and the
closing, which does what every rule may have made necessary, in this order: judge what can no
longer happen, move chains on, release what is within the runahead limit, until nothing is left;
then submit what is ready, forget what cannot be reached, and judge the run itself.

`evict` drops the memory of points that nothing in the pool can reach any more (SEMANTICS §4.5).
Every event concerns a pooled task or follows from one, so what lies further back than the
earliest pooled point and the offsets of the graph reach is only needed by operators, and they
are answered from the store: it keeps the last that was known of every task, outputs and
verdicts included, as long as the run itself (SEMANTICS §5). An atom at a fixed point may start
or condemn its children at any point, back to the first: until it is settled, all that they
could be judged by is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.sched import events, interventions, job_events, lifecycle
from tidewheel.core.sched.completion import consider, flow_on
from tidewheel.core.sched.effects import Effect
from tidewheel.core.sched.evaluation import absolute_key
from tidewheel.core.sched.events import Event
from tidewheel.core.sched.flows import report_ended_flows
from tidewheel.core.sched.index_builder import plan_of
from tidewheel.core.sched.interventions import removed
from tidewheel.core.sched.job_events import expire_ready
from tidewheel.core.sched.lifecycle import run_started
from tidewheel.core.sched.limit_groups import submit_ready
from tidewheel.core.sched.parentless import move_on, start_chain
from tidewheel.core.sched.persistence import Change, changes
from tidewheel.core.sched.pool import Past, Pool, RunState
from tidewheel.core.sched.propagation import come
from tidewheel.core.sched.reachability import judge_all
from tidewheel.core.sched.reload import reloaded
from tidewheel.core.sched.runahead import release_within_limit
from tidewheel.core.sched.set_outputs import outputs_set, prerequisites_set
from tidewheel.core.sched.stall import judge_run
from tidewheel.core.sched.step_context import Draft, Touched
from tidewheel.core.sched.trigger import triggered

# What an active task says of itself: it holds the base, and its children lie beyond it.
REPORTS = (events.JobSubmitted, events.OutputMade, events.JobEnded)
ROUNDS_MAX = 100_000  # of looking at what follows from one event

Rule = Callable[[Draft, Event], None]


class Outcome:
    """What a step did. `changes` are made when asked for: ask before the next step."""

    __slots__ = ("_pool", "effects", "touched")

    def __init__(self, pool: Pool, touched: Touched, effects: list[Effect]) -> None:
        self._pool = pool
        self.touched = touched
        self.effects = effects

    @property
    def changes(self) -> list[Change]:
        return changes(self._pool, self.touched)


RULES: Mapping[type, Rule] = cast(
    "Mapping[type, Rule]",
    {
        events.RunStarted: run_started,
        events.JobSubmitted: job_events.job_submitted,
        events.OutputMade: job_events.output_made,
        events.JobEnded: job_events.job_ended,
        events.TimerFired: job_events.timer_fired,
        events.XtriggerSatisfied: job_events.xtrigger_satisfied,
        events.Trigger: triggered,
        events.SetOutputs: outputs_set,
        events.SetPrerequisites: prerequisites_set,
        events.Remove: removed,
        events.Hold: interventions.held,
        events.Release: interventions.released,
        events.HoldAfter: interventions.all_held_after,
        events.ReleaseAll: interventions.all_released,
        events.Kill: interventions.killed,
        events.Poll: interventions.polled,
        events.Pause: lifecycle.paused,
        events.Resume: lifecycle.resumed,
        events.Stop: lifecycle.stopped,
        events.StopAtPoint: lifecycle.stop_point_set,
        events.StopAfterTask: lifecycle.stop_task_set,
        events.StopFlow: lifecycle.flow_stopped,
        events.RunContinued: lifecycle.run_continued,
        events.Reload: reloaded,
    },
)


def new_pool(
    graph: Graph,
    *,
    start: Point | None = None,
    past: Past | None = None,
    prune_across_points: bool = False,
) -> Pool:
    """The pool of a run that has not started yet."""
    cycling = graph.cycling
    first = start if start is not None else cycling.start
    run = RunState(
        start=cycling.initial if first is None else first,
        stop=cycling.stop,
        hold_after=cycling.hold_after,
        prune_across_points=prune_across_points,
    )
    return Pool(plan_of(graph), run, past)


def step(graph: Graph, pool: Pool, event: Event) -> Outcome:
    """Apply an event to a pool of this graph."""
    assert pool.plan.graph is graph, "the pool was made from another graph"
    draft = pool.scratch
    if isinstance(draft, Draft) and draft.pool is pool:
        draft.begin(event.at)
    else:
        draft = pool.scratch = Draft(pool, event.at)
    kind = type(event)
    draft.base_is_firm = kind in REPORTS and pool.plan.leads_forward
    RULES[kind](draft, event)
    close(draft)
    return Outcome(pool, draft.touched, draft.effects)


def close(draft: Draft) -> None:
    """Do what the event made necessary."""
    _follow_up(draft)
    pool = draft.pool
    if draft.ready or draft.freed:
        submit_ready(draft)
    if pool.population.emptied:
        evict(draft)
    if len(pool.flow_counts) > 1 or 1 not in pool.flow_counts:
        report_ended_flows(draft)
    judge_run(draft)


def _follow_up(draft: Draft) -> None:
    """Look at what follows from what has happened so far, until nothing does."""
    pool = draft.pool
    for _ in range(ROUNDS_MAX):
        if draft.to_consider:
            _consider_all(draft)
        if draft.to_judge or draft.to_seek:
            judge_all(draft)
        if draft.to_move or draft.to_start:
            _move_chains(draft)
        if draft.to_consider or draft.to_flow_on or draft.to_come:
            _catch_up(draft)
            continue
        if (pool.may_release or pool.counted.emptied) and release_within_limit(draft):
            continue
        if draft.to_judge or draft.to_seek or draft.to_move or draft.to_start:
            continue
        if not (draft.plan.expires and expire_ready(draft)):
            return
    raise AssertionError("the graph goes on for ever without anything to run")


def _catch_up(draft: Draft) -> None:
    """What outputs have led to besides children: suicides, flows that go on, first children."""
    _consider_all(draft)
    flow_on(draft)
    _come_all(draft)


def _consider_all(draft: Draft) -> None:
    todo = draft.to_consider
    draft.to_consider = []
    for node, point, flows in todo:
        consider(draft, node, point, flows)


def _come_all(draft: Draft) -> None:
    todo, draft.to_come = draft.to_come, []
    for node, point, flows in todo:
        if (point, node.name) not in draft.pool.tasks:
            come(draft, node, point, flows)


def _move_chains(draft: Draft) -> None:
    moving, draft.to_move = draft.to_move, []
    starting, draft.to_start = draft.to_start, []
    for task in moving:
        move_on(draft, task)
    for node, flow, first in starting:
        start_chain(draft, node, flow, first)


def evict(draft: Draft) -> None:
    """Drop the memory of points before the horizon, if it has moved."""
    pool = draft.pool
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
    draft.touched.run = True
    needed = plan.concerned if _may_be_settled(pool, horizon) else frozenset[str]()
    for point in gone:
        _evict_point(draft, point, needed)
    # Whoever asks for a family there has it counted again from all that is known.
    for counted in [one for one in pool.groups if one[1] < horizon]:
        del pool.groups[counted]


def _evict_point(draft: Draft, point: Point, needed: frozenset[str]) -> None:
    pool = draft.pool
    there = pool.memory[point]
    dropped = there.keys() - needed
    for name in sorted(dropped):
        memory = there.pop(name)
        draft.touched.forgotten[(point, name)] = memory
        draft.touched.memory.pop((point, name), None)
    if not there:
        del pool.memory[point]


def _may_be_settled(pool: Pool, horizon: Point) -> bool:
    """Whether an atom at a fixed point has no value yet in a flow that is alive.

    One before the horizon has none to come, unless another one brings it.
    """
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
