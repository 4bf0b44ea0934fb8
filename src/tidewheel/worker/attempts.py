"""Knows an attempt in a worker's hands, and why its job may be stopped.

To its job an attempt is the port ``JobReports``: what the job says goes into the worker's
queue of job events in the order in which it was said, from whichever thread.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed, UsageSample
from tidewheel.core.queue.steps import TIMED_OUT, End, Ending
from tidewheel.core.queue.task import TaskError, TaskId, WorkerId
from tidewheel.ports.clock import Clock
from tidewheel.ports.runners import Job
from tidewheel.services.wakeup import Wakeup

AttemptKey = tuple[TaskId, int]


class Started(Enum):
    """The job runs."""

    NOW = "now"


class Spoken(NamedTuple):
    """A message that has no number yet."""

    text: str
    output: str | None


Said = Started | Spoken | UsageSample | End


class JobEvents:
    """Queues what attempts said until the reporter takes it."""

    def __init__(self, clock: Clock) -> None:
        self.wakeup = Wakeup(clock)  # the reporter's
        self._said: deque[tuple[Attempt, Said]] = deque()  # append and popleft are atomic

    def __len__(self) -> int:
        return len(self._said)

    def put(self, attempt: Attempt, said: Said) -> None:
        """Adds an event and wakes the reporter; from any thread."""
        self._said.append((attempt, said))
        self.wakeup.ring()

    def take(self) -> Iterator[tuple[Attempt, Said]]:
        """Yields the events that are there now, the oldest first."""
        for _ in range(len(self._said)):
            yield self._said.popleft()


class StopReason(Enum):
    """Says why a job was stopped from outside."""

    CANCEL = "cancel"  # a client wants it to end
    TIME_LIMIT = "time_limit"  # it ran longer than it may
    YIELD = "yield"  # its worker goes, another shall take the task
    FENCE = "fence"  # the store is out of reach and the lease about to end
    LOST = "lost"  # the lease is not ours any more


class Attempt:
    """Holds what a worker knows about one attempt; changed by the worker's loop unless said
    below."""

    __slots__ = (
        "_events",
        "_hear_progress",
        "confirmed_at",
        "ended",
        "grace_seconds",
        "holder",
        "job",
        "key",
        "latest_progress",
        "messages_numbered",
        "messages_stored",
        "reason",
        "spoke_last",
        "task",
        "unacceptable",
    )

    def __init__(
        self,
        task: Claimed,
        worker: WorkerId,
        events: JobEvents,
        hear_progress: Callable[[Attempt], None],
        confirmed_at: float,
    ) -> None:
        self.task = task
        self.key: AttemptKey = (task.id, task.attempt)
        self.holder = Holder(task_id=task.id, attempt=task.attempt, worker=worker)
        self.job: Job | None = None
        self.reason: StopReason | None = None
        self.grace_seconds = math.inf  # what a job was given to leave when it was stopped
        self.ended = False  # the job is over, or never was
        self.spoke_last = False  # its end is on the way to the store; what comes later is late
        self.messages_numbered = 0
        self.messages_stored = 0  # by an earlier owner; a runner that adopts says them again
        self.unacceptable: End | None = None  # the store refused what the job said
        # When the store last granted the lease, by the local clock; kept by the lease book.
        self.confirmed_at = confirmed_at
        self.latest_progress: float | None = None  # written by any thread, read by heartbeats
        self._events = events
        self._hear_progress = hear_progress

    # JobReports
    def started(self) -> None:
        self._events.put(self, Started.NOW)

    def progress(self, value: float) -> None:
        # One bad number must not cost all leases their heartbeat.
        if 0.0 <= value <= 1.0 and value != self.latest_progress:
            self.latest_progress = value
            self._hear_progress(self)

    def message(self, text: str, output: str | None = None) -> None:
        self._events.put(self, Spoken(text, output))

    def usage(self, sample: UsageSample) -> None:
        self._events.put(self, sample)


def end_to_report(end: End, reason: StopReason | None, task: Claimed) -> End | None:
    """Returns what the store is told about a job that ended; None: nothing, the lease is not
    ours."""
    match reason:
        case None | StopReason.CANCEL:  # the store turns any end of a cancelled task into one
            return end
        case StopReason.TIME_LIMIT:
            return _timed_out(end, task)
        case StopReason.YIELD | StopReason.FENCE:
            # Even if the job says that it succeeded: a script that leaves on SIGTERM with
            # status 0 has not done its work. Done twice is promised, not done is not.
            return End(ending=Ending.YIELDED, exit_status=end.exit_status, metrics=end.metrics)
        case StopReason.LOST:
            return None


def _timed_out(end: End, task: Claimed) -> End:
    return End(
        ending=Ending.ABORTED,
        error=TaskError(
            code=TIMED_OUT,
            description=f"it ran longer than its limit of {task.timeout_seconds:g} s",
        ),
        exit_status=end.exit_status,
        metrics=end.metrics,
    )


def failure(code: str, description: str) -> End:
    """A failure that the worker itself has to tell."""
    return End(ending=Ending.FAILED, error=TaskError(code=code, description=description))
