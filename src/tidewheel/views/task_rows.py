"""Every task of a run as flat rows, with the cursor from which events keep them up to date."""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.sched.task_state import Key
from tidewheel.views.events import pooled_document
from tidewheel.views.run import Submissions, known_tasks
from tidewheel.views.run_facts import Document, run_facts
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of
from tidewheel.views.tree import ROOT
from tidewheel.vocabulary import time_text

ROWS_MAX = 20_000  # the newest points, as many as fit


def task_rows_document(
    looked: RunSnapshot,
    submissions: Submissions,
    cursor: str,
    rows_max: int = ROWS_MAX,
    older_points: int = 0,
) -> Document:
    """Those of the newest points first to be kept; `nodes` says what all points share.

    `older_points` are known to nobody but the store.
    """
    by_point = known_tasks(looked)
    shown: list[list[Key]] = []
    count = 0
    for there in reversed(by_point.values()):
        count += len(there)
        if count > rows_max and shown:
            break
        shown.append(there)
    keys = [key for there in reversed(shown) for key in there]
    return {
        "run": run_facts(looked.view, looked.now),
        "batch": looked.view.batch,
        "cursor": cursor,
        "points": [looked.pool.plan.text(there[0][0]) for there in reversed(shown)],
        "points_left_out": older_points + len(by_point) - len(shown),
        "nodes": {name: _node(looked, name) for name in sorted({name for _, name in keys})},
        "tasks": [_row(looked, key, submissions) for key in keys],
    }


def _node(looked: RunSnapshot, name: str) -> Document:
    definition = looked.pool.plan.nodes[name].definition
    families = [one for one in definition.lineage if one != name]
    return {
        "families": families,
        "branch": _branch(looked, families[:1]),
        "title": dict(definition.meta).get("title", ""),
        "rank": looked.pool.plan.nodes[name].rank,
    }


def _branch(looked: RunSnapshot, first: Sequence[str]) -> list[str]:
    """The families in which it is drawn, the outermost first; the root is none."""
    found: list[str] = []
    family = first[0] if first else ""
    while family not in ("", ROOT, *found):
        found.insert(0, family)
        definition = looked.graph.families.get(family)
        family = "" if definition is None else definition.parent or ""
    return found


def _row(looked: RunSnapshot, key: Key, submissions: Submissions) -> Document:
    pool, point = looked.pool, looked.pool.plan.text(key[0])
    task, memory = pool.tasks.get(key), pool.recall(*key)
    remembered = 0 if memory is None else memory.submits
    submit = remembered if task is None else task.submit
    found = submissions.get((point, key[1]), ())
    return pooled_document(point, key[1], words_of(pool, key), submit) | _times(found)


def _times(found: Sequence[SubmissionView]) -> Document:
    """Of the last submission."""
    last = found[-1] if found else None
    return {
        "queued_at": time_text(None if last is None else last.submitted_at),
        "started_at": time_text(None if last is None else last.started_at),
        "ended_at": time_text(None if last is None else last.ended_at),
        "exit_status": None if last is None else last.exit_status,
        "worker": None if last is None else last.worker,
    }
