"""Shows every task of a run as flat rows, which events keep up to date, and as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidewheel.api.run_details import (
    AttemptInTree,
    RunTree,
    SubmissionInTree,
    TreeBranch,
    TreePoint,
)
from tidewheel.api.runs import AttemptOfRun, NodeFacts, RunAttempts, RunTasks, TaskOfRun
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import RunAttempt, RunView, SubmissionView
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.task_state import Key
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.views.events import pooled_document
from tidewheel.views.run import Submissions, counts, known_tasks
from tidewheel.views.run_facts import described, run_facts, undone_facts
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of
from tidewheel.views.why import stall_document
from tidewheel.vocabulary import time_text

ROWS_MAX = 20_000  # the newest points, as many as fit


def task_rows_document(
    snapshot: RunSnapshot,
    submissions: Submissions,
    cursor: str,
    rows_max: int = ROWS_MAX,
    older_points: int = 0,
) -> RunTasks:
    """Returns the tasks of the newest points; `nodes` says what all points share.

    `older_points` is the number of points that only the store knows.
    """
    by_point = known_tasks(snapshot)
    shown: list[list[Key]] = []
    count = 0
    for there in reversed(by_point.values()):
        count += len(there)
        if count > rows_max and shown:
            break
        shown.append(there)
    keys = [key for there in reversed(shown) for key in there]
    return {
        "run": run_facts(snapshot.view, snapshot.now),
        "batch": snapshot.view.batch,
        "cursor": cursor,
        "points": [snapshot.pool.plan.text(there[0][0]) for there in reversed(shown)],
        "points_left_out": older_points + len(by_point) - len(shown),
        "nodes": {name: _node(snapshot, name) for name in sorted({name for _, name in keys})},
        "tasks": [_row(snapshot, key, submissions) for key in keys],
    }


def _node(snapshot: RunSnapshot, name: str) -> NodeFacts:
    definition = snapshot.pool.plan.nodes[name].definition
    families = [one for one in definition.lineage if one != name]
    return {
        "families": families,
        "branch": _branch(snapshot, families[:1]),
        "title": dict(definition.meta).get("title", ""),
        "rank": snapshot.pool.plan.nodes[name].rank,
    }


def _branch(snapshot: RunSnapshot, first: Sequence[str]) -> list[str]:
    """Returns the families in which a node is drawn, the outermost first, without the root."""
    found: list[str] = []
    family = first[0] if first else ""
    while family not in ("", ROOT, *found):
        found.insert(0, family)
        definition = snapshot.graph.families.get(family)
        family = "" if definition is None else definition.parent or ""
    return found


def _row(snapshot: RunSnapshot, key: Key, submissions: Submissions) -> TaskOfRun:
    pool, point = snapshot.pool, snapshot.pool.plan.text(key[0])
    task, memory = pool.tasks.get(key), pool.recall(*key)
    remembered = 0 if memory is None else memory.submits
    submit = remembered if task is None else task.submit
    found = submissions.get((point, key[1]), ())
    last = found[-1] if found else None
    return {
        **pooled_document(point, key[1], words_of(pool, key), submit),
        "queued_at": time_text(None if last is None else last.submitted_at),
        "started_at": time_text(None if last is None else last.started_at),
        "ended_at": time_text(None if last is None else last.ended_at),
        "exit_status": None if last is None else last.exit_status,
        "worker": None if last is None else last.worker,
    }


# The views below show every attempt with its times and resources, for timelines and
# distributions.


SUBMISSIONS_MAX = 10_000


async def attempts_document(store: Store, view: RunView, count: int) -> RunAttempts:
    """Returns the attempts of a run, oldest first; `left_out`: there may be older ones."""
    limit = min(count, SUBMISSIONS_MAX)
    found = await store.run_attempts(view.number, limit)
    return {
        "run": view.name,
        "now": show_instant(await store.now()),
        "attempts": list(_in_order(found[::-1])),
        "left_out": len({one.task_id for one in found}) == limit,
    }


async def repeated_attempts(
    store: Store, view: RunView, submissions: Iterable[SubmissionView]
) -> dict[TaskId, list[AttemptInTree]]:
    """Returns the attempts at submissions that had several; the submission tells of one
    alone."""
    several = {one.task_id for one in submissions if one.attempt > 1}
    found: dict[TaskId, list[AttemptInTree]] = {}
    if several:
        for one in (await store.run_attempts(view.number, SUBMISSIONS_MAX))[::-1]:
            if one.task_id in several and one.claimed_at is not None:
                found.setdefault(one.task_id, []).append(described(AttemptInTree, one))
    return found


def _in_order(attempts: Sequence[RunAttempt]) -> Iterator[AttemptOfRun]:
    """Yields attempts in order; one that follows another waits since that one ended."""
    over: dict[TaskId, Instant | None] = {}
    for one in attempts:
        waits_since = over.get(one.task_id) or one.submitted_at
        over[one.task_id] = one.ended_at
        yield _attempt(one, waits_since)


def _attempt(one: RunAttempt, queued_at: Instant) -> AttemptOfRun:
    job = read_job_name(one.task_id)
    return described(
        AttemptOfRun,
        one,
        id=f"{job.point}/{job.node}",
        point=job.point,
        name=job.node,
        submit=job.submit,
        task=one.task_id,
        queued_at=show_instant(queued_at),
        asked={
            "cpu": one.cpu_asked,
            "memory_bytes": one.memory_asked_bytes,
            "gpu": one.gpu_asked,
        },
        used={
            "memory_bytes": one.memory_used_bytes,
            "cpu_percent": one.cpu_used_percent,
            "gpu_percent": one.gpu_used_percent,
            "gpu_memory_bytes": one.gpu_memory_used_bytes,
        },
    )


# The tree shows a run by point, family, task, submission and attempt; the newest points only.


ROOT = "root"


class JobsOfRun(NamedTuple):
    """Holds the submissions of a run, and the attempts at those that had several."""

    submissions: Submissions
    attempts: Mapping[TaskId, Sequence[AttemptInTree]]


def tree_document(
    snapshot: RunSnapshot,
    keys: Iterable[Key],
    jobs: JobsOfRun,
    *,
    distances: Mapping[Key, int] | None = None,
    points_max: int | None = None,
) -> RunTree:
    """Returns these tasks as a tree; `distances` are their numbers of edges from the pool."""
    by_point: dict[Point, list[Key]] = {}
    for key in keys:
        by_point.setdefault(key[0], []).append(key)
    points = sorted(by_point)
    shown = points if points_max is None else points[-points_max:]
    return {
        "run": snapshot.view.name,
        "status": snapshot.view.status,
        "undone": undone_facts(snapshot.view.reason),
        "stall": stall_document(snapshot),
        "left_out": len(points) - len(shown),
        "points": [
            _point_document(snapshot, point, by_point[point], jobs, distances or {})
            for point in shown
        ],
    }


def _point_document(
    snapshot: RunSnapshot,
    point: Point,
    keys: Sequence[Key],
    jobs: JobsOfRun,
    distances: Mapping[Key, int],
) -> TreePoint:
    nodes = snapshot.pool.plan.nodes
    branches: dict[str, list[TreeBranch]] = {ROOT: []}
    for key in sorted(keys, key=lambda one: nodes[one[1]].rank):
        lineage = nodes[key[1]].definition.lineage
        family = next((one for one in lineage if one != key[1]), ROOT)
        _grow(snapshot, branches, family)
        branches[family].append(_task_document(snapshot, key, jobs, distances))
    return {
        "point": snapshot.pool.plan.text(point),
        "counts": counts(snapshot, keys),
        "children": branches[ROOT],
    }


def _grow(snapshot: RunSnapshot, branches: dict[str, list[TreeBranch]], family: str) -> None:
    """Adds the families down to this one, each to the family in which it is drawn."""
    while family not in branches:
        definition = snapshot.graph.families.get(family)
        parent = ROOT if definition is None else definition.parent or ROOT
        branches[family] = []
        branch: TreeBranch = {"name": family, "family": True, "children": branches[family]}
        if parent in branches:
            branches[parent].append(branch)
            return
        _grow(snapshot, branches, parent)
        branches[parent].append(branch)


def _task_document(
    snapshot: RunSnapshot, key: Key, jobs: JobsOfRun, distances: Mapping[Key, int]
) -> TreeBranch:
    words = words_of(snapshot.pool, key)
    found = jobs.submissions.get((snapshot.pool.plan.text(key[0]), key[1]), ())
    return {
        "name": key[1],
        "family": False,
        "id": snapshot.id_of(key),
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "distance": distances.get(key, 0 if words.pooled else None),
        "submissions": [_submission_document(one, jobs.attempts) for one in found],
    }


def _submission_document(
    view: SubmissionView, attempts: Mapping[TaskId, Sequence[AttemptInTree]]
) -> SubmissionInTree:
    submit, several = read_job_name(view.task_id).submit, attempts.get(view.task_id, ())
    return described(SubmissionInTree, view, submit=submit, attempts=list(several))
