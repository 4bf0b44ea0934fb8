"""The JSON that commands answer with: stable shapes, written down in docs/json.md.

Times are ISO 8601 in UTC, durations seconds, sizes bytes; specs, metrics and error args are
the JSON values themselves, not text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidewheel.client.results import Batch, Task, decoded
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings, Submitted
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import FixedDelays, RetryPolicy
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.views import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    QueueView,
    UsageView,
    WorkerView,
)
from tidewheel.vocabulary import error_document, time_text

Document = dict[str, object]


def task_document(task: Task) -> Document:
    """A task with every field."""
    return {
        "id": task.id,
        "seq": task.seq,
        "queue": task.queue,
        "name": task.name,
        "tag": task.tag,
        "status": task.status.value,
        "progress": task.progress,
        "attempt": task.attempt,
        "failures": task.failures,
        "lapses": task.lapses,
        "max_retries": task.max_retries,
        "max_lapses": task.max_lapses,
        "retry": retry_document(task.retry),
        "priority": task.priority,
        "command": task.command,
        "handler": task.handler,
        "spec": task.spec,
        "resources": resources_document(task.resources),
        "timeout_seconds": task.timeout_seconds,
        "estimated_runtime_seconds": task.estimated_runtime_seconds,
        "max_termination_seconds": task.max_termination_seconds,
        "unique_key": task.unique_key,
        "limit_key": task.limit_key,
        "armed": task.armed,
        "open_needs": task.open_needs,
        "withdrawn": task.withdrawn,
        "owner": task.owner,
        "created_at": time_text(task.created_at),
        "updated_at": time_text(task.updated_at),
        "due_at": time_text(task.due_at),
        "deadline_at": time_text(task.deadline_at),
        "errors": [error_document(error) for error in task.errors],
    }


def retry_document(policy: RetryPolicy) -> Document:
    """Delays in seconds, or how they grow."""
    if isinstance(policy, FixedDelays):
        return {"delays": list(policy.seconds)}
    return {
        "first_seconds": policy.first_seconds,
        "factor": policy.factor,
        "seconds_max": policy.seconds_max,
        "jitter": policy.jitter,
    }


def resources_document(resources: Resources) -> Document:
    """What is asked or offered."""
    return {
        "cpu": resources.cpu,
        "memory_bytes": resources.memory_bytes,
        "gpu": resources.gpu,
        "labels": sorted(resources.labels),
        "nodes": resources.nodes,
        "exclusive": resources.exclusive,
        "buffer_bytes": resources.buffer_bytes,
    }


def batch_document(batch: Batch, lines: Mapping[str, int]) -> Document:
    """What became of many tasks; the refused ones with their line in the file."""
    return {
        "inserted": list(batch.inserted),
        "present": list(batch.present),
        "failed": [refusal_document(one, lines) for one in batch.failed],
        "invalid": [refusal_document(one, lines) for one in batch.invalid],
    }


def refusal_document(one: Submitted, lines: Mapping[str, int]) -> Document:
    """Why a task was not stored."""
    assert one.refused is not None
    return {
        "line": lines.get(one.id),
        "id": one.id,
        "code": one.refused.code,
        "message": str(one.refused),
    }


def attempt_document(attempt: AttemptView) -> Document:
    """One attempt."""
    return {
        "attempt": attempt.attempt,
        "worker": attempt.worker,
        "claimed_at": time_text(attempt.claimed_at),
        "started_at": time_text(attempt.started_at),
        "ended_at": time_text(attempt.ended_at),
        "ended_by": attempt.ended_by.value if attempt.ended_by else None,
        "exit_status": attempt.exit_status,
        "error": error_document(attempt.error) if attempt.error else None,
        "metrics": decoded(attempt.metrics),
    }


def history_document(entry: HistoryEntry) -> Document:
    """One step; ``signal`` is null for the creation."""
    return {
        "seq": entry.seq,
        "at": time_text(entry.at),
        "signal": entry.signal.value if entry.signal else None,
        "from": entry.from_status.value if entry.from_status else None,
        "to": entry.to_status.value,
        "attempt": entry.attempt,
        "worker": entry.worker,
        "progress": entry.progress,
    }


def output_document(output: OutputView) -> Document:
    """A message, or an output if it has a name."""
    return {
        "attempt": output.attempt,
        "number": output.number,
        "at": time_text(output.at),
        "text": output.text,
        "output": output.output,
    }


def usage_document(usage: Sequence[UsageView]) -> Document:
    """The peak and the mean of what was used."""
    memory = [point.sample.memory_bytes for point in usage]
    cpu = [point.sample.cpu_percent for point in usage]
    gpu = [point.sample.gpu_percent for point in usage]
    return {
        "samples": len(usage),
        "memory_bytes_peak": max(_known(memory), default=None),
        "cpu_percent_mean": _mean(_known(cpu)),
        "cpu_percent_peak": max(_known(cpu), default=None),
        "gpu_percent_mean": _mean(_known(gpu)),
    }


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), 1) if values else None


def edge_document(edge: EdgeView, statuses: dict[str, Status]) -> Document:
    """A dependency with the state of the task at each end."""
    return {
        "parent": edge.parent,
        "child": edge.child,
        "output": edge.output,
        "state": edge.state.value,
        "parent_status": statuses[edge.parent].value,
        "child_status": statuses[edge.child].value,
    }


def queue_document(view: QueueView) -> Document:
    """A queue: how it is set, and how much waits in it."""
    return {
        "queue": view.queue,
        **settings_document(view.settings),
        "counts": {
            status.value: view.counts.get(status, 0)
            for status in (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)
        },
        "oldest_ready_seconds": view.oldest_ready_seconds,
    }


def settings_document(settings: QueueSettings) -> Document:
    """How a queue behaves."""
    return {
        "paused": settings.paused,
        "aging": settings.aging,
        "fence_kill": settings.fence_kill,
        "lease_seconds": settings.lease_seconds,
        "limits": [limit_document(limit) for limit in settings.limits],
    }


def limit_document(limit: Limit) -> Document:
    """A limit; the key is "" for the whole queue and "*" for each key."""
    return {
        "key": limit.key,
        "concurrency_max": limit.concurrency_max,
        "rate_max": limit.rate_max,
        "rate_seconds": limit.rate_seconds,
    }


def worker_document(worker: WorkerView) -> Document:
    """A worker and what it holds."""
    return {
        "id": worker.id,
        "name": worker.name,
        "host": worker.process.host,
        "boot_id": worker.process.boot_id,
        "pid": worker.process.pid,
        "started": worker.process.started,
        "queues": list(worker.queues),
        "slots": worker.slots,
        "leases": worker.leases,
        "capacity": resources_document(worker.capacity),
        "registered_at": time_text(worker.registered_at),
        "seen_at": time_text(worker.seen_at),
        "stopped_at": time_text(worker.stopped_at),
        "trouble": worker.trouble,
        "commands": worker.abilities.commands,
        "handlers": None
        if worker.abilities.handlers is None
        else sorted(worker.abilities.handlers),
        "bare": worker.abilities.bare,
    }
