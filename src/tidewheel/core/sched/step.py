"""One event, one step: what it changes and what it wants done. The door of this package.

`step` is pure: it sees no clock, no chance and no world; the pool it is given is the only thing
that it changes. A step costs what it touches. It has two halves: the rule of the event, and the
closing, which does what every rule may have made necessary, in this order: judge what can no
longer happen, move chains on, release what is within the runahead limit, until nothing is left;
then submit what is ready, forget what cannot be reached, and judge the run itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.sched import events, holding, jobs, stopping
from tidewheel.core.sched.chains import move_on, start_chain
from tidewheel.core.sched.compile_plan import plan_of
from tidewheel.core.sched.draft import Draft, Touched
from tidewheel.core.sched.effects import Effect
from tidewheel.core.sched.events import Event
from tidewheel.core.sched.expiry import expire_ready
from tidewheel.core.sched.flow_endings import report_ended_flows
from tidewheel.core.sched.flowing_on import flow_on
from tidewheel.core.sched.housekeeping import forget
from tidewheel.core.sched.judgement import judge_all
from tidewheel.core.sched.limits import submit_ready
from tidewheel.core.sched.outputs import come
from tidewheel.core.sched.pool import Past, Pool, RunState
from tidewheel.core.sched.records import Change, changes
from tidewheel.core.sched.reload import reloaded
from tidewheel.core.sched.removing import removed
from tidewheel.core.sched.runahead import release_within_limit
from tidewheel.core.sched.setting import outputs_set, prerequisites_set
from tidewheel.core.sched.stall import judge_run
from tidewheel.core.sched.starting import run_started
from tidewheel.core.sched.suicide import consider
from tidewheel.core.sched.triggering import triggered

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
        events.JobSubmitted: jobs.job_submitted,
        events.OutputMade: jobs.output_made,
        events.JobEnded: jobs.job_ended,
        events.TimerFired: jobs.timer_fired,
        events.XtriggerSatisfied: jobs.xtrigger_satisfied,
        events.Trigger: triggered,
        events.SetOutputs: outputs_set,
        events.SetPrerequisites: prerequisites_set,
        events.Remove: removed,
        events.Hold: holding.held,
        events.Release: holding.released,
        events.HoldAfter: holding.all_held_after,
        events.ReleaseAll: holding.all_released,
        events.Kill: holding.killed,
        events.Poll: holding.polled,
        events.Pause: stopping.paused,
        events.Resume: stopping.resumed,
        events.Stop: stopping.stopped,
        events.StopAtPoint: stopping.stop_point_set,
        events.StopAfterTask: stopping.stop_task_set,
        events.StopFlow: stopping.flow_stopped,
        events.RunContinued: stopping.run_continued,
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
        forget(draft)
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
