"""Stored things as people and programs look at them."""

from __future__ import annotations

from dataclasses import dataclass

from tidewheel.core.queue.dependency import EdgeState
from tidewheel.core.queue.requests import Abilities, HostProcess, QueueSettings, UsageSample
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import RetryPolicy
from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.task import Instant, TaskError, TaskId, WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A task as people see it."""

    seq: int
    id: TaskId
    queue: str
    name: str | None
    spec: str | None
    command: str | None
    handler: str | None
    priority: int
    status: Status
    progress: float
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    retry: RetryPolicy
    max_lapses: int
    timeout_seconds: float | None
    estimated_runtime_seconds: float | None
    max_termination_seconds: float
    resources: Resources
    unique_key: str | None
    limit_key: str | None
    tag: str | None
    armed: bool
    due_at: Instant | None  # only while it is delayed
    created_at: Instant
    updated_at: Instant
    owner: WorkerId | None
    deadline_at: Instant | None
    errors: tuple[TaskError, ...]
    open_needs: int
    withdrawn: bool  # ready, but its run was let go: no worker takes it before that goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One step of a task's life."""

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
    """One lease of a task, live or over."""

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
    """A message or custom output, in the order in which the attempt made them."""

    attempt: int
    number: int
    at: Instant
    text: str
    output: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageView:
    """A point of a usage series."""

    attempt: int
    at: Instant
    sample: UsageSample


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    """A dependency between two stored tasks."""

    parent: TaskId
    child: TaskId
    output: str
    state: EdgeState


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """A queue and how much waits in it, for people and for autoscalers."""

    queue: str
    settings: QueueSettings
    counts: dict[Status, int]  # of tasks that have not ended
    oldest_ready_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """A worker and what it holds."""

    id: WorkerId
    name: str
    process: HostProcess
    queues: tuple[str, ...]
    slots: int
    capacity: Resources
    leases: int
    registered_at: Instant
    seen_at: Instant
    stopped_at: Instant | None
    trouble: str | None  # why it takes no tasks just now
    abilities: Abilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Something about the store that can be measured, for machines that watch it."""

    name: str
    label: str  # of what, where there are several
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A broken promise that ``verify`` found."""

    invariant: str
    task_id: str
    seen: str
