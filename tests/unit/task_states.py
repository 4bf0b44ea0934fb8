"""Stored tasks as decisions see them, for the unit tests of the core."""

from tidewheel.core.queue.retry import NO_DELAY
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.core.queue.task import Lease, TaskState


def lease(**fields):
    """A lease of 10 s that worker-1 took at 100."""
    held = {
        "owner": "worker-1",
        "deadline_at": 110.0,
        "lease_seconds": 10.0,
        "claimed_at": 100.0,
        "started_at": None,
        "progress": 0.0,
        "messages": 0,
    }
    return Lease(**(held | fields))


def task(status, **fields):
    """A task in its third attempt, by worker-1."""
    facts = {
        "seq": 7,
        "id": "a",
        "queue": "q",
        "status": Status(status),
        "attempt": 3,
        "failures": 0,
        "lapses": 0,
        "max_retries": 0,
        "retry": NO_DELAY,
        "max_lapses": 5,
        "timeout_seconds": None,
        "armed": True,
        "executes": True,
        "graph": None,
        "owner": "worker-1",
        "lease": lease() if status in LEASED else None,
    }
    return TaskState(**(facts | fields))
