"""Stores workers: how they register, stop, are in trouble, and are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from tidewheel.api.tasks import Task
from tidewheel.core.queue.lease import TIDY_SECONDS, lapse_signal
from tidewheel.core.queue.requests import NewWorker
from tidewheel.core.queue.status import Signal
from tidewheel.core.queue.steps import step
from tidewheel.core.queue.task import Instant, TaskId, TaskState, WorkerId
from tidewheel.errors import NotFound
from tidewheel.store.operations.queries import page_count, views_of
from tidewheel.store.operations.transitions import Effects, apply
from tidewheel.store.rows import storable, worker_number
from tidewheel.store.transaction import Transaction, records_in_chunks, row_of, rows_in_chunks


def register(tx: Transaction, worker: NewWorker) -> WorkerId:
    """Stores a worker, and returns the id that it has from now on."""
    [[number]] = tx.rows("insert_worker", **row_of(worker))
    return WorkerId(f"worker-{number}")


def stop(tx: Transaction, worker: WorkerId) -> None:
    """Notes that a worker takes no more tasks and holds none."""
    if not tx.rows("stop_worker", worker_number=worker_number(worker)):
        raise NotFound("worker", worker)


def set_trouble(tx: Transaction, worker: WorkerId, trouble: str | None) -> None:
    """Notes why a worker takes no tasks just now; None: it takes tasks again."""
    given = {"worker_number": worker_number(worker), "trouble": storable(trouble)}
    if not tx.rows("set_trouble", **given):
        raise NotFound("worker", worker)


def delete_workers(tx: Transaction, retention_seconds: float, count_max: int) -> int:
    """Deletes workers without a lease that stopped or fell silent before the retention.

    Returns how many. Their numbers are never given again.
    """
    count = page_count(count_max)
    return len(tx.rows("delete_workers", retention_seconds=retention_seconds, count=count))


# ---- what monitors take back and delete ----


def take_back_lapsed_leases(
    tx: Transaction, effects: Effects, *, watched_seconds: float, count_max: int
) -> list[tuple[TaskId, Signal]]:
    """Ends leases that ran out, or whose task ran too long; returns (task id, signal) of each.

    A lease that is longer than ``watched_seconds``, the time for which the monitor itself has
    been connected, does not run out yet: after an outage of the database every worker gets a
    full lease to be heard.
    """
    now = Instant(tx.rows("get_now")[0][0])
    rows = tx.rows(
        "list_lapsed_leases",
        watched_seconds=watched_seconds,
        tidy_seconds=TIDY_SECONDS,
        count=page_count(count_max),
    )
    if not rows:
        return []
    # Graphs before rows, like everybody else; a row that somebody holds just now is left for
    # the next pass: its owner may be renewing it at this very moment.
    lapsed = [row[0] for row in rows]
    rows_in_chunks(tx, "lock_graphs", "ids", lapsed)
    decided = []
    for task in records_in_chunks(tx, "lock_leased_tasks", TaskState, "ids", lapsed):
        signal = lapse_signal(task, now)
        assert task.lease is not None
        too_long = task.lease.lease_seconds > watched_seconds
        if signal is not None and not (too_long and signal is not Signal.TIME_OUT):
            decided.append((task, step(task, signal)))
    apply(tx, decided, effects)
    _note_freed_places(tx, {task.queue for task, _ in decided}, effects)
    return [(task.id, change.signal) for task, change in decided]


def _note_freed_places(tx: Transaction, queues: set[str], effects: Effects) -> None:
    """Has queues with limits woken: each lease that ended left a place there."""
    if not queues <= effects.queues:
        effects.queues |= queues & {row[0] for row in tx.rows("list_limits")}


def expired_tasks(tx: Transaction, retention_seconds: float, count_max: int) -> list[Task]:
    """Returns tasks that ended longer ago than the retention and can be deleted, oldest first.

    Tasks of a run are not among them: they go with the run.
    """
    found = tx.rows(
        "find_expired_tasks", retention_seconds=retention_seconds, count=page_count(count_max)
    )
    return views_of(tx, [row[0] for row in found])


def delete_tasks(tx: Transaction, seqs: Sequence[int]) -> int:
    """Deletes final tasks on which nothing live depends, with everything of theirs.

    Returns how many. They are named by their seqs, which are used once for ever: an id may
    belong to a new task by the time a request that was delayed or repeated is executed.
    """
    deleted = [row[0] for row in rows_in_chunks(tx, "delete_tasks", "seqs", list(seqs))]
    rows_in_chunks(tx, "delete_attempts", "seqs", deleted)
    rows_in_chunks(tx, "delete_history", "seqs", deleted)
    return len(deleted)
