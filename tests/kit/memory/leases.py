"""Queries of the memory store about claiming, leases, reports and queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.kit.memory.tables import Record, Tables
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.lease import LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.limits import WHOLE_QUEUE, Bucket, Limit
from tidewheel.core.queue.requests import HeldLease
from tidewheel.core.queue.resources import (
    Resources,
    fits,
    needs_runner,
    nodes_of,
    prefix_that_fits,
)
from tidewheel.core.queue.status import Signal, Status
from tidewheel.store.rows import RESOURCE_COLUMNS, ClaimedRow, resources
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "add_claims",
    "add_messages",
    "add_usage",
    "add_values",
    "claim_tasks",
    "count_leases",
    "count_messages",
    "delete_limits",
    "extend_leases",
    "find_inputs",
    "get_claimed",
    "get_last_message",
    "insert_limits",
    "list_buckets",
    "list_cancelling",
    "list_lapsed_leases",
    "list_orphans",
    "lock_plan",
    "mark_started",
    "list_told",
    "move_lease",
    "put_values",
    "pause_queue",
    "get_next_due",
    "plan_claim",
    "promote_due_tasks",
    "set_progress",
    "save_buckets",
    "save_queue",
    "start_attempts",
    "take_leases",
]

AGED_PRIORITY_MAX = 255
NO_SETTINGS: Record = {
    "paused": False,
    "aging": False,
    "fair": False,
    "lanes": False,
    "fence_kill": False,
    "lease_seconds": LEASE_SECONDS_DEFAULT,
}


def plan_claim(t: Tables, *, queue: str, worker_number: int) -> list[Row]:
    worker = f"worker-{worker_number}"
    known = worker in t.worker and t.worker[worker]["stopped_at"] is None
    settings = t.queue.get(queue, NO_SETTINGS)
    limited = any(key[0] == queue for key in t.limit)
    return [
        (
            known,
            settings["paused"],
            settings["aging"],
            settings["fair"],
            settings["lanes"],
            limited,
            settings["fence_kill"],
            settings["lease_seconds"],
            _next_due_seconds(t, queue),
            t.clock(),
        )
    ]


def can_be_claimed(t: Tables, task: Record) -> bool:
    """Whether it is ready, and nobody has let its run go."""
    run = None if task["run"] is None or task["tag"] else t.run.get(task["run"])
    let_go = run is not None and run["status"] in (*WITHDRAWN_STATUSES, "deleted")
    return task["status"] == Status.READY and not let_go


def get_next_due(t: Tables, queue: str) -> list[Row]:
    return [(_next_due_seconds(t, queue),)]


def _next_due_seconds(t: Tables, queue: str) -> float | None:
    due = [
        task["due_at"]
        for task in t.task.values()
        if task["queue"] == queue and can_be_claimed(t, task) and task["due_at"] is not None
    ]
    return min(due) - t.clock() if due else None


def _due(t: Tables, queue: str) -> list[int]:
    now = t.clock()
    return [
        seq
        for seq, task in t.task.items()
        if task["queue"] == queue
        and can_be_claimed(t, task)
        and task["due_at"] is not None
        and task["due_at"] <= now
    ]


def promote_due_tasks(t: Tables, queue: str) -> list[Row]:
    for seq in _due(t, queue):
        t.update(t.task, seq, due_at=None)
    return []


def candidates(t: Tables, given: Record) -> list[Record]:
    free = _free(given)
    found = [
        task
        for task in t.task.values()
        if task["queue"] == given["queue"]
        and can_be_claimed(t, task)
        and task["due_at"] is None
        and (task["command"] or task["handler"] or given["bare"])
        and (task["command"] is None or given["commands"] or needs_runner(_asked(task)))
        and (
            task["handler"] is None
            or given["any_handler"]
            or task["handler"] in given["handlers"]
        )
        and fits(_asked(task), free)
    ]
    return sorted(found, key=lambda task: (-task["priority"], task["seq"]))


def _free(given: Record) -> Resources:
    return Resources(
        cpu=given["cpu"],
        memory_bytes=given["memory_bytes"],
        gpu=given["gpu"],
        labels=frozenset(json.loads(given["labels"])),
        nodes=given["nodes"],
        idle_nodes=given["idle_nodes"],
        buffer_bytes=given["buffer_bytes"],
        flavours=tuple(nodes_of(*one) for one in json.loads(given["flavours"])),
    )


def _asked(task: Record) -> Resources:
    return resources(*(task[name] for name in RESOURCE_COLUMNS))


def take(t: Tables, chosen: Sequence[Record], given: Record) -> list[Row]:
    free = _free(given)
    fitting = chosen[: prefix_that_fits(map(_asked, chosen), free)]
    for task in fitting:
        t.update(
            t.task,
            task["seq"],
            status=Status.RUNNING.value,
            attempt=task["attempt"] + 1,
            owner=given["worker"],
            progress=0.0,
            updated_at=t.clock(),
        )
    return [row for task in fitting for row in get_claimed(t, task["seq"])]


def aged_priority(task: Record, now: float) -> int:
    """One more for each whole second of being ready, up to 255."""
    priority: int = task["priority"]
    if priority >= AGED_PRIORITY_MAX:
        return priority
    return min(AGED_PRIORITY_MAX, priority + int(now - task["ready_at"]))


def claim_tasks(t: Tables, **given: Any) -> list[Row]:
    return take(t, candidates(t, given)[: given["count"]], given)


def get_claimed(t: Tables, seq: int) -> list[Row]:
    task = t.task[seq]
    known = {name: task[name] for name in ClaimedRow._fields[:-1]}
    return [ClaimedRow(**known, now=task["updated_at"])]


def find_inputs(t: Tables, seqs: Sequence[int]) -> list[Row]:
    found = {child for parent, child, _ in t.edge if child in seqs and parent in t.values}
    return [(seq,) for seq in found]


def take_leases(t: Tables, *, seqs: Sequence[int], lease_seconds: float) -> list[Row]:
    for seq in seqs:
        assert seq not in t.lease, seq
        task = t.task[seq]
        t.lease[seq] = {
            **{name: task[name] for name in ("seq", "attempt", "owner", "queue", "limit_key")},
            "rank": -task["priority"],
            "claimed_at": task["updated_at"],
            "lease_seconds": lease_seconds,
            "deadline_at": task["updated_at"] + lease_seconds,
            "started_at": None,
            "progress": 0.0,
            "messages": 0,
        }
    return []


def add_claims(t: Tables, *, seqs: Sequence[int]) -> list[Row]:
    for seq in seqs:
        number, task = t.next_number("history"), t.task[seq]
        step = (Signal.CLAIM.value, Status.READY.value, Status.RUNNING.value)
        facts = (task["attempt"], task["owner"], 0.0)
        t.history[number] = (seq, number, t.clock(), *step, *facts)
    return []


def extend_leases(t: Tables, *, beats: Sequence[Record]) -> list[Row]:
    held = []
    for beat in beats:
        worker = beat["worker"]
        seq = t.id.get(beat["id"])
        lease = t.lease.get(seq)
        if lease is None or (lease["attempt"], lease["owner"]) != (beat["attempt"], worker):
            continue
        progress = lease["progress"] if beat["progress"] is None else beat["progress"]
        deadline_at = t.clock() + lease["lease_seconds"]
        t.update(t.lease, seq, deadline_at=deadline_at, progress=progress)
        held.append((worker, beat["id"], beat["attempt"], t.task[seq]["status"]))
    return held


def start_attempts(t: Tables, *, worker: str, starts: Sequence[Record]) -> list[Row]:
    begun = []
    for start in starts:
        seq = t.id.get(start["id"])
        lease = t.lease.get(seq)
        if lease is None or (lease["attempt"], lease["owner"]) != (start["attempt"], worker):
            continue
        if lease["started_at"] is None:
            t.update(t.lease, seq, started_at=_ago(t, lease, start["ago"]))
        begun.append((start["id"], t.task[seq]["status"], t.task[seq]["run"]))
    return begun


def mark_started(t: Tables, leases: Sequence[Record]) -> list[Row]:
    for lease in leases:
        started_at = _ago(t, t.lease[lease["seq"]], lease["ago"])
        t.update(t.lease, lease["seq"], started_at=started_at)
    return []


def _ago(t: Tables, lease: Record, seconds: float) -> float:
    """When a job started that has this lease."""
    started_at: float = max(lease["claimed_at"], t.clock() - seconds)
    return started_at


def add_messages(t: Tables, messages: Sequence[Record]) -> list[Row]:
    for row in messages:
        t.message[(row["seq"], row["attempt"], row["number"])] = row | {"at": t.clock()}
    return []


def get_last_message(t: Tables, seq: int, attempt: int, above: int) -> list[Row]:
    numbers = [key[2] for key in t.message if key[:2] == (seq, attempt) and key[2] > above]
    return [(max(numbers, default=None),)]


def set_progress(t: Tables, seq: int, progress: float) -> list[Row]:
    t.update(t.lease, seq, progress=progress)
    return []


def count_messages(t: Tables, leases: Sequence[Record]) -> list[Row]:
    for lease in leases:
        t.update(t.lease, lease["seq"], messages=lease["messages"])
    return []


def add_usage(t: Tables, samples: Sequence[Record]) -> list[Row]:
    for row in samples:
        measured = ("memory_bytes", "cpu_percent", "gpu_percent", "gpu_memory_bytes")
        t.usage[t.next_number("usage")] = (
            row["seq"],
            row["attempt"],
            t.clock(),
            *(row[name] for name in measured),
        )
    return []


def add_values(t: Tables, values: Sequence[Record]) -> list[Row]:
    new = [row for row in values if row["seq"] not in t.values]
    put_values(t, new)
    return [(row["seq"],) for row in new]


def put_values(t: Tables, values: Sequence[Record]) -> list[Row]:
    for row in values:
        t.values[row["seq"]] = row
    return []


def list_told(t: Tables, seqs: Sequence[int]) -> list[Row]:
    found = [t.values[seq] for seq in seqs if seq in t.values]
    return [(row["seq"], row["attempt"], row["body"]) for row in found]


def move_lease(t: Tables, *, seq: int, owner: str) -> list[Row]:
    lease = t.lease[seq]
    t.update(t.lease, seq, owner=owner, deadline_at=t.clock() + lease["lease_seconds"])
    return [(t.queue.get(lease["queue"], NO_SETTINGS)["fence_kill"], lease["lease_seconds"])]


def list_cancelling(t: Tables, worker: str) -> list[Row]:
    return [
        (t.task[seq]["id"], lease["attempt"])
        for seq, lease in sorted(t.lease.items())
        if lease["owner"] == worker and t.task[seq]["status"] == Status.CANCELLING
    ]


def list_lapsed_leases(
    t: Tables, *, watched_seconds: float, tidy_seconds: float, count: int
) -> list[Row]:
    now = t.clock()
    found = []
    for seq, lease in t.lease.items():
        task = t.task[seq]
        limit = task["timeout_seconds"]
        lapsed = lease["deadline_at"] < now and lease["lease_seconds"] <= watched_seconds
        begun_at = lease["started_at"]
        if needs_runner(_asked(task)):
            begun_at = None if begun_at is None else begun_at + tidy_seconds
        elif begun_at is None:
            begun_at = lease["claimed_at"]
        too_long = None not in (limit, begun_at) and begun_at + limit < now
        if lapsed or (too_long and task["status"] == Status.RUNNING):
            found.append((lease["deadline_at"], task["id"]))
    return [(id_,) for _, id_ in sorted(found)[:count]]


def list_orphans(t: Tables, *, host: str, boot_id: str) -> list[Row]:
    found: list[Row] = []
    for seq, lease in sorted(t.lease.items()):
        worker = t.worker.get(lease["owner"])
        if worker and (worker["host"], worker["boot_id"]) == (host, boot_id):
            known = (
                t.task[seq]
                | lease
                | t.queue.get(lease["queue"], NO_SETTINGS)
                | {
                    **{
                        name: worker[name]
                        for name in ("host", "boot_id", "pid", "process_started")
                    },
                    "lease_seconds": lease["lease_seconds"],
                    "limited": any(queue == lease["queue"] for queue, _ in t.limit),
                    "now": t.clock(),
                }
            )
            found.append(tuple(known[name] for name in columns_of(HeldLease)))
    return found


def save_queue(t: Tables, queue: str, **settings: Any) -> list[Row]:
    t.queue[queue] = settings | {"turns": 0}
    return []


def pause_queue(t: Tables, *, queue: str, paused: bool) -> list[Row]:
    t.queue[queue] = t.queue.get(queue, NO_SETTINGS) | {"paused": paused}
    return []


def delete_limits(t: Tables, queue: str) -> list[Row]:
    for table in (t.limit, t.bucket):
        for key in [key for key in table if key[0] == queue]:
            del table[key]
    return []


def insert_limits(t: Tables, *, queue: str, limits: Sequence[Limit]) -> list[Row]:
    for limit in limits:
        t.limit[(queue, limit.key)] = limit
    return []


def lock_plan(t: Tables, *, queue: str, worker_number: int) -> list[Row]:
    [plan] = plan_claim(t, queue=queue, worker_number=worker_number)
    is_fair = t.queue.get(queue, NO_SETTINGS)["fair"]
    turns = (t.queue[queue]["turns"], t.lane.get((queue, ""))) if is_fair else (None, None)
    limits: list[Row] = [
        (limit.key, limit.concurrency_max, limit.rate_max, limit.rate_seconds)
        for (of, _), limit in sorted(t.limit.items())
        if of == queue
    ]
    return [(*plan, *turns, *limit) for limit in limits or [(None,) * 4]]


def count_leases(t: Tables, queue: str) -> list[Row]:
    return [(sum(lease["queue"] == queue for lease in t.lease.values()),)]


def list_buckets(t: Tables, queue: str) -> list[Row]:
    return [
        (bucket.key, bucket.tokens, bucket.refilled_at)
        for (of, _), bucket in sorted(t.bucket.items())
        if of == queue and bucket.key == WHOLE_QUEUE
    ]


def save_buckets(t: Tables, *, queue: str, buckets: Sequence[Bucket]) -> list[Row]:
    for bucket in buckets:
        t.bucket[(queue, bucket.key)] = bucket
    return []
