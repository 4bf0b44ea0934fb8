"""Reads what the grid of runs and points shows, of many runs at once and without a definition.

Tasks of a run are stored row by row, in the pool and in what is remembered; those at a point
that stand alike are counted by the database, so that a point is a few rows however many tasks
it has. Nothing here is written as a batch is (docs/decisions/0070).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointWords
from tidewheel.core.operator.views import (
    GridCandidate,
    GridFacts,
    RunView,
    TasksAtPoint,
    TasksDue,
)
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import PooledTaskRow, PutMemory
from tidewheel.core.sched.task_state import NO_FLOW, JobPhase
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.change_rows import memory_of
from tidewheel.store.transaction import Transaction, in_chunks

GRID_RUNS_MAX = 10_000  # looked through for those that a caller may see
GRID_POINTS_MAX = 100
# Counted of one run, and at least its newest point: the rest of a giant is on its own page.
GRID_TASKS_MAX = 20_000
_ENDED_UNKNOWN = "failed"  # a row of format 1 says it at another place


class _State(msgspec.Struct):
    point_words: PointWords | None = None


class _FactsRow(NamedTuple):
    number: int
    state: str | None
    earliest: int | None
    since: Instant | None


class _PooledRow(NamedTuple):
    run: int
    point: int
    tasks: int
    first: str
    stage: int
    missing: bool
    waits: bool
    released: bool
    held: bool
    ended: str | None


class _RememberedRow(NamedTuple):
    run: int
    point: int
    tasks: int
    first: str
    old: str | None
    verdicts: str | None
    made: str | None
    submitted: bool


def grid_runs(tx: Transaction) -> list[GridCandidate]:
    """Returns the newest run of each workflow and all runs that are open, by how much they need
    action, then newest first. Runs that are tasks of a run are not among them."""
    return tx.records("list_grid_runs", GridCandidate, count=GRID_RUNS_MAX)


def grid_facts(tx: Transaction, numbers: Sequence[int]) -> list[tuple[RunView, GridFacts]]:
    """Returns these runs, in this order, each with what a grid shows beside its tasks; those
    that were deleted meanwhile are left out."""
    runs: dict[int, RunView] = {}
    facts: dict[int, GridFacts] = {}
    for chunk in in_chunks(numbers):
        runs |= {one.number: one for one in tx.records("get_runs", RunView, runs=chunk)}
        for row in tx.records("list_grid_facts", _FactsRow, runs=chunk):
            facts[row.number] = GridFacts(
                words=_words(row.state),
                earliest=None if row.earliest is None else Point(row.earliest),
                since=row.since,
            )
    return [(runs[one], facts[one]) for one in numbers if one in runs]


def _words(state: str | None) -> PointWords | None:
    """Returns how a run writes its points; None if it has not begun, or if an earlier version
    stored it last."""
    if state is None or state.startswith("["):
        return None
    return msgspec.json.decode(state, type=_State).point_words


def grid_tasks(
    tx: Transaction, numbers: Sequence[int], points_max: int = 30
) -> list[TasksAtPoint]:
    """Returns the tasks at the newest points of these runs, those that are alike as one."""
    asked = {"points_max": min(points_max, GRID_POINTS_MAX), "tasks_max": GRID_TASKS_MAX}
    found: list[TasksAtPoint] = []
    for chunk in in_chunks(numbers):
        pooled = tx.records("count_pooled_tasks", _PooledRow, runs=chunk, **asked)
        found += map(_pooled, pooled)
        rest = tx.records("count_remembered_tasks", _RememberedRow, runs=chunk, **asked)
        found += map(_remembered, rest)
    return found


def grid_due(tx: Transaction, numbers: Sequence[int]) -> list[TasksDue]:
    """Returns by when how many unfinished tasks of these runs are to finish, by point."""
    found = (
        tx.records("count_due_tasks", TasksDue, runs=chunk) for chunk in in_chunks(numbers)
    )
    return [one for chunk in found for one in chunk]


def _pooled(row: _PooledRow) -> TasksAtPoint:
    point = Point(row.point)
    stage = JobPhase(row.stage)
    is_over = stage is JobPhase.INCOMPLETE
    task = PooledTaskRow(
        point,
        row.first,
        NO_FLOW,
        stage,
        missing=bool(row.missing),
        waits=("",) if row.waits else (),
        released=bool(row.released),
        held=bool(row.held),
        ended=row.ended or (_ENDED_UNKNOWN if is_over else ""),
    )
    return TasksAtPoint(row.run, point, row.tasks, row.first, task, None)


def _remembered(row: _RememberedRow) -> TasksAtPoint:
    point = Point(row.point)
    if row.old is not None:
        memory: PutMemory = memory_of(row.old)
    else:
        said = f'"made":{row.made or "[]"},"verdicts":{row.verdicts or "[]"}'
        submits = int(row.submitted)
        memory = memory_of(f'{{"key":[{point},""],"spawned":[],{said},"submits":{submits}}}')
    return TasksAtPoint(row.run, point, row.tasks, row.first, None, memory)
