"""Reads attempts that are over; loaded only by processes that ask for statistics."""

from __future__ import annotations

from tidewheel.core.queue.access import covers, queue_name
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.core.queue.statistics import EndedAttempt
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import STORED, Stored, Transaction

# A clock that was set back must not make a duration negative.
_NOT_NEGATIVE = Stored(lambda seconds: max(0.0, seconds))
STORED[EndedAttempt, "queue_seconds"] = STORED[EndedAttempt, "run_seconds"] = _NOT_NEGATIVE


LOOKED_THROUGH_MAX = 50_000  # attempts, for those that one may see


class _Place(NamedTuple):
    task_seq: int | None
    attempt: int | None


def ended_attempts(
    tx: Transaction, count: int, names: tuple[str, ...] | None = None
) -> list[EndedAttempt]:
    """Returns the newest attempts that are over, of queues that these patterns cover; None:
    of all."""
    shown: list[EndedAttempt] = []
    last, looked_through, portion = _Place(None, None), 0, page_count(count)
    while looked_through < LOOKED_THROUGH_MAX:
        before = {"before_seq": last.task_seq, "before_attempt": last.attempt}
        found = tx.pairs("list_ended_attempts", EndedAttempt, _Place, count=portion, **before)
        shown += [
            one for one, _ in found if names is None or covers(names, queue_name(one.queue))
        ]
        if len(found) < portion or len(shown) >= count:
            break
        last, looked_through, portion = found[-1][1], looked_through + portion, PAGE_COUNT_MAX
    return shown[:count]
