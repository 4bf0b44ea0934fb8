"""Queries of the memory store that create tasks, move them along and tie them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from tests.kit.memory.stream import raise_floor
from tests.kit.memory.tables import Record, Tables
from tidewheel.core.queue.dependency import EdgeState
from tidewheel.core.queue.requests import TaskFilter
from tidewheel.core.queue.status import FINAL, Status, legal_steps
from tidewheel.core.queue.task import Change, TaskState
from tidewheel.store.rows import RESOURCE_COLUMNS
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "add_attempts",
    "add_creations",
    "add_history",
    "add_ready",
    "amend_task",
    "arm_task",
    "assign_graphs",
    "change_tasks",
    "close_edges_of_children",
    "delete_attempts",
    "delete_edges",
    "delete_history",
    "delete_tasks",
    "drop_leases",
    "find_cancellable",
    "find_task_digests",
    "find_task_names",
    "find_unique_keys",
    "get_now",
    "get_store_id",
    "insert_edges",
    "insert_tasks",
    "list_edge_states",
    "list_open_children",
    "list_outputs_made",
    "list_reachable_edges",
    "lock_graphs",
    "lock_leased_tasks",
    "lock_open_edges",
    "lock_tasks",
    "lock_tasks_by_seq",
    "read_tasks",
    "matches",
    "remove_ready",
    "rename_graph",
    "settle_edges",
    "state_row",
]

_LEGAL = legal_steps()


def get_now(t: Tables) -> list[Row]:
    return [(t.clock(),)]


def get_store_id(_: Tables) -> list[Row]:
    return [("memory",)]


def state_row(t: Tables, seq: int) -> Row:
    task, lease = t.task[seq], t.lease.get(seq, {})
    columns = columns_of(TaskState)
    return (
        *(task[name] for name in columns[:16]),
        *(lease.get(name) for name in columns[16:-1]),
        '"runner:' in (task["labels"] or ""),
    )


def lock_graphs(t: Tables, ids: Sequence[str]) -> list[Row]:
    found = {t.task[t.id[id_]]["graph"] for id_ in ids if id_ in t.id}
    return [(graph,) for graph in sorted(found - {None})]


def lock_tasks(t: Tables, ids: Sequence[str]) -> list[Row]:
    found = sorted(t.id[id_] for id_ in ids if id_ in t.id)
    return [(seq, t.task[seq]["graph"]) for seq in found]


def lock_tasks_by_seq(t: Tables, seqs: Sequence[int]) -> list[Row]:
    return [(seq,) for seq in sorted(seqs) if seq in t.task]


def read_tasks(t: Tables, seqs: Sequence[int]) -> list[Row]:
    return [state_row(t, seq) for seq in sorted(seqs) if seq in t.task]


def lock_leased_tasks(t: Tables, ids: Sequence[str]) -> list[Row]:
    return [state_row(t, t.id[id_]) for id_ in ids if t.id.get(id_) in t.lease]


def find_task_digests(t: Tables, ids: Sequence[str]) -> list[Row]:
    return [(id_, t.task[t.id[id_]]["digest"]) for id_ in ids if id_ in t.id]


def find_task_names(t: Tables, names: Sequence[str]) -> list[Row]:
    wanted = set(names)
    return [(task["name"], task["id"]) for task in t.task.values() if task["name"] in wanted]


def find_unique_keys(t: Tables, keys: Sequence[Record]) -> list[Row]:
    wanted = {(key["queue"], key["key"]) for key in keys}
    return [
        (task["queue"], task["unique_key"], task["id"], task["digest"])
        for task in t.task.values()
        if (task["queue"], task["unique_key"]) in wanted and task["status"] not in FINAL
    ]


def insert_tasks(t: Tables, tasks: Sequence[Record]) -> list[Row]:
    now, inserted = t.clock(), []
    for new in tasks:
        if new["id"] in t.id:
            continue
        seq = t.next_number("task")
        delay = new["due_at"]
        t.id[new["id"]] = seq
        t.task[seq] = new | {
            "seq": seq,
            "attempt": 0,
            "failures": 0,
            "lapses": 0,
            "graph": None,
            "owner": None,
            "progress": 0.0,
            "due_at": None if delay is None else now + delay,
            "ready_at": now if new["status"] == Status.READY else None,
            "created_at": now,
            "updated_at": now,
        }
        inserted.append((new["id"], seq))
    return inserted


def add_creations(t: Tables, seqs: Sequence[int]) -> list[Row]:
    for seq in seqs:
        task = t.task[seq]
        _record(t, seq, (None, None, task["status"]), (0, None, 0.0))
    return []


def change_tasks(t: Tables, changes: Sequence[Change]) -> list[Row]:
    now, moved = t.clock(), []
    for change in changes:
        task = t.task.get(change.seq)
        if task is None or (task["status"], task["attempt"]) != (
            change.from_status,
            change.from_attempt,
        ):
            continue
        became_ready = change.to_status is Status.READY
        due_at = None if change.to_status is Status.RUNNING else task["due_at"]
        if change.delay_seconds > 0:
            due_at = now + change.delay_seconds
        t.task[change.seq] = task | {
            "status": change.to_status.value,
            "attempt": change.attempt,
            "failures": change.failures,
            "lapses": change.lapses,
            "owner": change.owner,
            "progress": change.progress,
            "ready_at": now if became_ready else task["ready_at"],
            "due_at": due_at,
            "updated_at": now,
        }
        moved.append((change.seq,))
    return moved


def add_attempts(t: Tables, changes: Sequence[Change]) -> list[Row]:
    for change in changes:
        lease = t.lease[change.seq]
        key = (change.seq, lease["attempt"])
        assert key not in t.attempt, key
        t.attempt[key] = {
            "worker": lease["owner"],
            "claimed_at": lease["claimed_at"],
            "started_at": lease["started_at"],
            "ended_at": t.clock(),
            "ended_by": change.signal.value,
            "exit_status": change.exit_status,
            "error_code": change.error_code,
            "error_args": change.error_args,
            "error_description": change.error_description,
            "metrics": change.metrics,
        }
    return []


def drop_leases(t: Tables, seqs: Sequence[int]) -> list[Row]:
    for seq in seqs:
        del t.lease[seq]
    return []


def add_history(t: Tables, changes: Sequence[Change]) -> list[Row]:
    for change in changes:
        step = (change.from_status.value, change.signal.value, change.to_status.value)
        # The CHECK of the SQL schemas.
        assert step in _LEGAL, step
        _record(
            t,
            change.seq,
            (change.signal.value, change.from_status.value, change.to_status.value),
            (change.attempt, change.worker, change.progress),
        )
    return []


def _record(t: Tables, seq: int, step: tuple[Any, ...], facts: tuple[Any, ...]) -> None:
    number = t.next_number("history")
    t.history[number] = (seq, number, t.clock(), *step, *facts)


def arm_task(t: Tables, seq: int) -> list[Row]:
    t.update(t.task, seq, armed=True, updated_at=t.clock())
    return []


def amend_task(t: Tables, seq: int, *, resources: bool, **given: Any) -> list[Row]:
    asked = {name: given.pop(name) for name in RESOURCE_COLUMNS}
    changed = {name: value for name, value in given.items() if value is not None}
    if "command" in changed:
        changed["executes"] = True
    t.update(t.task, seq, **changed, **(asked if resources else {}), updated_at=t.clock())
    return []


def matches(task: Record, given: Record) -> bool:
    """The filter of find_tasks and find_cancellable."""
    if not given["any_status"] and task["status"] not in given["statuses"]:
        return False
    asked = {
        one.name: given[one.name]
        for one in fields(TaskFilter)
        if one.name not in ("statuses", "matching") and given[one.name] is not None
    }
    return all(_fits(task, name, value) for name, value in asked.items())


def _fits(task: Record, name: str, asked: Any) -> bool:
    if name == "worker":
        return bool(task["owner"] == asked)
    if name == "jobs":
        return bool(asked or task["run"] is None)
    if name.endswith("_min"):
        return bool(task[name.removesuffix("_min")] >= asked)
    if name.endswith("_max"):
        seen = task[name.removesuffix("_max")]
        return seen is not None and bool(seen <= asked)
    return bool(task[name] == asked)


def find_cancellable(t: Tables, *, count: int, after: int, **given: Any) -> list[Row]:
    live = [
        task
        for task in t.task.values()
        if task["status"] not in FINAL | {Status.CANCELLING} and matches(task, given)
    ]
    later = sorted((task for task in live if task["seq"] > after), key=lambda task: task["seq"])
    return [(task["id"], task["name"], task["seq"]) for task in later[:count]]


def delete_tasks(t: Tables, seqs: Sequence[int]) -> list[Row]:
    deleted = []
    for seq in seqs:
        if seq not in t.task or not _is_removable(t, seq):
            continue
        for key in [key for key in t.edge if seq in key[:2]]:
            del t.edge[key]
        for key in [key for key in t.message if key[0] == seq]:
            del t.message[key]
        for key in [key for key, row in t.usage.items() if row[0] == seq]:
            del t.usage[key]
        if seq in t.values:
            del t.values[seq]
        del t.id[t.task[seq]["id"]]
        del t.task[seq]
        deleted.append((seq,))
    return deleted


def add_ready(_: Tables, seqs: Sequence[int]) -> list[Row]:
    """Claims look at the tasks themselves."""
    del seqs
    return []


remove_ready = add_ready


def delete_attempts(t: Tables, seqs: Sequence[int]) -> list[Row]:
    gone = set(seqs)
    for key in [key for key in t.attempt if key[0] in gone]:
        del t.attempt[key]
    return []


def delete_history(t: Tables, seqs: Sequence[int]) -> list[Row]:
    gone = set(seqs)
    for key in [key for key, row in t.history.items() if row[0] in gone]:
        del t.history[key]
        raise_floor(t, key)
    return []


def _is_removable(t: Tables, seq: int) -> bool:
    children = [child for parent, child, _ in t.edge if parent == seq]
    if t.task[seq]["run"] is not None:
        return False
    return t.task[seq]["status"] in FINAL and all(
        t.task[child]["status"] in FINAL for child in children
    )


def insert_edges(t: Tables, edges: Sequence[Record]) -> list[Row]:
    for edge in edges:
        key = (edge["parent"], edge["child"], str(edge["output"]))
        if key not in t.edge:
            t.edge[key] = edge["state"]
    return []


def delete_edges(t: Tables, edges: Sequence[Record]) -> list[Row]:
    gone = {(edge["parent"], edge["child"]) for edge in edges}
    for key in [key for key in t.edge if key[:2] in gone]:
        del t.edge[key]
    return []


def lock_open_edges(t: Tables, parents: Sequence[int]) -> list[Row]:
    wanted = set(parents)
    found = [k for k, state in t.edge.items() if k[0] in wanted and state is EdgeState.OPEN]
    return [(*key, key) for key in sorted(found)]


def settle_edges(t: Tables, edges: Sequence[Record]) -> list[Row]:
    for edge in edges:
        t.edge[edge["place"]] = edge["state"]
    return []


def close_edges_of_children(t: Tables, seqs: Sequence[int]) -> list[Row]:
    wanted = set(seqs)
    for key in [k for k, state in t.edge.items() if k[1] in wanted and state is EdgeState.OPEN]:
        t.edge[key] = EdgeState.DEAD
    return []


def list_open_children(t: Tables, seqs: Sequence[int]) -> list[Row]:
    wanted = set(seqs)
    found = {k[1] for k, state in t.edge.items() if k[1] in wanted and state is EdgeState.OPEN}
    return [(seq,) for seq in sorted(found)]


def list_edge_states(t: Tables, child: int) -> list[Row]:
    return [(state,) for key, state in t.edge.items() if key[1] == child]


def list_outputs_made(t: Tables, seqs: Sequence[int]) -> list[Row]:
    wanted = set(seqs)
    return [
        (seq, row["output"])
        for (seq, _, _), row in t.message.items()
        if seq in wanted and row["output"] is not None
    ]


def list_reachable_edges(t: Tables, seqs: Sequence[int]) -> list[Row]:
    found: set[tuple[int, int]] = set()
    front = set(seqs)
    seen: set[int] = set()
    while front:
        seen |= front
        step = {(parent, child) for parent, child, _ in t.edge if parent in front}
        found |= step
        front = {child for _, child in step} - seen
    return [(t.task[parent]["id"], t.task[child]["id"]) for parent, child in sorted(found)]


def rename_graph(t: Tables, *, old: int, new: int) -> list[Row]:
    for seq in [seq for seq, task in t.task.items() if task["graph"] == old]:
        t.update(t.task, seq, graph=new)
    return []


def assign_graphs(t: Tables, tasks: Sequence[Record]) -> list[Row]:
    for task in tasks:
        t.update(t.task, task["seq"], graph=task["graph"])
    return []
