"""Queries of the memory store that only look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from tests.kit.memory.changes import matches
from tests.kit.memory.leases import aged_priority, can_be_claimed
from tests.kit.memory.tables import Record, Tables
from tidewheel.api.tasks import Task
from tidewheel.core.queue.dependency import EdgeState
from tidewheel.core.queue.status import FINAL, LEASED, Status, legal_steps
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "count_failed_tasks",
    "count_tasks",
    "find_expired_tasks",
    "find_next_aged_tasks",
    "find_next_tasks",
    "find_queue_tasks",
    "find_task",
    "find_task_words",
    "find_tasks",
    "find_tasks_by_exact",
    "find_tasks_by_name",
    "find_tasks_by_estimated_runtime_seconds_max",
    "find_tasks_by_memory_bytes_min",
    "find_leased_tasks",
    "find_ready_tasks",
    "find_unwell_tasks",
    "find_waiting_tasks",
    "find_tasks_by_tag",
    "get_tasks",
    "get_tasks_by_id",
    "list_attempts",
    "list_edges",
    "list_history",
    "list_inputs",
    "list_limits",
    "list_ended_attempts",
    "list_messages",
    "list_queues",
    "list_ready_queues",
    "list_recent_queues",
    "list_usage",
    "list_values",
    "verify_attempts",
    "verify_ends",
    "verify_keys",
    "verify_leases",
    "verify_progress",
    "verify_ready",
    "verify_references",
    "verify_steps",
    "verify_waiting",
]


_ATTEMPT = (
    *("worker", "claimed_at", "started_at", "ended_at", "ended_by", "exit_status"),
    *("error_code", "error_args", "error_description", "metrics"),
)


def _view(t: Tables, task: Record) -> Row:
    seq = task["seq"]
    lease = t.lease.get(seq, {})
    attempt = t.attempt.get((seq, task["attempt"]), {})
    open_needs = sum(
        1 for key, state in t.edge.items() if key[1] == seq and state is EdgeState.OPEN
    )
    progress = lease["progress"] if lease else task["progress"]
    beaten_at = lease["deadline_at"] - lease["lease_seconds"] if lease else 0.0
    return tuple(
        {
            **task,
            "progress": progress if lease or task["status"] in FINAL else 0.0,
            "due_at": _still_due(task, t.clock()),
            "updated_at": max(task["updated_at"], beaten_at),
            "deadline_at": lease.get("deadline_at"),
            "error_code": attempt.get("error_code"),
            "error_args": attempt.get("error_args"),
            "error_description": attempt.get("error_description"),
            "open_needs": open_needs,
            "withdrawn": task["status"] == Status.READY and not can_be_claimed(t, task),
        }[name]
        for name in columns_of(Task)
    )


def _still_due(task: Record, now: float) -> float | None:
    due_at: float | None = task["due_at"]
    waits = task["status"] in (Status.WAITING, Status.READY)
    return due_at if waits and due_at is not None and due_at > now else None


def find_task(t: Tables, id: str) -> list[Row]:
    return [(t.id[id],)] if id in t.id else []


def get_tasks(t: Tables, seqs: Sequence[int]) -> list[Row]:
    return [_view(t, t.task[seq]) for seq in seqs if seq in t.task]


def get_tasks_by_id(t: Tables, ids: Sequence[str]) -> list[Row]:
    return get_tasks(t, [t.id[one] for one in ids if one in t.id])


def find_tasks(t: Tables, *, before: int, count: int, **given: Any) -> list[Row]:
    found = [seq for seq, task in t.task.items() if seq < before and matches(task, given)]
    return [(seq,) for seq in sorted(found, reverse=True)[:count]]


def find_ready_tasks(t: Tables, **given: Any) -> list[Row]:
    found = _find_status(t, Status.READY, given | {"count": len(t.task)})
    return [row for row in found if can_be_claimed(t, t.task[row[0]])][: given["count"]]


def find_waiting_tasks(t: Tables, **given: Any) -> list[Row]:
    return _find_status(t, Status.WAITING, given)


def find_leased_tasks(t: Tables, *, status: str, **given: Any) -> list[Row]:
    return _find_status(t, status, given)


find_unwell_tasks = find_leased_tasks


def _find_status(t: Tables, status: str, given: Record) -> list[Row]:
    return find_tasks(t, **(given | {"any_status": False, "statuses": [status]}))


# Without indexes every way leads through the same rows.
find_tasks_by_tag = find_tasks_by_memory_bytes_min = find_tasks
find_tasks_by_estimated_runtime_seconds_max = find_tasks
find_tasks_by_name = find_queue_tasks = find_tasks


def find_tasks_by_exact(t: Tables, *, exact: str, **given: Any) -> list[Row]:
    found = find_tasks(t, **(given | {"count": len(t.task) + 1}))
    named = [row for row in found if exact in (t.task[row[0]]["id"], t.task[row[0]]["name"])]
    return named[: given["count"]]


def find_task_words(t: Tables, seqs: Sequence[int]) -> list[Row]:
    return [(seq, t.task[seq]["id"], t.task[seq]["name"]) for seq in seqs if seq in t.task]


def find_next_tasks(t: Tables, *, queue: str, count: int) -> list[Row]:
    first = sorted(_due(t, queue), key=lambda task: (-task["priority"], task["seq"]))
    return [(task["seq"],) for task in first[:count]]


def find_next_aged_tasks(t: Tables, *, queue: str, count: int) -> list[Row]:
    now = t.clock()
    first = sorted(_due(t, queue), key=lambda task: (-aged_priority(task, now), task["seq"]))
    return [(task["seq"],) for task in first[:count]]


def _due(t: Tables, queue: str) -> list[Record]:
    now = t.clock()
    return [
        task
        for task in t.task.values()
        if task["queue"] == queue
        and can_be_claimed(t, task)
        and (task["due_at"] is None or task["due_at"] <= now)
    ]


def find_expired_tasks(t: Tables, *, retention_seconds: float, count: int) -> list[Row]:
    before = t.clock() - retention_seconds
    needed = {parent for parent, child, _ in t.edge if t.task[child]["status"] not in FINAL}
    old = [
        task
        for task in t.task.values()
        if task["status"] in FINAL
        and task["run"] is None
        and task["updated_at"] < before
        and task["seq"] not in needed
    ]
    first = sorted(old, key=lambda task: (task["updated_at"], task["seq"]))[:count]
    return [(task["seq"],) for task in first]


def list_history(t: Tables, *, seq: int, after: int, count: int) -> list[Row]:
    rows = [row for row in _history(t).get(seq, ()) if row[1] > after]
    return [row[1:] for row in rows[:count]]


def list_attempts(t: Tables, seq: int) -> list[Row]:
    names = _ATTEMPT
    rows: list[Row] = [
        (attempt, *(row[name] for name in names))
        for (of, attempt), row in sorted(t.attempt.items())
        if of == seq
    ]
    if lease := t.lease.get(seq):
        live = (lease["attempt"], lease["owner"], lease["claimed_at"], lease["started_at"])
        rows.append(live + (None,) * 7)
    return rows


def list_ended_attempts(
    t: Tables, *, count: int, before_seq: int | None, before_attempt: int | None
) -> list[Row]:
    before = (before_seq, before_attempt)
    found = [one for one in t.attempt.items() if before_seq is None or one[0] < before]
    latest = sorted(found, reverse=True)[:count]
    return [
        (*_ended_attempt(t, seq, attempt, row), seq, attempt) for (seq, attempt), row in latest
    ]


def _ended_attempt(t: Tables, seq: int, attempt: int, row: Record) -> Row:
    task = t.task[seq]
    used = [one for one in t.usage.values() if one[:2] == (seq, attempt)]
    memory = [one[3] for one in used if one[3] is not None]
    cpu = [one[4] for one in used if one[4] is not None]
    begun = row["claimed_at"] if row["started_at"] is None else row["started_at"]
    return (
        *(task["queue"], task["name"], row["ended_by"]),
        row["claimed_at"] - task["created_at"] if attempt == 1 else None,
        row["ended_at"] - begun,
        *(task["cpu"], task["memory_bytes"]),
        max(memory, default=None),
        sum(cpu) / len(cpu) if cpu else None,
    )


def list_messages(t: Tables, seq: int) -> list[Row]:
    return [
        (attempt, number, row["at"], row["text"], row["output"])
        for (of, attempt, number), row in sorted(t.message.items())
        if of == seq
    ]


def list_usage(t: Tables, seq: int) -> list[Row]:
    return [row[1:] for row in t.usage.values() if row[0] == seq]


def list_values(t: Tables, ids: Sequence[str]) -> list[Row]:
    return [
        (id_, t.values[seq]["body"])
        for id_ in ids
        if (seq := t.id.get(id_)) in t.values
        and t.values[seq]["attempt"] == t.task[seq]["attempt"]
    ]


def list_inputs(t: Tables, seq: int) -> list[Row]:
    found = []
    for parent in sorted({parent for parent, child, _ in t.edge if child == seq}):
        task, told = t.task[parent], t.values.get(parent)
        if told is None:
            continue
        if told["attempt"] == task["attempt"] or task["status"] != Status.SUCCEEDED.value:
            found.append((task["id"], task["queue"], told["body"]))
    return found


def list_edges(t: Tables, seqs: Sequence[int]) -> list[Row]:
    asked = set(seqs)
    return [
        (t.task[parent]["id"], t.task[child]["id"], output, state.value)
        for (parent, child, output), state in sorted(t.edge.items())
        if parent in asked or child in asked
    ]


def list_recent_queues(t: Tables, count: int) -> list[Row]:
    newest = sorted(t.task, reverse=True)[:count]
    return [(queue,) for queue in {t.task[seq]["queue"] for seq in newest}]


def list_queues(t: Tables) -> list[Row]:
    return [
        (
            name,
            *(row[part] for part in ("paused", "aging", "fair", "fence_kill", "lease_seconds")),
        )
        for name, row in sorted(t.queue.items())
    ]


def list_ready_queues(t: Tables) -> list[Row]:
    ready: dict[str, int] = {}
    for task in t.task.values():
        if can_be_claimed(t, task):
            queue, priority = task["queue"], task["priority"]
            ready[queue] = max(priority, ready.get(queue, priority))
    return sorted(ready.items())


def list_limits(t: Tables) -> list[Row]:
    return [
        (queue, limit.key, limit.concurrency_max, limit.rate_max, limit.rate_seconds)
        for (queue, _), limit in sorted(t.limit.items())
    ]


def count_tasks(t: Tables) -> list[Row]:
    found: dict[tuple[str, str], list[Record]] = {}
    for task in t.task.values():
        is_ready = task["status"] == Status.READY
        if can_be_claimed(t, task) if is_ready else task["status"] not in FINAL:
            found.setdefault((task["queue"], task["status"]), []).append(task)
    now = t.clock()
    return [
        (queue, status, len(tasks), _oldest(tasks, now))
        for (queue, status), tasks in sorted(found.items())
    ]


def count_failed_tasks(t: Tables, count: int) -> list[Row]:
    failed = [seq for seq, task in t.task.items() if task["status"] == Status.FAILED]
    newest = sorted(failed, reverse=True)[:count]
    return list(Counter(t.task[seq]["queue"] for seq in newest).items())


def _oldest(tasks: Iterable[Record], now: float) -> float | None:
    waits = [
        now - task["ready_at"]
        for task in tasks
        if task["ready_at"] is not None and (task["due_at"] is None or task["due_at"] <= now)
    ]
    return max(waits, default=None)


def _history(t: Tables) -> dict[int, list[Row]]:
    """Of tasks that are there, by seq; the rest is found by verify_references."""
    found: dict[int, list[Row]] = {}
    for _, row in sorted(t.history.items()):
        if row[0] in t.task:
            found.setdefault(row[0], []).append(row)
    return found


def verify_steps(t: Tables) -> list[Row]:
    legal = legal_steps()
    broken = []
    for seq, rows in _history(t).items():
        name = t.task[seq]["id"]
        for row in rows:
            if row[3] is not None and (row[4], row[3], row[5]) not in legal:
                broken.append(
                    (name, f"{row[4]} -{row[3]}-> {row[5]} is not in the status table")
                )
        for earlier, later in pairwise([None, *(row[4:6] for row in rows)]):
            before = earlier[1] if earlier else None
            if later is not None and before != later[0]:
                broken.append((name, f"history jumps from {before} to {later[0]}"))
        if rows[-1][5] != t.task[seq]["status"]:
            broken.append(
                (name, f"status is {t.task[seq]['status']}, history says {rows[-1][5]}")
            )
    silent = t.task.keys() - {row[0] for row in t.history.values()}
    return broken + [(t.task[seq]["id"], "there is no history") for seq in sorted(silent)]


def verify_ends(t: Tables) -> list[Row]:
    broken = []
    for seq, rows in _history(t).items():
        ends = [row for row in rows if row[5] in FINAL]
        if len(ends) > 1:
            broken.append((t.task[seq]["id"], f"it ended {len(ends)} times"))
    return broken


def verify_attempts(t: Tables) -> list[Row]:
    broken = []
    lives = _history(t)
    for seq in t.task:
        claims = [row[6] for row in lives.get(seq, ()) if row[3] == "claim"]
        attempt = t.task[seq]["attempt"]
        if claims != list(range(1, attempt + 1)):
            broken.append(
                (t.task[seq]["id"], f"attempt is {attempt} after {len(claims)} claims")
            )
    return broken


def verify_leases(t: Tables) -> list[Row]:
    broken = []
    for seq, task in t.task.items():
        lease = t.lease.get(seq)
        if (lease is not None) != (task["status"] in LEASED):
            broken.append(
                (task["id"], f"{task['status']} {'with' if lease else 'without'} a lease")
            )
        elif lease and (lease["owner"], lease["attempt"]) != (task["owner"], task["attempt"]):
            broken.append(
                (task["id"], "the lease names another owner or attempt than the task")
            )
        elif task["status"] in (Status.WAITING, Status.READY) and task["owner"] is not None:
            broken.append((task["id"], f"{task['status']} but owned by {task['owner']}"))
    return broken


def verify_waiting(t: Tables) -> list[Row]:
    states: dict[int, list[EdgeState]] = {}
    for (_, child, _), state in t.edge.items():
        states.setdefault(child, []).append(state)
    broken = []
    for seq, task in t.task.items():
        edges = states.get(seq, [])
        should_wait = EdgeState.OPEN in edges or (not edges and not task["armed"])
        waits = task["status"] == Status.WAITING
        may_run = task["status"] in LEASED or task["status"] == Status.READY
        if waits and not should_wait:
            broken.append((task["id"], "waiting for nothing"))
        elif may_run and EdgeState.OPEN in edges:
            broken.append((task["id"], f"{task['status']} with an open dependency"))
    return broken


def verify_references(t: Tables) -> list[Row]:
    return [
        (str(seq), "history of a task that is not there")
        for seq in sorted({row[0] for row in t.history.values()} - t.task.keys())
    ]


def verify_ready(_: Tables) -> list[Row]:
    """There is no second table to disagree with."""
    return []


def verify_keys(_: Tables) -> list[Row]:
    """There is no second column to disagree with."""
    return []


def verify_progress(t: Tables) -> list[Row]:
    return [
        (task["id"], f"{task['status']} with progress {task['progress']}")
        for task in t.task.values()
        if not 0 <= task["progress"] <= 1
        or (task["status"] == Status.SUCCEEDED and task["progress"] != 1.0)
    ]
