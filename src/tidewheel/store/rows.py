"""Holds the rows of the store as typed tuples, and converts them to core values, in one place.

A field is the column of its name in the queries that stand beside each type.
"""

from __future__ import annotations

import hashlib
import json
from collections import namedtuple
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, astuple, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast, overload

import msgspec

from tidewheel.api.tasks import AttemptView, HistoryEntry, Task, WorkerView
from tidewheel.core.queue.requests import Abilities, Claimed, HostProcess
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

Thing = TypeVar("Thing")
_namedtuple: Any = namedtuple  # whose fields mypy wants to see written out


def row_type(kind: Any, **parts: tuple[str, ...]) -> Any:  # noqa: ANN401 - any dataclass, a tuple
    """Returns the type of rows of which things of a kind are made.

    It has a column for each field, or those that are said instead.
    """
    columns = [column for one in fields(kind) for column in parts.get(one.name, (one.name,))]
    return _namedtuple(f"{kind.__name__}Row", columns)


@lru_cache(maxsize=64)
def _names(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass
    return tuple(one.name for one in fields(kind))


def _names_of(thing: object) -> tuple[str, ...]:
    kind: Any = type(thing)
    return _names(kind)


def filled(kind: type[Thing], row: Any, /, **made: object) -> Thing:  # noqa: ANN401 - any row
    """Returns a thing with the columns of a row, but for the fields that were made already."""
    names = _shared(cast("Hashable", kind), cast("Hashable", type(row)))
    return kind(**{name: getattr(row, name) for name in names if name not in made}, **made)


@lru_cache(maxsize=64)
def _shared(kind: Any, row: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass, any tuple
    return tuple(name for name in _names(kind) if name in row._fields)


# ---- what is asked or offered: the same columns in every table that has them ----

RESOURCE_COLUMNS = (
    *("cpu", "memory_bytes", "gpu", "labels"),
    *("nodes", "exclusive", "buffer_bytes"),
)


def resource_columns(given: Resources) -> dict[str, Any]:
    """Returns resources as they are stored."""
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
    """Returns what a row asks for; most tasks ask for nothing, and share one value."""
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
    """Returns a sorted JSON array; no labels are NULL, so that the claim skips the test."""
    return json.dumps(sorted(labels)) if labels else None


# ---- tasks ----


# Holds one row of read_tasks, lock_leased_tasks.
TaskStateRow = row_type(
    TaskState, lease=tuple(one.name for one in fields(Lease) if one.name != "owner")
)


class ClaimedRow(NamedTuple):
    """Holds one row of claim_tasks, claim_tasks_by_rules, get_claimed, list_orphans."""

    seq: int
    id: str
    queue: str
    name: str | None
    attempt: int
    spec: str | None
    command: str | None
    priority: int
    timeout_seconds: float | None
    max_termination_seconds: float
    run: int | None
    cpu: float
    memory_bytes: int
    gpu: int
    labels: str | None
    nodes: int
    exclusive: bool
    buffer_bytes: int
    handler: str | None
    limit_key: str | None
    now: float


# Of what a task shows, some is stored otherwise: in several columns, or under another name.
TaskViewRow = row_type(
    Task,
    spec_text=("spec",),
    resources=RESOURCE_COLUMNS,
    errors=("error_code", "error_args", "error_description"),
)


def task_state(r: Any) -> TaskState:  # noqa: ANN401 - a TaskStateRow
    """Returns the state of a task on which decisions are made."""
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


def claimed(r: ClaimedRow, *, lease_seconds: float, fence_kill: bool, limited: bool) -> Claimed:
    """Makes a claimed task of its row and of what the queue says about leases."""
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
        resources=_asked(r),
        fence_kill=fence_kill,
        limited=limited,
        run=r.run,
    )


def _asked(r: Any) -> Resources:  # noqa: ANN401 - a row with RESOURCE_COLUMNS
    nodes, exclusive = r.nodes, r.exclusive
    return resources(r.cpu, r.memory_bytes, r.gpu, r.labels, nodes, exclusive, r.buffer_bytes)


def task_view(r: Any) -> Task:  # noqa: ANN401 - a TaskViewRow
    """Returns a task as people see it."""
    status = Status(r.status)
    error = task_error(r.error_code, r.error_args, r.error_description)
    return filled(
        Task,
        r,
        spec_text=r.spec,
        status=status,
        retry=retry_policy(r.retry),
        armed=bool(r.armed),
        withdrawn=bool(r.withdrawn),
        resources=_asked(r),
        errors=(error,) if error is not None and status is Status.FAILED else (),
    )


# What a new task says is stored under the same names, but for what stands elsewhere.
_ELSEWHERE = ("needs", "continuations", "delay_seconds", "retry", "resources")
_SAID = tuple(one.name for one in fields(NewTask) if one.name not in _ELSEWHERE)
_said = attrgetter(*_SAID)


def new_task_row(task: NewTask, status: Status, digest: str) -> dict[str, object]:
    """Returns the row that insert_tasks stores."""
    row: dict[str, object] = dict(zip(_SAID, _said(task), strict=True))
    row |= resource_columns(task.resources)
    row["status"] = status.value
    row["due_at"] = task.delay_seconds or None  # from now, by the database's clock
    row["retry"] = retry_text(task.retry)
    row["executes"] = task.executes
    row["digest"] = digest
    return row


# ---- workers ----


# Holds one row of list_workers.
WorkerRow = row_type(
    WorkerView,
    process=("host", "boot_id", "pid", "process_started"),
    capacity=tuple(name for name in RESOURCE_COLUMNS if name != "exclusive"),
)


def worker_view(r: Any) -> WorkerView:  # noqa: ANN401 - a WorkerRow
    """Returns a worker as people see it."""
    return filled(
        WorkerView,
        r,
        id=WorkerId(r.id),
        process=HostProcess(
            host=r.host, boot_id=r.boot_id, pid=r.pid, started=r.process_started
        ),
        queues=tuple(json.loads(r.queues)),
        capacity=resources(
            r.cpu, r.memory_bytes, r.gpu, r.labels, r.nodes, False, r.buffer_bytes
        ),
        abilities=abilities(r.abilities),
    )


def abilities_text(known: Abilities) -> str:
    """Returns abilities as the worker's row keeps them."""
    handlers = None if known.handlers is None else sorted(known.handlers)
    return json.dumps({"commands": known.commands, "handlers": handlers, "bare": known.bare})


def abilities(text: str) -> Abilities:
    """Reads abilities from a worker's row."""
    said = json.loads(text)
    handlers = None if said["handlers"] is None else frozenset(said["handlers"])
    return Abilities(commands=said["commands"], handlers=handlers, bare=said["bare"])


WORKER_DIGITS_MAX = 18


def worker_number(worker: str) -> int:
    """Returns 27 for worker-27, and -1, which no worker has, for a name no store gave out."""
    kind, _, digits = worker.partition("-")
    number = int(digits) if digits.isdecimal() and len(digits) <= WORKER_DIGITS_MAX else -1
    # "worker-07" is not worker-7: an owner is compared letter by letter.
    return number if kind == "worker" and digits == str(number) else -1


HistoryRow = row_type(HistoryEntry)


def history_entry(r: Any) -> HistoryEntry:  # noqa: ANN401 - a HistoryRow
    """Returns one step of a task's life."""
    return filled(
        HistoryEntry,
        r,
        signal=None if r.signal is None else Signal(r.signal),
        from_status=None if r.from_status is None else Status(r.from_status),
        to_status=Status(r.to_status),
    )


AttemptRow = row_type(AttemptView, error=("error_code", "error_args", "error_description"))


def attempt_view(r: Any) -> AttemptView:  # noqa: ANN401 - an AttemptRow
    """Returns an attempt as people see it."""
    return filled(
        AttemptView,
        r,
        ended_by=None if r.ended_by is None else Signal(r.ended_by),
        error=task_error(r.error_code, r.error_args, r.error_description),
    )


class AttemptAt(NamedTuple):
    """Holds one row of list_usage, beside a UsageSample."""

    attempt: int
    at: float


class OrphanRow(NamedTuple):
    """Holds one row of list_orphans, beside a ClaimedRow."""

    owner: str
    pid: int
    process_started: float
    messages: int
    lease_seconds: float
    fence_kill: bool


def task_error(code: str | None, args: str | None, description: str | None) -> TaskError | None:
    """Returns the error that three columns hold, or None; they are set all or none."""
    if code is None:
        return None
    return TaskError(code=code, args=args or "{}", description=description or "")


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """Returns a text as every database can hold it: without NUL and half characters."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_end(end: End) -> End:
    """Returns the end of an attempt with texts that every database can hold."""
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
    """Reads a policy from its JSON text; a store holds few different ones."""
    said = json.loads(text)
    if "seconds" in said:
        return FixedDelays(seconds=tuple(said["seconds"]))
    return Exponential(**said)


@lru_cache(maxsize=1024)
def retry_text(policy: RetryPolicy) -> str:
    """Returns the JSON text of a policy."""
    return msgspec.json.encode(policy).decode()


# ---- the digest of a submission: are two tasks of one id the same? ----
#
# A digest is stored with its task, and compared with that of a submission which may come years
# and versions later. So it must not depend on which fields a version knows. It is made of the
# fields below, with the defaults that they had, in that order, for ever. What came later is
# part of it only where a task says something else than its default; a field that is gone counts
# as its default. The lists are never edited: a digest that was stored would not be found again,
# and a client that repeats an old submission would be refused.

Defaults = Mapping[str, object]

_NO_PART = ("id", "run")  # of a digest
_TASK: Defaults = {
    "queue": "",
    "name": None,
    "spec": None,
    "command": None,
    "handler": None,
    "priority": 50,
    "delay_seconds": 0.0,
    "armed": True,
    "needs": None,  # with the fields of its own, as are `retry` and `resources`
    "continuations": (),
    "max_retries": 0,
    "retry": None,
    "max_lapses": 5,
    "timeout_seconds": None,
    "estimated_runtime_seconds": None,
    "max_termination_seconds": 10.0,
    "resources": None,
    "unique_key": None,
    "limit_key": None,
    "tag": None,
}
_NEED: Defaults = {"task_id": "", "output": "succeeded"}
_FIXED_DELAYS: Defaults = {"seconds": (0.0,)}
_EXPONENTIAL: Defaults = {
    "first_seconds": 1.0,
    "factor": 2.0,
    "seconds_max": 3600.0,
    "jitter": 0.5,
}
_RESOURCES: Defaults = {
    "cpu": 0.0,
    "memory_bytes": 0,
    "gpu": 0,
    "labels": (),
    "nodes": 1,
    "exclusive": False,
    "buffer_bytes": 0,
    "idle_nodes": None,
}
_TODAY = (
    (*_NO_PART, *_TASK),
    *map(tuple, (_RESOURCES, _FIXED_DELAYS, _EXPONENTIAL, _NEED)),
)
# Left out, so that a task has the digest that it had before it could ask for these.
_ONE_SHARED_NODE = b',"nodes":1,"exclusive":false,"buffer_bytes":0,"idle_nodes":null}'


def digest_of(task: NewTask) -> str:
    """Returns a short text that tells the body of one task from that of any other."""
    task = _in_floats(task)
    policy = _FIXED_DELAYS if isinstance(task.retry, FixedDelays) else _EXPONENTIAL
    if (
        _names_of(task) == _TODAY[0]
        and _names_of(task.resources) == _TODAY[1]
        and _names_of(task.retry) in _TODAY[2:4]
        and all(_names_of(need) == _TODAY[4] for need in task.needs)
    ):
        # The fields of today: they need not be picked one by one.
        whole = msgspec.json.encode(task, order="deterministic")
        # The id is the first field. What it says cannot end it: there a quote has a backslash.
        body = whole[whole.index(b',"queue":') :]
    else:
        picked = _picked(task, _TASK) | {
            "needs": [_picked(need, _NEED) for need in task.needs],
            "retry": _picked(task.retry, policy),
            "resources": _picked(task.resources, _RESOURCES),
        }
        body = b"," + msgspec.json.encode(picked)[1:]
    body = body.replace(_ONE_SHARED_NODE, b"}", 1)
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _picked(thing: Any, known: Defaults) -> dict[str, object]:  # noqa: ANN401 - any version's
    """Returns the fields of a digest: those of the list, and what is said besides."""
    found = {name: getattr(thing, name, default) for name, default in known.items()}
    for one in fields(thing):
        if one.name in known or one.name in _NO_PART:
            continue
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if (value := getattr(thing, one.name)) != default:
            found[one.name] = value
    sets = {name: sorted(one) for name, one in found.items() if isinstance(one, frozenset)}
    return found | sets


def _in_floats(task: NewTask) -> NewTask:
    """Returns the task with floats for integers: 5 and 5.0 are one number, and a task that came
    by HTTP cannot tell which of them was meant."""
    times = task.delay_seconds, task.max_termination_seconds
    limits = task.timeout_seconds, task.estimated_runtime_seconds
    delays = _delays(task.retry)
    if int not in map(type, (*times, *limits, *delays, task.resources.cpu)):
        return task  # as nearly all of them are
    timeout, estimated = (None if one is None else float(one) for one in limits)
    delay, termination = map(float, times)
    return replace(
        task,
        delay_seconds=delay,
        retry=_policy(task.retry, tuple(map(float, delays))),
        timeout_seconds=timeout,
        estimated_runtime_seconds=estimated,
        max_termination_seconds=termination,
        resources=replace(task.resources, cpu=float(task.resources.cpu)),
    )


def _delays(policy: RetryPolicy) -> tuple[float, ...]:
    return policy.seconds if isinstance(policy, FixedDelays) else astuple(policy)


def _policy(policy: RetryPolicy, delays: tuple[float, ...]) -> RetryPolicy:
    if isinstance(policy, FixedDelays):
        return FixedDelays(seconds=delays)
    first, factor, longest, jitter = delays
    return Exponential(first_seconds=first, factor=factor, seconds_max=longest, jitter=jitter)
