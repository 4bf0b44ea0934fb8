"""Decides who may report for a task, and what becomes of a task whose lease ran out.

A `Notebook` is a text in the store that one service at a time writes under a lease, for the
service that comes after it.
"""

from __future__ import annotations

from enum import Enum

from tidewheel.core.queue.status import LEASED, Signal, Status
from tidewheel.core.queue.task import Instant, TaskId, TaskState, WorkerId
from tidewheel.errors import BadSetting, LeaseLost, WrongStatus
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

LEASE_SECONDS_DEFAULT = 10.0
RUN_LEASE_SECONDS_DEFAULT = 10.0  # of a run, which a scheduler holds
LEASE_SECONDS_MAX = 86_400.0
# A worker gives a sign of life at least this often, also while it holds no lease.
SIGN_SECONDS_MAX = LEASE_SECONDS_DEFAULT
LATE_SECONDS = 1.5 * SIGN_SECONDS_MAX  # without a sign: then people are told how long
SILENT_SECONDS = 3.0 * SIGN_SECONDS_MAX  # then it counts as gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Says for which attempt, and as which worker, somebody reports.

    The attempt is the fencing token: only reports for the current one are accepted.
    """

    task_id: TaskId
    attempt: int
    worker: WorkerId


def check_lease_seconds(seconds: float) -> float:
    """Returns the length of a lease; raises BadSetting if it is too short or too long."""
    if not 0 < seconds <= LEASE_SECONDS_MAX:
        accepted = f"more than 0, up to {LEASE_SECONDS_MAX:.0f}"
        raise BadSetting("lease_seconds", seconds, accepted)
    return seconds


def check_progress(progress: float | None) -> None:
    """Raises BadSetting if a progress is not between 0 and 1; None is accepted."""
    if progress is not None and not 0.0 <= progress <= 1.0:
        raise BadSetting("progress", progress, "0 to 1")


class LeaseAnswer(Enum):
    """Says what a worker shall do with a job after a heartbeat."""

    GO_ON = "go_on"
    CANCEL = "cancel"  # end the job, then report how it ended
    LOST = "lost"  # the lease is somebody else's or nobody's: end the job, report nothing


def check_holder(task: TaskState, holder: Holder, operation: str) -> None:
    """Raises LeaseLost for a report from anybody but the owner of the current attempt.

    Raises WrongStatus if that attempt has ended.
    """
    if task.attempt != holder.attempt or task.owner != holder.worker:
        raise LeaseLost(
            task.id,
            asked=(holder.worker, holder.attempt),
            held=(task.owner if task.lease else None, task.attempt),
        )
    if task.status not in LEASED:
        raise WrongStatus(task.id, operation, task.status, [Status.RUNNING.value])


TIDY_SECONDS = 60.0


def lapse_signal(task: TaskState, now: Instant) -> Signal | None:
    """Returns the signal by which the monitor ends a lease; None if the lease goes on.

    The time limit comes before the deadline: a task that ran too long, and whose worker is
    silent, must not run again. It counts from the job's start. Until one is told it counts from
    the claim, unless a runner prepares the job: that has a limit of its own, enforces the time
    limit itself, and needs time to tidy up after a job that ended in time.
    """
    assert task.lease is not None
    begun_at = task.lease.started_at
    if begun_at is None:
        begun_at = None if task.is_prepared else task.lease.claimed_at
    elif task.is_prepared:
        begun_at = Instant(begun_at + TIDY_SECONDS)
    timed_out = (
        task.timeout_seconds is not None
        and begun_at is not None
        and now > begun_at + task.timeout_seconds
        and task.status is Status.RUNNING
    )
    lapsed = now > task.lease.deadline_at
    last = task.lapses + 1 > task.max_lapses
    match (timed_out, lapsed, last):
        case (True, _, _):
            return Signal.TIME_OUT
        case (False, True, True):
            return Signal.LAPSE_OUT
        case (False, True, False):
            return Signal.LAPSE
        case _:
            return None


BODY_BYTES_MAX = 4 * 1024 * 1024


class Notebook(NamedTuple):
    """Holds a text that a service keeps in the store, and who has the lease of it.

    The epoch is the number of that lease, and the fencing token.
    """

    epoch: int
    owner: str | None  # None: nobody holds it
    deadline_at: Instant | None
    body: str  # "" before anybody wrote
    updated_at: Instant

    def is_held(self, now: Instant) -> bool:
        return self.deadline_at is not None and now < self.deadline_at
