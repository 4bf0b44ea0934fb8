"""Tasks on their way in and out."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET

from tidewheel.core.queue.requests import Cancelled, Claimed
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import FixedDelays, RetryPolicy
from tidewheel.core.queue.task import TaskError
from tidewheel.core.queue.views import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    TaskView,
    UsageView,
)
from tidewheel.server.wire.forms import Duration, In, Out, Size
from tidewheel.vocabulary import time_text

NULL = msgspec.Raw(b"null")
Text = Annotated[str, msgspec.Meta(max_length=256)]
# What stands beside it as a text, where only that is the same letter by letter.
JsonText = str | msgspec.UnsetType


class Backoff(In):
    """Growing delays between retries."""

    first_seconds: float = 1.0
    factor: float = 2.0
    seconds_max: float = 600.0
    jitter: float = 0.5


class TaskIn(In):
    """A new task; nothing is required, and null is the same as not given."""

    id: Text | None = None
    queue: Text | None = None
    name: Text | None = None
    spec: msgspec.Raw = msgspec.field(
        default_factory=msgspec.Raw
    )  # any JSON value, stored and returned letter by letter
    spec_text: str | None = None  # the same as a text that holds JSON, white space and all
    command: str | None = None
    handler: Text | None = None
    priority: int | None = None
    delay: Duration | None = None
    armed: bool | None = None
    needs: list[str | tuple[str, str]] | None = None
    continuations: list[str] | None = None
    retries: int | None = None
    retry_delays: list[Duration] | None = None
    backoff: Backoff | bool | None = None
    max_lapses: int | None = None
    timeout: Duration | None = None
    estimated_runtime: Duration | None = None
    max_termination: Duration | None = None
    cpu: float | None = None
    memory: Size | None = None
    gpu: int | None = None
    labels: list[str] | None = None
    nodes: int | None = None
    exclusive: bool | None = None
    buffer: Size | None = None
    unique_key: Text | None = None
    limit_key: Text | None = None
    tag: Text | None = None


class ResourcesOut(Out):
    """What is asked or offered."""

    cpu: float
    memory_bytes: int
    gpu: int
    labels: list[str]
    nodes: int
    exclusive: bool
    buffer_bytes: int


class ErrorOut(Out):
    """Why a task failed."""

    code: str
    args: msgspec.Raw
    description: str


class TaskOut(Out, kw_only=True):
    """A task with every field; times are ISO 8601 in UTC."""

    id: str
    seq: int
    queue: str
    name: str | None
    tag: str | None
    status: str
    progress: float
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    max_lapses: int
    retry: dict[str, float | list[float]]
    priority: int
    command: str | None
    handler: str | None
    spec: msgspec.Raw
    spec_text: JsonText = UNSET
    resources: ResourcesOut
    timeout_seconds: float | None
    estimated_runtime_seconds: float | None
    max_termination_seconds: float
    unique_key: str | None
    limit_key: str | None
    armed: bool
    open_needs: int
    withdrawn: bool
    owner: str | None
    created_at: str | None
    updated_at: str | None
    due_at: str | None
    deadline_at: str | None
    errors: list[ErrorOut]


class CancelledOut(Out):
    """The answer to one request to cancel; again changes nothing."""

    id: str
    status: str
    changed: bool


class FilterIn(In):
    """Which tasks; everything given must match."""

    status: str | list[str] | None = None
    queue: str | None = None
    worker: str | None = None
    tag: str | None = None
    name: str | None = None
    estimated_runtime_seconds_max: float | None = None
    memory_bytes_min: Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None = None


class CancelIn(In):
    """Either ids, or a filter; one that names nothing needs ``all``."""

    ids: Annotated[list[str], msgspec.Meta(max_length=10_000)] | None = None
    filter: FilterIn | None = None
    all: bool = False
    count_max: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


class HistoryOut(Out):
    """One step of a task's life; ``signal`` is null for the creation."""

    seq: int
    at: str | None
    signal: str | None
    from_status: str | None = msgspec.field(name="from")
    to_status: str = msgspec.field(name="to")
    attempt: int
    worker: str | None
    progress: float


class AttemptOut(Out, kw_only=True):
    """One lease of a task."""

    attempt: int
    worker: str
    claimed_at: str | None
    started_at: str | None
    ended_at: str | None
    ended_by: str | None
    exit_status: int | None
    error: ErrorOut | None
    metrics: msgspec.Raw
    metrics_text: JsonText = UNSET


class OutputOut(Out):
    """A message, or an output if it has a name."""

    attempt: int
    number: int
    at: str | None
    text: str
    output: str | None


class UsageOut(Out):
    """A point of a usage series."""

    attempt: int
    at: str | None
    memory_bytes: int | None
    cpu_percent: float | None
    gpu_percent: float | None
    gpu_memory_bytes: int | None


class EdgeOut(Out):
    """A dependency between two tasks."""

    parent: str
    child: str
    output: str
    state: str


class WhyOut(Out):
    """Why a task does not run; empty if nothing holds it back."""

    id: str
    reasons: list[str]


class ClaimedOut(Out, kw_only=True):
    """A task handed to a worker, with all it needs; ``attempt`` belongs to every report."""

    seq: int
    id: str
    queue: str
    name: str | None
    attempt: int
    spec: msgspec.Raw
    spec_text: JsonText = UNSET
    command: str | None
    handler: str | None
    priority: int
    deadline_at: str | None
    lease_seconds: float
    timeout_seconds: float | None
    max_termination_seconds: float
    resources: ResourcesOut
    fence_kill: bool  # the job must end before its lease does
    limited: bool  # others may wait for the place that its end leaves: name its queue as frees
    run: int | None


def raw(text: str | None) -> msgspec.Raw:
    """Stored JSON as it is; nothing is null."""
    return NULL if text is None else msgspec.Raw(text.encode())


def json_text(text: str | None) -> JsonText:
    """Where the JSON alone does not say it letter by letter: null, or with space around it."""
    return UNSET if text is None or (text == text.strip() != "null") else text


def resources_out(resources: Resources) -> ResourcesOut:
    return ResourcesOut(
        cpu=resources.cpu,
        memory_bytes=resources.memory_bytes,
        gpu=resources.gpu,
        labels=sorted(resources.labels),
        nodes=resources.nodes,
        exclusive=resources.exclusive,
        buffer_bytes=resources.buffer_bytes,
    )


def error_out(error: TaskError) -> ErrorOut:
    return ErrorOut(code=error.code, args=raw(error.args), description=error.description)


def retry_out(policy: RetryPolicy) -> dict[str, float | list[float]]:
    if isinstance(policy, FixedDelays):
        return {"delays": list(policy.seconds)}
    return {
        "first_seconds": policy.first_seconds,
        "factor": policy.factor,
        "seconds_max": policy.seconds_max,
        "jitter": policy.jitter,
    }


_SAME = (
    *("id", "seq", "queue", "name", "tag", "progress", "attempt", "failures", "lapses"),
    *("max_retries", "max_lapses", "priority", "command", "handler", "timeout_seconds"),
    *("estimated_runtime_seconds", "max_termination_seconds", "unique_key", "limit_key"),
    *("armed", "open_needs", "withdrawn", "owner"),
)


def task_out(task: TaskView) -> TaskOut:
    """A stored task, written out."""
    return TaskOut(
        **{name: getattr(task, name) for name in _SAME},
        status=task.status.value,
        retry=retry_out(task.retry),
        spec=raw(task.spec),
        spec_text=json_text(task.spec),
        resources=resources_out(task.resources),
        created_at=time_text(task.created_at),
        updated_at=time_text(task.updated_at),
        due_at=time_text(task.due_at),
        deadline_at=time_text(task.deadline_at),
        errors=[error_out(error) for error in task.errors],
    )


def claimed_out(task: Claimed) -> ClaimedOut:
    """A lease, written out."""
    return ClaimedOut(
        seq=task.seq,
        id=task.id,
        queue=task.queue,
        name=task.name,
        attempt=task.attempt,
        spec=raw(task.spec),
        spec_text=json_text(task.spec),
        command=task.command,
        handler=task.handler,
        priority=task.priority,
        deadline_at=time_text(task.deadline_at),
        lease_seconds=task.lease_seconds,
        timeout_seconds=task.timeout_seconds,
        max_termination_seconds=task.max_termination_seconds,
        resources=resources_out(task.resources),
        fence_kill=task.fence_kill,
        limited=task.limited,
        run=task.run,
    )


def cancelled_out(one: Cancelled) -> CancelledOut:
    return CancelledOut(id=one.id, status=one.status.value, changed=one.changed)


def history_out(entry: HistoryEntry) -> HistoryOut:
    return HistoryOut(
        seq=entry.seq,
        at=time_text(entry.at),
        signal=entry.signal.value if entry.signal else None,
        from_status=entry.from_status.value if entry.from_status else None,
        to_status=entry.to_status.value,
        attempt=entry.attempt,
        worker=entry.worker,
        progress=entry.progress,
    )


def attempt_out(attempt: AttemptView) -> AttemptOut:
    return AttemptOut(
        attempt=attempt.attempt,
        worker=attempt.worker,
        claimed_at=time_text(attempt.claimed_at),
        started_at=time_text(attempt.started_at),
        ended_at=time_text(attempt.ended_at),
        ended_by=attempt.ended_by.value if attempt.ended_by else None,
        exit_status=attempt.exit_status,
        error=error_out(attempt.error) if attempt.error else None,
        metrics=raw(attempt.metrics),
        metrics_text=json_text(attempt.metrics),
    )


def output_out(output: OutputView) -> OutputOut:
    return OutputOut(
        attempt=output.attempt,
        number=output.number,
        at=time_text(output.at),
        text=output.text,
        output=output.output,
    )


def usage_out(usage: UsageView) -> UsageOut:
    sample = usage.sample
    return UsageOut(
        attempt=usage.attempt,
        at=time_text(usage.at),
        memory_bytes=sample.memory_bytes,
        cpu_percent=sample.cpu_percent,
        gpu_percent=sample.gpu_percent,
        gpu_memory_bytes=sample.gpu_memory_bytes,
    )


def edge_out(edge: EdgeView) -> EdgeOut:
    return EdgeOut(
        parent=edge.parent, child=edge.child, output=edge.output, state=edge.state.value
    )
