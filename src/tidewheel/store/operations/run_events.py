"""Writes down what becomes of the submissions of a run, for its scheduler.

An event is inserted by the transaction that makes it true, so none is lost and none is early.
The end of a submission is told once. A start may be told again when its report was sent again.
A success that says nothing else is one event: it was started, or it could not have succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import JobMessage, Report
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.task import Change, TaskState
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Transaction, rows_in_chunks

STARTED, SAID, OVER, COMMAND = "started", "said", "over", "command"

EventRow = dict[str, object]  # what add_events stores; what is not said is NULL


class RunEffects(Protocol):
    """The runs that have news once the transaction is committed."""

    runs: set[int]


def tell_runs(tx: Transaction, events: Sequence[EventRow], effects: RunEffects) -> None:
    """Write events in this order, and have the schedulers of their runs woken."""
    if events:
        rows_in_chunks(tx, "add_events", "events", events)
        effects.runs.update(_run(event) for event in events)


def _run(event: EventRow) -> int:
    run = event["run"]
    assert isinstance(run, int)
    return run


def start(run: int, task_id: str, attempt: int) -> EventRow:
    """Returns the event that the process of an attempt exists."""
    return {"run": run, "kind": STARTED, "task_id": task_id, "attempt": attempt}


def success(run: int, holder: Holder) -> EventRow:
    """Returns the event that an attempt ended well, with nothing else to say."""
    return {
        "run": run,
        "kind": OVER,
        "task_id": holder.task_id,
        "attempt": holder.attempt,
        "status": Status.SUCCEEDED.value,
    }


def spoken(
    task: TaskState, report: Report, fresh: Sequence[JobMessage], change: Change | None
) -> list[EventRow]:
    """Returns the events that a report makes before that of the attempt's end, if it ends."""
    assert task.run is not None and task.lease is not None
    events = []
    succeeds = change is not None and change.to_status is Status.SUCCEEDED
    if report.started and task.lease.started_at is None and (fresh or not succeeds):
        events.append(start(task.run, task.id, task.attempt))
    for message in fresh:
        events.append(
            {
                "run": task.run,
                "kind": SAID,
                "task_id": task.id,
                "attempt": task.attempt,
                "text": storable(message.text),
                "output": storable(message.output),
            }
        )
    return events


def overs(decided: Iterable[tuple[TaskState, Change]]) -> list[EventRow]:
    """Returns the events of the ends among some changes, whatever caused them."""
    return [
        {
            "run": task.run,
            "kind": OVER,
            "task_id": task.id,
            "attempt": change.attempt,
            "status": change.to_status.value,
            "error_code": change.error_code,
            "error": change.error_description,
            "exit_status": change.exit_status,
        }
        for task, change in decided
        if task.run is not None and change.to_status in FINAL
    ]
