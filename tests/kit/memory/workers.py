"""Queries of the memory store about workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.kit.memory.tables import Tables
from tidewheel.api.tasks import WorkerView
from tidewheel.store.transaction import Row, columns_of

__all__ = [
    "delete_workers",
    "insert_worker",
    "list_workers",
    "set_trouble",
    "stop_worker",
    "touch_workers",
]


def insert_worker(t: Tables, **row: Any) -> list[Row]:
    number = t.next_number("worker")
    now = t.clock()
    times = {"registered_at": now, "seen_at": now, "stopped_at": None, "trouble": None}
    t.worker[f"worker-{number}"] = row | times | {"number": number}
    return [(number,)]


def touch_workers(t: Tables, numbers: Sequence[int]) -> list[Row]:
    for worker in (f"worker-{number}" for number in numbers):
        if worker in t.worker:
            t.update(t.worker, worker, seen_at=t.clock())
    return []


def stop_worker(t: Tables, worker_number: int) -> list[Row]:
    worker = f"worker-{worker_number}"
    if worker not in t.worker:
        return []
    t.update(t.worker, worker, stopped_at=t.clock())
    return [(worker_number,)]


def set_trouble(t: Tables, *, worker_number: int, trouble: str | None) -> list[Row]:
    worker = f"worker-{worker_number}"
    if worker not in t.worker:
        return []
    t.update(t.worker, worker, trouble=trouble)
    return [(worker_number,)]


def delete_workers(t: Tables, *, retention_seconds: float, count: int) -> list[Row]:
    before = t.clock() - retention_seconds
    holding = {lease["owner"] for lease in t.lease.values()}
    gone = [
        (id_, row["number"])
        for id_, row in sorted(t.worker.items(), key=lambda item: item[1]["number"])
        if (row["seen_at"] if row["stopped_at"] is None else row["stopped_at"]) < before
        and id_ not in holding
    ]
    for id_, _ in gone[:count]:
        del t.worker[id_]
    return [(number,) for _, number in gone[:count]]


def list_workers(t: Tables, *, live_only: bool) -> list[Row]:
    found = []
    for id_, row in sorted(t.worker.items(), key=lambda item: -item[1]["number"]):
        if live_only and row["stopped_at"] is not None:
            continue
        leases = sum(1 for lease in t.lease.values() if lease["owner"] == id_)
        known = row | {"id": id_, "leases": leases}
        found.append(tuple(known[name] for name in columns_of(WorkerView)))
    return found
