"""Workers as they register, stop, are in trouble, and are forgotten."""

from __future__ import annotations

import json

from tidewheel.core.queue.requests import NewWorker
from tidewheel.core.queue.task import WorkerId
from tidewheel.errors import NotFound
from tidewheel.store.operations.queries import page_count
from tidewheel.store.rows import abilities_text, resource_columns, storable, worker_number
from tidewheel.store.transaction import Transaction


def register(tx: Transaction, worker: NewWorker) -> WorkerId:
    """Stores a worker, and returns the id that it has from now on."""
    row = {
        "name": worker.name,
        "host": worker.process.host,
        "boot_id": worker.process.boot_id,
        "pid": worker.process.pid,
        "process_started": worker.process.started,
        "queues": json.dumps(worker.queues),
        "slots": worker.slots,
        **resource_columns(worker.capacity),
        "abilities": abilities_text(worker.abilities),
    }
    del row["exclusive"]  # of what is asked
    return WorkerId(f"worker-{tx.rows('insert_worker', **row)[0][0]}")


def stop(tx: Transaction, worker: WorkerId) -> None:
    """Notes that a worker takes no more tasks and holds none."""
    if not tx.rows("stop_worker", worker_number=worker_number(worker)):
        raise NotFound("worker", worker)


def set_trouble(tx: Transaction, worker: WorkerId, trouble: str | None) -> None:
    """Notes why a worker takes no tasks just now; None: it does again."""
    given = {"worker_number": worker_number(worker), "trouble": storable(trouble)}
    if not tx.rows("set_trouble", **given):
        raise NotFound("worker", worker)


def delete_workers(tx: Transaction, retention_seconds: float, count_max: int) -> int:
    """Forget workers of which nothing was heard for so long; their numbers are never reused."""
    count = page_count(count_max)
    return len(tx.rows("delete_workers", retention_seconds=retention_seconds, count=count))
