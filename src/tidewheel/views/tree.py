"""A run as a tree: point, family, task, submissions, attempts; the newest points of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidewheel.api.run_details import (
    AttemptInTree,
    RunTree,
    SubmissionInTree,
    TreeBranch,
    TreePoint,
)
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.queue.task import TaskId
from tidewheel.core.sched.task_state import Key
from tidewheel.quantities import show_instant
from tidewheel.views.run import Submissions
from tidewheel.views.run_facts import undone_facts
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import STATES, words_of
from tidewheel.views.why import stall_document
from tidewheel.vocabulary import time_text

ROOT = "root"


class JobsOfRun(NamedTuple):
    """The submissions of a run, and the attempts at those that had several."""

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
        "counts": _counts(snapshot, keys),
        "children": branches[ROOT],
    }


def _grow(snapshot: RunSnapshot, branches: dict[str, list[TreeBranch]], family: str) -> None:
    """The families down to this one, each hung into the one that it is drawn in."""
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
    return {
        "submit": read_job_name(view.task_id).submit,
        "status": view.status,
        "submitted_at": show_instant(view.submitted_at),
        "started_at": time_text(view.started_at),
        "ended_at": time_text(view.ended_at),
        "exit_status": view.exit_status,
        "attempts": list(attempts.get(view.task_id, ())),
    }


def _counts(snapshot: RunSnapshot, keys: Iterable[Key]) -> dict[str, int]:
    counted = Counter(words_of(snapshot.pool, key).state for key in keys)
    return {state: counted[state] for state in STATES if counted[state]}
