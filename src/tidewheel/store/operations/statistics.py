"""Reads attempts that are over; loaded only by processes that ask for statistics."""

from __future__ import annotations

from tidewheel.core.queue.statistics import EndedAttempt
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import STORED, Stored, Transaction

# A clock that was set back must not make a duration negative.
_NOT_NEGATIVE = Stored(lambda seconds: max(0.0, seconds))
STORED[EndedAttempt, "queue_seconds"] = STORED[EndedAttempt, "run_seconds"] = _NOT_NEGATIVE


def ended_attempts(tx: Transaction, count: int) -> list[EndedAttempt]:
    """Returns the newest attempts that are over."""
    return tx.records("list_ended_attempts", EndedAttempt, count=page_count(count))
