"""Shows every task of a run as flat rows, which events keep up to date, and as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from tidewheel.api import run_details as api
from tidewheel.api.runs import AttemptOfRun, NodeFacts, RunAttempts, RunTasks, TaskOfRun
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.shown_names import stage_text
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import RunAttempt
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.task_state import Key
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import show_instant
from tidewheel.views.run import point_document
from tidewheel.views.run_facts import described, job_facts, run_facts, undone_facts
from tidewheel.views.snapshot import AskedView, RunSnapshot, Submissions
from tidewheel.views.task_lookup import find_tasks, window
from tidewheel.views.why import stall_document
from tidewheel.vocabulary import time_text

ROWS_MAX = 20_000  # the newest points, as many as fit


async def tasks(asked: AskedView) -> RunTasks:
    """Shows the tasks of the newest points, and the cursor from which events keep them up to
    date.

    Reads the cursor before the rows, so that these are at least as new as it.
    """
    cursor = str(await asked.store.events_head())
    return task_rows_document(await asked.snapshot(), await asked.submissions(), cursor)


def task_rows_document(
    snapshot: RunSnapshot,
    submissions: Submissions,
    cursor: str,
    rows_max: int = ROWS_MAX,
    older_points: int = 0,
) -> RunTasks:
    """Returns the tasks of the newest points; `nodes` says what all tasks of a node share.

    `older_points` is the number of points that only the store knows.
    """
    by_point = snapshot.known_tasks()
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
        "stages": snapshot.is_of_stages,
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
    facts: NodeFacts = {
        "families": families,
        "branch": _branch(snapshot, families[:1]),
        "title": dict(definition.meta).get("title", ""),
        "rank": snapshot.pool.plan.nodes[name].rank,
    }
    if snapshot.is_of_stages:
        facts["shown"] = stage_text(definition)
    return facts


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
    one = snapshot.shown(key)
    last = next(reversed(submissions.get((one.point, one.name), ())), None)
    queued_at = time_text(None if last is None else last.submitted_at)
    return described(TaskOfRun, one, last, queued_at=queued_at)


# The views below show every attempt with its times and resources, for timelines and
# distributions.


SUBMISSIONS_MAX = 10_000


async def attempts(asked: AskedView) -> RunAttempts:
    """Shows the attempts of a run, oldest first; `left_out`: there may be older ones."""
    limit = min(asked.number("count") or 1_000, SUBMISSIONS_MAX)
    found = await asked.store.run_attempts(asked.run.number, limit)
    return {
        "run": asked.run.name,
        "now": show_instant(await asked.store.now()),
        "attempts": list(_in_order(found[::-1])),
        "left_out": len({one.task_id for one in found}) == limit,
    }


def _in_order(attempts: Sequence[RunAttempt]) -> Iterator[AttemptOfRun]:
    """Yields attempts in order; a later attempt at a submission counts as queued since the one
    before it ended."""
    over: dict[TaskId, Instant | None] = {}
    for one in attempts:
        waits_since = over.get(one.task_id) or one.submitted_at
        over[one.task_id] = one.ended_at
        asked = {
            "cpu": one.cpu_asked,
            "memory_bytes": one.memory_asked_bytes,
            "gpu": one.gpu_asked,
        }
        used = {
            "memory_bytes": one.memory_used_bytes,
            "cpu_percent": one.cpu_used_percent,
            "gpu_percent": one.gpu_used_percent,
            "gpu_memory_bytes": one.gpu_memory_used_bytes,
        }
        given = job_facts(one) | {"queued_at": show_instant(waits_since)}
        yield described(AttemptOfRun, one, **given, asked=asked, used=used)


# The tree shows a run by point, family, task, submission and attempt; the newest points only.


ROOT = "root"
TREE_POINTS = 10  # the newest, unless more are asked for


async def tree(asked: AskedView) -> api.RunTree:
    """Shows tasks as a tree: those near the pool, those that are named, or the newest."""
    snapshot, edges, ids = await asked.snapshot(), asked.number("window"), asked.texts("ids")
    keys: Iterable[Key] = ()
    points_max, distances = None, {}
    if edges is not None:
        keys = distances = window(snapshot.pool, edges)
    elif ids:
        keys = find_tasks(snapshot, ids)
    else:
        keys = snapshot.known_keys()
        points_max = None if asked.arguments.get("all") else TREE_POINTS
    by_point: dict[Point, list[Key]] = {}
    for key in keys:
        by_point.setdefault(key[0], []).append(key)
    points = sorted(by_point)
    shown = points if points_max is None else points[-points_max:]
    submissions = await asked.submissions()
    attempts = await _repeated(asked, submissions)
    drawn = _Tree(snapshot, submissions, attempts, distances)
    return {
        "run": snapshot.view.name,
        "stages": snapshot.is_of_stages,
        "status": snapshot.view.status,
        "undone": undone_facts(snapshot.view.reason),
        "mode": snapshot.view.options.mode,
        "stall": stall_document(snapshot),
        "left_out": len(points) - len(shown),
        "points": [drawn.point(point, by_point[point]) for point in shown],
    }


async def _repeated(
    asked: AskedView, submissions: Submissions
) -> dict[TaskId, list[api.AttemptInTree]]:
    """Returns the attempts at each submission that had several; a submission with one attempt
    has the same times itself."""
    all_of_them = chain.from_iterable(submissions.values())
    found: dict[TaskId, list[api.AttemptInTree]] = {
        one.task_id: [] for one in all_of_them if one.attempt > 1
    }
    if found:
        for one in (await asked.store.run_attempts(asked.run.number, SUBMISSIONS_MAX))[::-1]:
            if one.task_id in found and one.claimed_at is not None:
                found[one.task_id].append(described(api.AttemptInTree, one))
    return found


class _Tree(NamedTuple):
    """Builds the tree of a run; `attempts` are those at submissions that had several."""

    snapshot: RunSnapshot
    submissions: Submissions
    attempts: Mapping[TaskId, Sequence[api.AttemptInTree]]
    distances: Mapping[Key, int]  # of tasks, in edges from the pool

    def point(self, point: Point, keys: Sequence[Key]) -> api.TreePoint:
        nodes = self.snapshot.pool.plan.nodes
        branches: dict[str, list[api.TreeBranch]] = {ROOT: []}
        for key in sorted(keys, key=lambda one: nodes[one[1]].order):
            lineage = nodes[key[1]].definition.lineage
            family = next((one for one in lineage if one != key[1]), ROOT)
            self._grow(branches, family)
            branches[family].append(self._task(key))
        return {**point_document(self.snapshot, point, keys), "children": branches[ROOT]}

    def _grow(self, branches: dict[str, list[api.TreeBranch]], family: str) -> None:
        """Adds a family to the tree, and before it those around it that are not there yet."""
        if family in branches:
            return
        definition = self.snapshot.graph.families.get(family)
        parent = ROOT if definition is None else definition.parent or ROOT
        branches[family] = []
        self._grow(branches, parent)
        branches[parent].append({"name": family, "family": True, "children": branches[family]})

    def _task(self, key: Key) -> api.TreeBranch:
        one = self.snapshot.shown(key)
        found: api.TreeBranch = {
            "name": one.name,
            "family": False,
            "id": one.id,
            "state": one.state,
            "remarks": list(one.remarks),
            "flows": sorted(one.flows),
            "distance": self.distances.get(key, 0 if one.in_pool else None),
            "submissions": [
                described(
                    api.SubmissionInTree,
                    view,
                    submit=read_job_name(view.task_id).submit,
                    attempts=list(self.attempts.get(view.task_id, ())),
                )
                for view in self.submissions.get((one.point, one.name), ())
            ],
        }
        if self.snapshot.is_of_stages:
            found["shown"] = one.shown
        return found
