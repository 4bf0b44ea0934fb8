"""Queries of the memory store about what happened; writing it down is the tables' own work.

A place is (number, 0): steps of tasks and events of runs are numbered together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.kit.memory.tables import Tables
from tidewheel.store.transaction import Row

__all__ = [
    "find_status_since",
    "get_event_bounds",
    "list_run_history",
    "list_task_events",
]

DELETED_SECONDS_MAX = 2_592_000.0


def get_event_bounds(t: Tables) -> list[Row]:
    floor = t.floor.get("seq", 0)
    head = max((floor, *t.history, *t.run_history))
    return [(head, 0, floor, 0, True)]


def list_task_events(t: Tables, *, major: str, minor: int, count: int) -> list[Row]:
    del minor
    found: list[Row] = []
    for number, row in sorted(t.history.items()):
        if number > int(major) and len(found) < count:
            seq, _, at, *step = row
            task = t.task[seq]
            run = t.run.get(task["run"])
            named = (task["id"], task["queue"], task["name"], run and run["name"])
            found.append((number, 0, at, *named, *step, _exit_status(t, seq, step)))
    return found


def _exit_status(t: Tables, seq: int, step: Sequence[Any]) -> int | None:
    """Of the attempt that ended with this step."""
    signal, _, _, attempt = step[:4]
    over = t.attempt.get((seq, attempt), {})
    return over.get("exit_status") if over.get("ended_by") == signal else None


def list_run_history(t: Tables, *, major: str, minor: int, count: int) -> list[Row]:
    del minor
    found: list[Row] = []
    for number, row in sorted(t.run_history.items()):
        if number > int(major) and len(found) < count:
            change = t.run_change.get((row["run"], row["batch"]))
            said = (row["name"], row["workflow"], row["queue"], row["status"], row["reason"])
            changes = change and change[1]
            found.append((number, 0, row["at"], row["run"], *said, row["batch"], changes))
    return found


# ---- what the triggers of the SQL schemas do ----


def tell_run(t: Tables, run: int) -> None:
    """A run was made, or has another batch or status."""
    row = t.run[run]
    told = {name: row[name] for name in ("name", "workflow", "queue", "status", "reason")}
    number = t.next_number("history")
    t.run_history[number] = told | {"run": run, "batch": row["batch"], "at": row["updated_at"]}


def find_status_since(t: Tables, *, run: int, status: str) -> list[Row]:
    since: float | None = None
    for _, row in sorted(t.run_history.items()):
        if row["run"] == run:
            since = None if row["status"] != status else since or row["at"]
    return [(since,)]


def forget_run(t: Tables, run: int) -> None:
    """A run was deleted; that it was is told for a month."""
    before = t.run[run]["updated_at"] - DELETED_SECONDS_MAX
    for number, row in list(t.run_history.items()):
        is_notice = row["status"] == "deleted"
        if (row["at"] < before) if is_notice else (row["run"] == run):
            del t.run_history[number]
            raise_floor(t, number)


def raise_floor(t: Tables, number: int) -> None:
    """Something with this number was deleted."""
    t.floor["seq"] = max(number, t.floor.get("seq", 0))
