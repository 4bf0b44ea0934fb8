"""Shows everything about one run: how far each point is, what is active, what delays it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from tidewheel.api.runs import (
    ActiveTask,
    FlowFacts,
    LostTask,
    PointProgress,
    PoolDump,
    RunBounds,
    RunCause,
    RunDocument,
    RunSummary,
    RunWithOptions,
)
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.limits import next_point
from tidewheel.core.sched.pool import FlowState, RunStatus
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.task_state import (
    AtomValue,
    JobPhase,
    Key,
    PooledTask,
    PoolState,
    VerdictKind,
)
from tidewheel.views.run_facts import option_facts, run_facts
from tidewheel.views.snapshot import RunSnapshot, due_times
from tidewheel.views.status_text import DONE, FUTURE, STATES, pooled_state, words_of
from tidewheel.views.why import reason_document, stall_document, waits
from tidewheel.vocabulary import time_text

POINTS_MAX = 1_000  # shown of a run that has more
TASKS_MAX = 1_000  # of any list
POINTS_TO_GO_MAX = 1_000  # counted up to the stop point

Submissions = Mapping[tuple[str, str], Sequence[SubmissionView]]


def run_document(snapshot: RunSnapshot, submissions: Submissions) -> RunDocument:
    """Returns the run, its progress point by point, and what a person should know."""
    known = known_tasks(snapshot)
    points = [_point_document(snapshot, point, there) for point, there in known.items()]
    causes = _causes(snapshot)
    options = option_facts(snapshot.view)
    facts = {**run_facts(snapshot.view, snapshot.now), "options": options}
    return {
        "run": cast("RunWithOptions", facts),
        "waits": waits(snapshot),
        "points": points[-POINTS_MAX:],
        "counts": counts(snapshot, [key for there in known.values() for key in there]),
        "bounds": _bounds(snapshot),
        "stall": stall_document(snapshot),
        "flows": [_flow_document(snapshot, flow) for flow in snapshot.pool.flows.values()],
        "active": list(_active(snapshot, submissions)),
        "held": [snapshot.id_of(key) for key in _held(snapshot)][:TASKS_MAX],
        "causes": [_cause_document(snapshot, task) for task in causes[:TASKS_MAX]],
        "lost": list(lost_chains(snapshot))[:TASKS_MAX],
    }


def _causes(snapshot: RunSnapshot) -> list[PooledTask]:
    """Returns the tasks that keep a run from going on.

    While the run goes on, these are the tasks that never will by themselves.
    """
    if not snapshot.started:
        return []
    found = root_causes(snapshot.pool)
    if snapshot.pool.run.status in (RunStatus.STALLED, RunStatus.WAITING_FOR_RELEASE):
        return found
    return [task for task in found if task.standing is PoolState.INCOMPLETE or task.blocked]


def _held(snapshot: RunSnapshot) -> list[Key]:
    """Returns the held tasks, in the pool or yet to come."""
    pool = snapshot.pool
    pooled = {key for key, task in pool.tasks.items() if task.held}
    return sorted(pooled | pool.run.held_tasks.keys())


def known_tasks(snapshot: RunSnapshot) -> dict[Point, list[Key]]:
    """Returns every task that was spawned or judged, by point; the oldest point first."""
    pool = snapshot.pool
    keys = set(pool.tasks)
    keys |= {(point, name) for point, there in pool.memory.items() for name in there}
    nodes = pool.plan.nodes  # a reload may have taken away some that were remembered
    found: dict[Point, list[Key]] = {}
    there = [key for key in keys if key[1] in nodes]
    for key in sorted(there, key=lambda one: (one[0], nodes[one[1]].rank)):
        # A task may be remembered only because its children asked for an output.
        if words_of(pool, key).state != FUTURE:
            found.setdefault(key[0], []).append(key)
    return found


def counts(snapshot: RunSnapshot, keys: Sequence[Key]) -> dict[str, int]:
    """Counts tasks by state, in the order in which states are shown."""
    counted = Counter(words_of(snapshot.pool, key).state for key in keys)
    return {state: counted[state] for state in STATES if counted[state]}


def _point_document(snapshot: RunSnapshot, point: Point, keys: Sequence[Key]) -> PointProgress:
    pool = snapshot.pool
    states = [words_of(pool, key) for key in keys]
    done = sum(1 for words in states if not words.pooled and words.state in DONE)
    total = sum(1 for node in pool.plan.nodes.values() if node.is_at(point))
    return {
        "point": pool.plan.text(point),
        "tasks": max(total, len(keys)),
        "done": done,
        "counts": counts(snapshot, keys),
    }


def _bounds(snapshot: RunSnapshot) -> RunBounds:
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
    """Counts the points between the newest that was released and the stop point."""
    pool = snapshot.pool
    if pool.run.stop is None:
        return None
    released = [task.point for task in pool.tasks.values() if task.admitted]
    if not released:
        return 0 if snapshot.started else None
    point: Point | None = max(released)
    for count in range(POINTS_TO_GO_MAX):
        assert point is not None
        if point >= pool.run.stop:
            return count
        point = next_point(pool, point)
        if point is None:
            return count
    return POINTS_TO_GO_MAX


def _flow_document(snapshot: RunSnapshot, flow: FlowState) -> FlowFacts:
    text = snapshot.pool.plan.text
    return {
        "flow": flow.number,
        "text": flow.text,
        "tasks": snapshot.pool.flow_counts.get(flow.number, 0),
        "until": None if flow.until is None else text(flow.until),
        "until_tasks": [snapshot.id_of(key) for key in sorted(flow.until_tasks)],
        "stopped": flow.stopped,
    }


def _active(snapshot: RunSnapshot, submissions: Submissions) -> Iterator[ActiveTask]:
    pool = snapshot.pool
    active = sorted(
        (task for task in pool.tasks.values() if task.is_active),
        key=lambda task: (task.point, task.plan.rank),
    )
    for task in active[:TASKS_MAX]:
        words = words_of(pool, task.key)
        text = pool.plan.text(task.point)
        found = {one.task_id: one for one in submissions.get((text, task.plan.name), ())}
        last = next(reversed(found.values()), None)
        yield {
            "id": snapshot.id_of(task.key),
            "state": words.state,
            "remarks": list(words.remarks),
            "flows": sorted(task.flows),
            "submit": task.submit,
            "try": task.try_number,
            "submitted_at": time_text(None if last is None else last.submitted_at),
            "started_at": time_text(None if last is None else last.started_at),
            "worker": None if last is None else last.worker,
        }


def _cause_document(snapshot: RunSnapshot, task: PooledTask) -> RunCause:
    words = words_of(snapshot.pool, task.key)
    reasons = why(snapshot.pool, task.key, due_times(snapshot))
    return {
        "id": snapshot.id_of(task.key),
        "state": words.state,
        "remarks": list(words.remarks),
        "reasons": [reason_document(snapshot.view.name, one) for one in reasons],
    }


def lost_chains(snapshot: RunSnapshot) -> Iterator[LostTask]:
    """Yields every task that will not run because something it needs was lost, and why (§5)."""
    for there in known_tasks(snapshot).values():
        for key in there:
            memory = snapshot.pool.recall(*key)
            verdicts = {} if memory is None else memory.verdicts
            for flow, verdict in sorted(verdicts.items()):
                if verdict.kind is VerdictKind.PRUNED and verdict.death is AtomValue.LOST:
                    chain = chain_text(snapshot.pool, key, flow)
                    yield {"id": snapshot.id_of(key), "flow": flow, "chain": chain}


# A summary says how far a run is, and what a person should look at first.


CAUSES_MAX = 5
POINTS_TO_COME_MAX = 1_000  # counted of a recurrence; of a run with more the total is not known


def summary_document(snapshot: RunSnapshot) -> RunSummary:
    """Returns the run in short; `tasks` counts points that have begun, `total` all points."""
    whole = run_document(snapshot, {})
    points, causes = whole["points"], whole["causes"]
    lost, held, bounds = whole["lost"], whole["held"], whole["bounds"]
    known = sum(one["tasks"] for one in points)
    to_come = _tasks_to_come(snapshot)
    return {
        "run": whole["run"],
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
        "lost": len(lost),
        "held": len(held),
    }


def _tasks_to_come(snapshot: RunSnapshot) -> int | None:
    """Counts the tasks of points that have not begun; None if the run has no end, or a far one.

    Tasks are counted by recurrences: nodes that share these have a task at the same points.
    """
    pool = snapshot.pool
    ends = [end for end in (pool.run.stop, pool.plan.final) if end is not None]
    if not ends:
        return None
    newest = max(known_tasks(snapshot), default=Point(pool.run.start - 1))
    nodes_on = Counter(node.sequences for node in pool.plan.nodes.values())
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


def pool_document(snapshot: RunSnapshot) -> PoolDump:
    """Returns every pooled task, in order of points and names."""
    tasks = sorted(snapshot.pool.tasks.values(), key=lambda task: task.key)
    return {
        "run": snapshot.view.name,
        "status": snapshot.view.status,
        "reason": snapshot.view.reason,
        "tasks": [
            {
                "id": snapshot.id_of(task.key),
                "point": snapshot.pool.plan.text(task.point),
                "name": task.plan.name,
                "state": pooled_state(task),
                "held": task.held,
                "queued": task.standing is PoolState.READY,
                "runahead": task.stage is JobPhase.WAITING and not task.admitted,
                "incomplete": task.standing is PoolState.INCOMPLETE,
                "blocked": task.blocked,
                "flows": sorted(task.flows),
                "submit": task.submit,
            }
            for task in tasks
        ],
    }
