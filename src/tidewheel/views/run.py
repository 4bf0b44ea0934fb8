"""Shows everything about one run: how far each point is, what is active, what delays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import cast

from tidewheel.api import runs as api
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.elements import nodes_at
from tidewheel.core.sched.flows import active_flows
from tidewheel.core.sched.limits import next_point
from tidewheel.core.sched.missed import missed_texts
from tidewheel.core.sched.pool import FlowState, RunStatus
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.task_state import (
    AtomValue,
    JobPhase,
    Key,
    PoolState,
    VerdictKind,
)
from tidewheel.views.error_groups import BAD_ENDS, failure_groups
from tidewheel.views.run_facts import described, option_facts, run_facts
from tidewheel.views.snapshot import AskedView, RunSnapshot, Submissions
from tidewheel.views.status_text import STATES, is_done, pooled_state, words_of
from tidewheel.views.why import (
    causes_of,
    nested_tasks,
    reason_document,
    reasons_in_nested,
    stall_document,
    task_reasons,
    waits,
)

POINTS_MAX = 1_000  # shown of a run that has more
TASKS_MAX = 1_000  # of any list
GROUPS_MAX = 20  # of failures that are alike
POINTS_TO_GO_MAX = 1_000  # counted up to the stop point


async def run_document(
    asked: AskedView, snapshot: RunSnapshot, submissions: Submissions
) -> api.RunDocument:
    """Returns the run, its progress point by point, and the tasks that need attention."""
    document = _run_alone(snapshot, submissions)
    document["causes"] += await _nested_causes(asked, snapshot)
    document["groups"] = await _groups(asked, snapshot)
    return document


def _run_alone(snapshot: RunSnapshot, submissions: Submissions) -> api.RunDocument:
    known = snapshot.known_tasks()
    points = [point_document(snapshot, point, there) for point, there in known.items()]
    options = option_facts(snapshot.view)
    facts = {**run_facts(snapshot.view, snapshot.now), "options": options}
    pool = snapshot.pool
    held = {key for key, task in pool.tasks.items() if task.held} | pool.run.held_tasks.keys()
    return {
        "run": cast("api.RunWithOptions", facts),
        "stages": snapshot.is_of_stages,
        "waits": waits(snapshot),
        "points": points[-POINTS_MAX:],
        "counts": counts(snapshot, [key for there in known.values() for key in there]),
        "bounds": _bounds(snapshot),
        "stall": stall_document(snapshot),
        "flows": [_flow_document(snapshot, flow) for flow in pool.flows.values()],
        "active": list(_active(snapshot, submissions)),
        "held": [snapshot.id_of(key) for key in sorted(held)][:TASKS_MAX],
        "causes": list(_causes(snapshot)),
        "groups": [],
        "lost": list(islice(_lost_chains(snapshot), TASKS_MAX)),
    }


def _causes(snapshot: RunSnapshot) -> Iterator[api.RunCause]:
    """Yields the tasks that keep a run from going on, with their reasons."""
    run = snapshot.view.name
    for task in causes_of(snapshot)[:TASKS_MAX]:
        reasons = [reason_document(run, one) for one in task_reasons(snapshot, task.key)]
        yield described(api.RunCause, snapshot.shown(task.key), reasons=reasons)


async def _nested_causes(asked: AskedView, snapshot: RunSnapshot) -> list[api.RunCause]:
    """Returns the tasks that are runs of other workflows which do not go on by themselves, with
    the reasons within these."""
    found: list[api.RunCause] = []
    for key in nested_tasks(snapshot):
        reasons = await reasons_in_nested(asked, snapshot, key)
        if not all(one["passes"] for one in reasons):
            found.append(described(api.RunCause, snapshot.shown(key), reasons=reasons))
    return found


async def _groups(asked: AskedView, snapshot: RunSnapshot) -> list[api.ErrorGroup]:
    """Returns what failed, alike together: in a run that goes on the tasks that keep it, in a
    completed one all of them, also those that failed when they ran again."""
    again: list[Key] = []
    if snapshot.view.status == RunStatus.COMPLETED:
        pool, keys = snapshot.pool, list[Key]()
        for key in snapshot.known_keys():
            state = words_of(pool, key).state
            if state in BAD_ENDS:
                keys.append(key)
            elif state == SUCCEEDED and (memory := pool.recall(*key)) and memory.submits > 1:
                again.append(key)
        again = again[-TASKS_MAX:]
    else:
        causes = causes_of(snapshot)
        keys = [one.key for one in causes if one.standing is PoolState.INCOMPLETE]
    keys = [*keys[:TASKS_MAX], *again]
    found = await failure_groups(asked.store, snapshot, keys, frozenset(again))
    return [one.document for one in found[:GROUPS_MAX]]


def work(snapshot: RunSnapshot, keys: Sequence[Key]) -> Sequence[Key]:
    """Returns the tasks that count: in a run of stages not what these only wait for."""
    nodes = snapshot.pool.plan.nodes
    if not snapshot.is_of_stages:
        return keys
    return [key for key in keys if not nodes[key[1]].definition.is_gate]


def counts(snapshot: RunSnapshot, keys: Sequence[Key]) -> dict[str, int]:
    """Counts tasks by state, in the order in which states are shown."""
    counted = Counter(words_of(snapshot.pool, key).state for key in work(snapshot, keys))
    return {state: counted[state] for state in STATES if counted[state]}


def point_document(
    snapshot: RunSnapshot, point: Point, keys: Sequence[Key]
) -> api.PointProgress:
    """Returns how many tasks a point has, and how many of them are done (`is_done`)."""
    pool, keys = snapshot.pool, work(snapshot, keys)
    there = [(point, node.name) for node in nodes_at(pool, point)]
    return {
        "point": pool.plan.text(point),
        "tasks": max(len(work(snapshot, there)), len(keys)),
        "done": sum(is_done(pool, key, words_of(pool, key)) for key in keys),
        "counts": counts(snapshot, keys),
    }


def _bounds(snapshot: RunSnapshot) -> api.RunBounds:
    """Returns where the run begins and ends, and how far it may go just now (R001-31)."""
    pool = snapshot.pool
    run, text = pool.run, pool.plan.text

    def written(point: Point | None) -> str | None:
        return None if point is None else text(point)

    return {
        "initial": text(pool.plan.initial),
        "start": text(run.start),
        "final": written(pool.plan.final),
        "stop": written(run.stop),
        "points_to_stop": _points_to_stop(snapshot),
        "stop_after": None if run.stop_after is None else snapshot.id_of(run.stop_after),
        "hold_after": written(run.hold_after),
        "oldest": written(pool.base),
        "runahead_limit": written(pool.limit),
    }


def _points_to_stop(snapshot: RunSnapshot) -> int | None:
    """Counts the points between the newest that was released and the stop point; None without a
    stop point, or before the run has begun."""
    pool = snapshot.pool
    if pool.run.stop is None:
        return None
    released = [task.point for task in pool.tasks.values() if task.admitted]
    if not released:
        return 0 if snapshot.started else None
    point = max(released)
    for count in range(POINTS_TO_GO_MAX):
        following = next_point(pool, point)
        if point >= pool.run.stop or following is None:
            return count
        point = following
    return POINTS_TO_GO_MAX


def _flow_document(snapshot: RunSnapshot, flow: FlowState) -> api.FlowFacts:
    return described(
        api.FlowFacts,
        flow,
        flow=flow.number,
        tasks=snapshot.pool.flow_counts.get(flow.number, 0),
        until=None if flow.until is None else snapshot.pool.plan.text(flow.until),
        until_tasks=[snapshot.id_of(key) for key in sorted(flow.until_tasks)],
    )


def _active(snapshot: RunSnapshot, submissions: Submissions) -> Iterator[api.ActiveTask]:
    active = sorted(
        (task for task in snapshot.pool.tasks.values() if task.is_active),
        key=lambda task: (task.point, task.plan.order),
    )
    for task in active[:TASKS_MAX]:
        one = snapshot.shown(task.key)
        last = next(reversed(submissions.get((one.point, one.name), ())), None)
        yield described(api.ActiveTask, one, last, **{"try": task.try_number})


def _lost_chains(snapshot: RunSnapshot) -> Iterator[api.LostTask]:
    """Yields every task that will not run because something it needs was lost (§5) or a reload
    brought it too late, and why."""
    for task, text in missed_texts(snapshot.pool).items():
        yield {"id": task, "flow": min(active_flows(snapshot.pool)), "chain": text}
    for key in snapshot.known_keys():
        memory = snapshot.pool.recall(*key)
        verdicts = {} if memory is None else memory.verdicts
        for flow, verdict in sorted(verdicts.items()):
            if verdict.kind is VerdictKind.PRUNED and verdict.death is AtomValue.LOST:
                chain = chain_text(snapshot.pool, key, flow)
                yield {"id": snapshot.id_of(key), "flow": flow, "chain": chain}


# A summary says how far a run is, and what a person should look at first.


CAUSES_MAX = 5
POINTS_TO_COME_MAX = 1_000  # counted of a recurrence; of a run with more the total is not known


async def summary(asked: AskedView) -> api.RunSummary:
    """Shows a run in short; `tasks` counts those of points that have begun, `total` all."""
    snapshot = await asked.snapshot()
    whole = await run_document(asked, snapshot, {})
    points, causes, bounds = whole["points"], whole["causes"], whole["bounds"]
    known = sum(one["tasks"] for one in points)
    to_come = _tasks_to_come(snapshot)
    return {
        "run": whole["run"],
        "stages": snapshot.is_of_stages,
        "batch": snapshot.view.batch,
        "counts": whole["counts"],
        "tasks": known,
        "total": None if to_come is None else known + to_come,
        "done": sum(one["done"] for one in points),
        "points": {
            "known": len(points),
            "oldest": bounds["oldest"],
            "newest": points[-1]["point"] if points else None,
            "final": bounds["stop"] or bounds["final"],
            "to_come": bounds["points_to_stop"],
        },
        "stall": whole["stall"],
        "causes": causes[:CAUSES_MAX],
        "causes_count": len(causes),
        "groups": whole["groups"][:CAUSES_MAX],
        "lost": len(whole["lost"]),
        "held": len(whole["held"]),
    }


def _tasks_to_come(snapshot: RunSnapshot) -> int | None:
    """Counts the tasks of points that have not begun; None if the run has no end, or a far one.
    Tasks are counted by recurrences: nodes that share these have a task at the same points."""
    pool = snapshot.pool
    ends = [end for end in (pool.run.stop, pool.plan.final) if end is not None]
    if not ends:
        return None
    newest = max(snapshot.known_tasks(), default=Point(pool.run.start - 1))
    nodes_on = Counter(
        node.sequences for node in pool.plan.nodes.values() if node.element is None
    )
    total = 0
    for sequences, nodes in nodes_on.items():
        points: set[Point] = set()
        for one in sequences:
            first = one.sequence.next_after(newest)
            if first is not None:
                to_come = one.sequence.points(first, min(ends))
                points.update(islice(to_come, POINTS_TO_COME_MAX))
        if len(points) >= POINTS_TO_COME_MAX:
            return None
        total += nodes * len(points)
    return total


# The dump shows the pool of a run, task by task, as flat rows for scripts.


async def dump(asked: AskedView) -> api.PoolDump:
    """Shows every pooled task, in order of points and names."""
    snapshot = await asked.snapshot()
    rows = [
        described(
            api.PoolRow,
            task,
            id=snapshot.id_of(key),
            point=snapshot.pool.plan.text(task.point),
            name=task.plan.name,
            state=pooled_state(task),
            queued=task.standing is PoolState.READY,
            runahead=task.stage is JobPhase.WAITING and not task.admitted,
            incomplete=task.standing is PoolState.INCOMPLETE,
        )
        for key, task in sorted(snapshot.pool.tasks.items())
    ]
    return described(api.PoolDump, snapshot.view, run=snapshot.view.name, tasks=rows)
