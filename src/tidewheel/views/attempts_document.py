"""Every attempt of a run with its times and resources: for timelines and distributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.views import RunAttempt, RunView, SubmissionView
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.ports.store import Store
from tidewheel.views.run_facts import Document
from tidewheel.vocabulary import time_text

SUBMISSIONS_MAX = 10_000


async def attempts_document(store: Store, view: RunView, count: int) -> Document:
    """Oldest first; `left_out`: older submissions may have attempts that are not shown."""
    limit = min(count, SUBMISSIONS_MAX)
    found = await store.run_attempts(view.number, limit)
    return {
        "run": view.name,
        "now": time_text(await store.now()),
        "attempts": list(_in_order(found[::-1])),
        "left_out": len({one.task_id for one in found}) == limit,
    }


async def repeated_attempts(
    store: Store, view: RunView, submissions: Iterable[SubmissionView]
) -> dict[TaskId, list[Document]]:
    """The attempts at submissions that had several; of one alone the submission says it all."""
    several = {one.task_id for one in submissions if one.attempt > 1}
    found: dict[TaskId, list[Document]] = {}
    if several:
        for one in (await store.run_attempts(view.number, SUBMISSIONS_MAX))[::-1]:
            if one.task_id in several and one.claimed_at is not None:
                found.setdefault(one.task_id, []).append(_short(one))
    return found


def _short(one: RunAttempt) -> Document:
    return {
        "attempt": one.attempt,
        "worker": one.worker,
        "started_at": time_text(one.started_at),
        "ended_at": time_text(one.ended_at),
        "ended_by": one.ended_by,
        "exit_status": one.exit_status,
    }


def _in_order(attempts: Sequence[RunAttempt]) -> Iterator[Document]:
    """An attempt behind another waits since that one ended."""
    over: dict[TaskId, Instant | None] = {}
    for one in attempts:
        waits_since = over.get(one.task_id) or one.submitted_at
        over[one.task_id] = one.ended_at
        yield _attempt(one, waits_since)


def _attempt(one: RunAttempt, queued_at: Instant) -> Document:
    job = read_job_name(one.task_id)
    return {
        "id": f"{job.point}/{job.node}",
        "point": job.point,
        "name": job.node,
        "submit": job.submit,
        "attempt": one.attempt,
        "task": one.task_id,
        "worker": one.worker,
        "queued_at": time_text(queued_at),
        "claimed_at": time_text(one.claimed_at),
        "started_at": time_text(one.started_at),
        "ended_at": time_text(one.ended_at),
        "ended_by": one.ended_by,
        "exit_status": one.exit_status,
        "asked": {
            "cpu": one.cpu_asked,
            "memory_bytes": one.memory_asked_bytes,
            "gpu": one.gpu_asked,
        },
        "used": {
            "memory_bytes": one.memory_used_bytes,
            "cpu_percent": one.cpu_used_percent,
            "gpu_percent": one.gpu_used_percent,
            "gpu_memory_bytes": one.gpu_memory_used_bytes,
        },
    }
