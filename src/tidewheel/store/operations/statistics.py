"""Reads attempts that are over; loaded only by processes that ask for statistics."""

from __future__ import annotations

from tidewheel.core.queue.statistics import EndedAttempt
from tidewheel.core.queue.status import Signal
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import Transaction


def ended_attempts(tx: Transaction, count: int) -> list[EndedAttempt]:
    """Returns the newest attempts that are over."""
    return [
        EndedAttempt(
            queue=queue,
            name=name,
            ended_by=Signal(ended_by),
            # A clock that was set back makes nothing shorter than nothing.
            queue_seconds=None if waited is None else max(0.0, waited),
            run_seconds=max(0.0, ran),
            cpu_asked=cpu,
            memory_asked_bytes=memory,
            memory_used_bytes=used,
            cpu_used_percent=busy,
        )
        for queue, name, ended_by, waited, ran, cpu, memory, used, busy in tx.rows(
            "list_ended_attempts", count=page_count(count)
        )
    ]
