"""Rows of the store as typed tuples, and their conversion to core values, in one place.

The order of fields is the order of columns in the queries named beside each type.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, overload

import msgspec

from tidewheel.core.queue.requests import Abilities, Claimed, HostProcess, UsageSample
from tidewheel.core.queue.resources import NO_RESOURCES, Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.status import LEASED, Signal, Status
from tidewheel.core.queue.steps import End
from tidewheel.core.queue.task import (
    Instant,
    Lease,
    NewTask,
    TaskError,
    TaskId,
    TaskState,
    WorkerId,
)
from tidewheel.core.queue.views import AttemptView, HistoryEntry, TaskView, WorkerView

# ---- what is asked or offered: the same columns in every table that has them ----

RESOURCE_COLUMNS = (
    *("cpu", "memory_bytes", "gpu", "labels"),
    *("nodes", "exclusive", "buffer_bytes"),
)


def columns_in(row: type[NamedTuple]) -> slice:
    """Where a row has them."""
    fields: tuple[str, ...] = row._fields
    first = fields.index(RESOURCE_COLUMNS[0])
    found = slice(first, first + len(RESOURCE_COLUMNS))
    assert fields[found] == RESOURCE_COLUMNS, fields
    return found


def resource_columns(given: Resources) -> dict[str, Any]:
    """As they are stored."""
    return {
        "cpu": given.cpu,
        "memory_bytes": given.memory_bytes,
        "gpu": given.gpu,
        "labels": labels_text(given.labels),
        "nodes": given.nodes,
        "exclusive": given.exclusive,
        "buffer_bytes": given.buffer_bytes,
    }


def resources(  # noqa: PLR0913, PLR0917 - the columns, in their order
    cpu: float,
    memory_bytes: int,
    gpu: int,
    labels: str | None,
    nodes: int,
    exclusive: bool,
    buffer_bytes: int,
) -> Resources:
    """Most tasks ask for nothing: they share one value."""
    asks_nothing = not cpu and not memory_bytes and not gpu and labels is None
    if asks_nothing and nodes == 1 and not exclusive and not buffer_bytes:
        return NO_RESOURCES
    return Resources(
        cpu=cpu,
        memory_bytes=memory_bytes,
        gpu=gpu,
        labels=frozenset(json.loads(labels)) if labels else frozenset(),
        nodes=nodes,
        exclusive=bool(exclusive),
        buffer_bytes=buffer_bytes,
    )


def labels_text(labels: frozenset[str]) -> str | None:
    """A sorted JSON array; nothing asked is NULL, so that the claim skips the test."""
    return json.dumps(sorted(labels)) if labels else None


# ---- tasks ----


class TaskStateRow(NamedTuple):
    """read_tasks, lock_leased_tasks."""

    seq: int
    id: str
    queue: str
    status: str
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    retry: str
    max_lapses: int
    timeout_seconds: float | None
    armed: bool
    executes: bool
    graph: int | None
    run: int | None
    owner: str | None
    deadline_at: float | None
    lease_seconds: float | None
    claimed_at: float | None
    started_at: float | None
    progress: float | None
    messages: int | None


class ClaimedRow(NamedTuple):
    """claim_tasks, claim_tasks_by_rules, get_claimed, list_orphans."""

    seq: int
    id: str
    queue: str
    name: str | None
    attempt: int
    spec: str | None
    command: str | None
    handler: str | None
    priority: int
    timeout_seconds: float | None
    max_termination_seconds: float
    cpu: float
    memory_bytes: int
    gpu: int
    labels: str | None
    nodes: int
    exclusive: bool
    buffer_bytes: int
    limit_key: str | None
    run: int | None
    now: float


class TaskViewRow(NamedTuple):
    """get_tasks."""

    seq: int
    id: str
    queue: str
    name: str | None
    spec: str | None
    command: str | None
    handler: str | None
    priority: int
    status: str
    progress: float
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    retry: str
    max_lapses: int
    timeout_seconds: float | None
    estimated_runtime_seconds: float | None
    max_termination_seconds: float
    cpu: float
    memory_bytes: int
    gpu: int
    labels: str | None
    nodes: int
    exclusive: bool
    buffer_bytes: int
    unique_key: str | None
    limit_key: str | None
    tag: str | None
    armed: bool
    due_at: float | None
    created_at: float
    updated_at: float
    owner: str | None
    deadline_at: float | None
    error_code: str | None
    error_args: str | None
    error_description: str | None
    open_needs: int
    withdrawn: bool


_ASKED = columns_in(ClaimedRow)
_VIEWED = columns_in(TaskViewRow)


def task_state(row: Sequence[Any]) -> TaskState:
    """From a TaskStateRow."""
    r = TaskStateRow._make(row)
    status = Status(r.status)
    lease = None
    if status in LEASED:
        assert r.owner is not None and r.deadline_at is not None and r.claimed_at is not None
        lease = Lease(
            owner=WorkerId(r.owner),
            deadline_at=Instant(r.deadline_at),
            lease_seconds=r.lease_seconds or 0.0,
            claimed_at=Instant(r.claimed_at),
            started_at=None if r.started_at is None else Instant(r.started_at),
            progress=r.progress or 0.0,
            messages=r.messages or 0,
        )
    return TaskState(
        seq=r.seq,
        id=TaskId(r.id),
        queue=r.queue,
        status=status,
        attempt=r.attempt,
        failures=r.failures,
        lapses=r.lapses,
        max_retries=r.max_retries,
        retry=retry_policy(r.retry),
        max_lapses=r.max_lapses,
        timeout_seconds=r.timeout_seconds,
        armed=bool(r.armed),
        executes=bool(r.executes),
        graph=r.graph,
        run=r.run,
        owner=None if r.owner is None else WorkerId(r.owner),
        lease=lease,
    )


def claimed(
    row: Sequence[Any], *, lease_seconds: float, fence_kill: bool, limited: bool
) -> Claimed:
    """From a ClaimedRow and what the queue says about leases."""
    r = ClaimedRow._make(row)
    return Claimed(
        seq=r.seq,
        id=TaskId(r.id),
        queue=r.queue,
        name=r.name,
        attempt=r.attempt,
        spec=r.spec,
        command=r.command,
        handler=r.handler,
        priority=r.priority,
        deadline_at=Instant(r.now + lease_seconds),
        lease_seconds=lease_seconds,
        timeout_seconds=r.timeout_seconds,
        max_termination_seconds=r.max_termination_seconds,
        resources=resources(*row[_ASKED]),
        fence_kill=fence_kill,
        limited=limited,
        run=r.run,
    )


def lease_rows(
    rows: Sequence[Sequence[Any]], worker: str, lease_seconds: float
) -> list[dict[str, object]]:
    """The leases that belong to ClaimedRows."""
    return [
        {
            "seq": task.seq,
            "attempt": task.attempt,
            "owner": worker,
            "queue": task.queue,
            "rank": -task.priority,
            "limit_key": task.limit_key,
            "claimed_at": task.now,
            "lease_seconds": lease_seconds,
        }
        for task in map(ClaimedRow._make, rows)
    ]


def task_view(row: Sequence[Any]) -> TaskView:
    """From a TaskViewRow."""
    r = TaskViewRow._make(row)
    fields = r._asdict()
    for name in RESOURCE_COLUMNS:
        del fields[name]
    error = task_error(r.error_code, r.error_args, r.error_description)
    for name in ("error_code", "error_args", "error_description"):
        del fields[name]
    status = Status(r.status)
    return TaskView(
        **fields
        | {
            "status": status,
            "retry": retry_policy(r.retry),
            "armed": bool(r.armed),
            "withdrawn": bool(r.withdrawn),
            "resources": resources(*row[_VIEWED]),
            "errors": (error,) if error is not None and status is Status.FAILED else (),
        }
    )


def new_task_row(task: NewTask, status: Status, digest: str) -> dict[str, object]:
    """The row that insert_tasks stores."""
    return {
        "id": task.id,
        "queue": task.queue,
        "name": task.name,
        "spec": task.spec,
        "command": task.command,
        "handler": task.handler,
        "priority": task.priority,
        "status": status.value,
        "delay_seconds": task.delay_seconds,
        "max_retries": task.max_retries,
        "retry": retry_text(task.retry),
        "max_lapses": task.max_lapses,
        "timeout_seconds": task.timeout_seconds,
        "estimated_runtime_seconds": task.estimated_runtime_seconds,
        "max_termination_seconds": task.max_termination_seconds,
        **resource_columns(task.resources),
        "unique_key": task.unique_key,
        "limit_key": task.limit_key,
        "tag": task.tag,
        "armed": task.armed,
        "executes": task.executes,
        "digest": digest,
        "run": task.run,
    }


# ---- workers ----


def worker_view(row: Sequence[Any]) -> WorkerView:
    """From list_workers."""
    (id_, name, host, boot_id, pid, started, queues, slots) = row[:8]
    cpu, memory, gpu, labels, nodes, buffer = row[8:14]
    return WorkerView(
        id=id_,
        name=name,
        process=HostProcess(host=host, boot_id=boot_id, pid=pid, started=started),
        queues=tuple(json.loads(queues)),
        slots=slots,
        capacity=resources(cpu, memory, gpu, labels, nodes, False, buffer),
        leases=row[14],
        registered_at=row[15],
        seen_at=row[16],
        stopped_at=row[17],
        trouble=row[18],
        abilities=abilities(row[19]),
    )


def abilities_text(known: Abilities) -> str:
    """As the worker's row keeps them."""
    handlers = None if known.handlers is None else sorted(known.handlers)
    return json.dumps({"commands": known.commands, "handlers": handlers, "bare": known.bare})


def abilities(text: str) -> Abilities:
    """From a worker's row."""
    said = json.loads(text)
    handlers = None if said["handlers"] is None else frozenset(said["handlers"])
    return Abilities(commands=said["commands"], handlers=handlers, bare=said["bare"])


WORKER_DIGITS_MAX = 18


def worker_number(worker: str) -> int:
    """27 of worker-27; a name that no store gave out is nobody's number."""
    kind, _, digits = worker.partition("-")
    number = int(digits) if digits.isdecimal() and len(digits) <= WORKER_DIGITS_MAX else -1
    # "worker-07" is not worker-7: an owner is compared letter by letter.
    return number if kind == "worker" and digits == str(number) else -1


def history_entry(row: Sequence[Any]) -> HistoryEntry:
    """From (seq, at, signal, from_status, to_status, attempt, worker, progress)."""
    seq, at, signal, from_status, to_status, attempt, worker, progress = row
    return HistoryEntry(
        seq=seq,
        at=at,
        signal=None if signal is None else Signal(signal),
        from_status=None if from_status is None else Status(from_status),
        to_status=Status(to_status),
        attempt=attempt,
        worker=worker,
        progress=progress,
    )


def attempt_view(row: Sequence[Any]) -> AttemptView:
    """From (attempt, worker, claimed_at, started_at, ended_at, ended_by, exit_status,
    error_code, error_args, error_description, metrics)."""
    (attempt, worker, claimed_at, started_at, ended_at, ended_by, exit_status) = row[:7]
    return AttemptView(
        attempt=attempt,
        worker=worker,
        claimed_at=claimed_at,
        started_at=started_at,
        ended_at=ended_at,
        ended_by=None if ended_by is None else Signal(ended_by),
        exit_status=exit_status,
        error=task_error(*row[7:10]),
        metrics=row[10],
    )


def usage_sample(row: Sequence[Any]) -> UsageSample:
    """From (memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes)."""
    memory_bytes, cpu_percent, gpu_percent, gpu_memory_bytes = row
    return UsageSample(
        memory_bytes=memory_bytes,
        cpu_percent=cpu_percent,
        gpu_percent=gpu_percent,
        gpu_memory_bytes=gpu_memory_bytes,
    )


def task_error(code: str | None, args: str | None, description: str | None) -> TaskError | None:
    """An error is three columns, all or none."""
    if code is None:
        return None
    return TaskError(code=code, args=args or "{}", description=description or "")


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """What a job said, as every database can hold it: without NUL and half characters."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_end(end: End) -> End:
    """The same for what is said about the end of an attempt."""
    error = end.error
    if error is not None:
        error = TaskError(
            code=storable(error.code),
            args=storable(error.args),
            description=storable(error.description),
        )
    return replace(end, error=error, metrics=storable(end.metrics), values=storable(end.values))


@lru_cache(maxsize=1024)
def retry_policy(text: str) -> RetryPolicy:
    """From its JSON text; a store holds few different policies."""
    fields = json.loads(text)
    if "seconds" in fields:
        return FixedDelays(seconds=tuple(fields["seconds"]))
    return Exponential(**fields)


@lru_cache(maxsize=1024)
def retry_text(policy: RetryPolicy) -> str:
    """Its JSON text."""
    return msgspec.json.encode(policy).decode()
