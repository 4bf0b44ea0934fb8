"""Says what tasks, queues and workers look like to everybody outside of the store.

The same types are what a store returns, what a client gets from it or from a server, what REST
and `--json` say, and what the page of the server knows: `api/wire.py` derives the JSON from the
fields, which stand in the order of its keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from tidewheel.core.queue.dependency import EdgeState
from tidewheel.core.queue.requests import Abilities, HostProcess, QueueSettings, UsageSample
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import RetryPolicy
from tidewheel.core.queue.status import FINAL, LEASED, Signal, Status
from tidewheel.core.queue.task import Instant, TaskError, TaskId, WorkerId
from tidewheel.errors import LeaseLost, Refused, WrongStatus
from tidewheel.exact_json import decode_stored
from tidewheel.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Describes a stored task; ``spec_text`` is its spec as JSON, as sent, ``spec`` the
    value."""

    id: TaskId
    seq: int
    queue: str
    name: str | None
    tag: str | None
    status: Status
    progress: float
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    max_lapses: int
    retry: RetryPolicy
    priority: int
    command: str | None
    handler: str | None
    spec_text: str | None
    resources: Resources
    timeout_seconds: float | None
    estimated_runtime_seconds: float | None
    max_termination_seconds: float
    unique_key: str | None
    limit_key: str | None
    armed: bool
    open_needs: int
    withdrawn: bool  # ready, but its run was let go: no worker takes it before that goes on
    owner: WorkerId | None
    created_at: Instant
    updated_at: Instant
    due_at: Instant | None  # only while it is delayed
    deadline_at: Instant | None
    errors: tuple[TaskError, ...]
    environment_text: str | None = None  # of its command, with secrets as references

    @property
    def environment(self) -> dict[str, str]:
        """Returns the variables that its command is given; `secret:NAME` is a reference."""
        told: dict[str, str] = json.loads(self.environment_text or "{}")
        return told

    @property
    def spec(self) -> object:
        """Returns the decoded spec; None if there is none."""
        return decoded(self.spec_text)

    @property
    def ended(self) -> bool:
        """Says whether the status is final."""
        return self.status in FINAL

    def lease_lost(self, worker: str, attempt: int) -> LeaseLost:
        """Returns the error for a worker that does not, or no longer, hold this attempt."""
        owner = self.owner if self.status in LEASED else None
        return LeaseLost(self.id, asked=(worker, attempt), held=(owner, self.attempt))

    def report_refused(self, worker: str, attempt: int, operation: str) -> Refused:
        """Returns the error for a report that does not count: LeaseLost if the worker or the
        attempt is not the current one, else WrongStatus, because the task is not running."""
        if (self.owner, self.attempt) != (worker, attempt):
            return self.lease_lost(worker, attempt)
        return WrongStatus(self.id, operation, self.status, [Status.RUNNING.value])


def decoded(text: str | None) -> object:
    """Returns the value of a stored JSON text; None stays None."""
    return None if text is None else decode_stored(text)


class TaskList(list[Task]):
    """Holds a page of tasks, newest first.

    Pass ``next`` as ``before`` to get the next page; None: this is the last page. With a filter
    that has a pattern, a page may have fewer tasks than were asked for, or none, although more
    pages follow: ``looked`` counts the tasks that were looked at.
    """

    def __init__(
        self, tasks: Iterable[Task] = (), next: int | None = None, looked: int = 0
    ) -> None:
        super().__init__(tasks)
        self.next, self.looked = next, looked


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """Describes one step of a task's life."""

    seq: int
    at: Instant
    signal: Signal | None  # None: the task was created
    from_status: Status | None
    to_status: Status
    attempt: int
    worker: WorkerId | None
    progress: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """Describes one attempt at a task, that is one lease of it, live or over."""

    attempt: int
    worker: WorkerId
    claimed_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    ended_by: Signal | None
    exit_status: int | None
    error: TaskError | None
    metrics: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """Describes a message or a custom output; `number` is its place in the attempt's order."""

    attempt: int
    number: int
    at: Instant
    text: str
    output: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """Holds one sample of what an attempt used."""

    attempt: int
    at: Instant
    sample: UsageSample


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    """Describes a dependency between two stored tasks."""

    parent: TaskId
    child: TaskId
    output: str
    state: EdgeState


JOB_OF_RUN = "it is a job of a run; trigger its task in the run instead: tidewheel trigger"
NO_SUCH_TASK = "there is no such task; it may have been deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resubmitted:
    """Gives the result of submitting a task again; ``id`` is the id of the new task, and
    ``created`` is false if the new task existed before."""

    again_of: TaskId
    id: TaskId | None
    created: bool
    queue: str
    name: str | None  # of a new task
    needs: tuple[TaskId, ...]  # of a new task; of a refused one what it lacks
    children: tuple[TaskId, ...]  # cancelled because they need it, and not asked for
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputView:
    """Holds the values of a task, for another task that needs them."""

    id: TaskId
    queue: str
    values_text: str  # JSON, as it was told


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """Describes a queue and how many tasks wait in it, for people and for autoscalers."""

    queue: str
    settings: QueueSettings
    counts: dict[Status, int]  # of tasks that have not ended
    oldest_ready_seconds: float | None
    failed: int = 0  # tasks that failed and have not been deleted
    failed_more: bool = False  # older tasks may have failed, too: they are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """Describes a worker and the tasks that it holds."""

    id: WorkerId
    name: str
    process: HostProcess
    queues: tuple[str, ...]
    slots: int
    leases: int
    capacity: Resources
    registered_at: Instant
    seen_at: Instant
    stopped_at: Instant | None
    trouble: str | None  # why it takes no tasks just now
    abilities: Abilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Holds a measured value of the store, for programs that monitor it."""

    name: str
    label: str  # of what, where there are several
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An inconsistency that ``verify`` found."""

    invariant: str
    task_id: str
    seen: str
