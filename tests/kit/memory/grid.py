"""Queries of the memory store for the grid of runs and points."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.kit.memory.stream import find_status_since
from tests.kit.memory.tables import Record, Tables
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.task_state import JobPhase
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "count_due_tasks",
    "count_pooled_tasks",
    "count_remembered_tasks",
    "get_runs",
    "list_grid_facts",
    "list_grid_runs",
]

_NEED_ACTION, _OVER = ("stalled", "error"), ("completed", "stopped", "created")


def list_grid_runs(t: Tables, count: int) -> list[Row]:
    there = [
        run for run in t.run.values() if run["parent"] is None and run["status"] != "deleted"
    ]
    newest = {one["workflow"]: one["number"] for one in there}  # numbers rise
    shown = [
        one
        for one in there
        if one["number"] == newest[one["workflow"]] or one["status"] not in (*_OVER, "error")
    ]

    def place(run: Record) -> tuple[int, int]:
        status = run["status"]
        need = 0 if status in _NEED_ACTION else 2 if status in _OVER else 1
        return need, -run["number"]

    names = ("number", "name", "workflow", "status")
    return [tuple(one[name] for name in names) for one in sorted(shown, key=place)[:count]]


def get_runs(t: Tables, runs: Sequence[int]) -> list[Row]:
    there = (t.run[number] for number in runs if number in t.run)
    names = columns_of(RunView)
    return [tuple(one[name] for name in names) for one in there if one["status"] != "deleted"]


def list_grid_facts(t: Tables, runs: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for number in runs:
        if number in t.run:
            status = t.run[number]["status"]
            [(since,)] = find_status_since(t, run=number, status=status)
            state = t.fact.get((number, "run", ""))
            points = [key[1] for key in t.pool if key[0] == number]
            found.append(
                (
                    number,
                    None if state is None else state["body"],
                    min(points, default=None),
                    since if status in _NEED_ACTION else None,
                )
            )
    return found


def _newest(
    t: Tables, runs: Sequence[int], points_max: int, tasks_max: int
) -> Iterator[tuple[int, int]]:
    for number in runs:
        there = Counter(
            key[1] for table in (t.pool, t.memory) for key in table if key[0] == number
        )
        counted = 0
        before = 0
        for place, point in enumerate(sorted(there, reverse=True)):
            if place >= points_max or (place and before >= tasks_max):
                break
            yield number, point
            before, counted = counted, counted + there[point]


def _counted(found: Iterator[tuple[Any, str]]) -> list[Row]:
    """Rows (run, point, count, first, …) of what is alike, from keys and names."""
    alike: dict[Any, list[str]] = {}
    for key, name in found:
        alike.setdefault(key, []).append(name)
    return [
        (*key[:2], len(names), min(names), *key[2:])
        for key, names in sorted(alike.items(), key=str)
    ]


def count_pooled_tasks(
    t: Tables, *, runs: Sequence[int], points_max: int, tasks_max: int
) -> list[Row]:
    shown = set(_newest(t, runs, points_max, tasks_max))

    def rows() -> Iterator[tuple[Any, str]]:
        for (run, point, name), row in t.pool.items():
            if (run, point) in shown:
                said = json.loads(row["body"])
                flags = (one in said for one in ("missing", "waits", "released", "held"))
                yield (run, point, row["stage"], *flags, said.get("ended")), name

    return _counted(rows())


def count_remembered_tasks(
    t: Tables, *, runs: Sequence[int], points_max: int, tasks_max: int
) -> list[Row]:
    shown = set(_newest(t, runs, points_max, tasks_max))

    def rows() -> Iterator[tuple[Any, str]]:
        for (run, point, name), row in t.memory.items():
            if (run, point) in shown and (run, point, name) not in t.pool:
                said = json.loads(row["body"])
                verdicts, made = (_text(said.get(one)) for one in ("verdicts", "made"))
                ended = (verdicts, None if verdicts else made)
                yield (run, point, None, *ended, row["submits"] > 0), name

    return _counted(rows())


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def count_due_tasks(t: Tables, runs: Sequence[int]) -> list[Row]:
    there = Counter(
        (*key[:2], row["at"])
        for key, row in t.timer.items()
        if key[0] in runs and key[3] == "late"
        if (task := t.pool.get(key[:3])) is not None and task["stage"] != JobPhase.INCOMPLETE
    )
    return [(*key, count) for key, count in sorted(there.items())]
