"""Says how values of tasks and workers are kept in rows, and what their digest is."""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, astuple, fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, overload

import msgspec

from tidewheel.api.tasks import InputView, Task
from tidewheel.core.queue.requests import Abilities, Claimed, End, HostProcess
from tidewheel.core.queue.resources import (
    NO_RESOURCES,
    RUNNER_LABEL_PREFIX,
    FlavouredNodes,
    Resources,
    nodes_of,
)
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.core.queue.task import (
    AlikeTasks,
    Instant,
    Lease,
    NewTask,
    TaskError,
    TaskState,
    WorkerId,
)
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.transaction import STORED, Stored, once

RESOURCE_COLUMNS = (
    *("cpu", "memory_bytes", "gpu", "labels"),
    *("nodes", "exclusive", "buffer_bytes", "flavours"),
)
ERROR_COLUMNS = ("error_code", "error_args", "error_description")


def resource_values(given: Resources) -> tuple[Any, ...]:
    """Returns resources as they are stored, in the order of their columns."""
    labels = labels_text(given.labels)
    countable = given.cpu, given.memory_bytes, given.gpu
    flavours = flavours_text(given.flavours)
    return (*countable, labels, given.nodes, given.exclusive, given.buffer_bytes, flavours)


def resources(  # noqa: PLR0913, PLR0917 - the columns, in their order
    cpu: float,
    memory_bytes: int,
    gpu: int,
    labels: str | None,
    nodes: int,
    exclusive: bool,
    buffer_bytes: int,
    flavours: str | None,
) -> Resources:
    """Returns the resources that a row holds; NO_RESOURCES if it asks for nothing.

    Most tasks ask for nothing, and share that one value.
    """
    asks_nothing = not cpu and not memory_bytes and not gpu and labels is None
    is_one_node = nodes == 1 and not exclusive and flavours is None
    if asks_nothing and is_one_node and not buffer_bytes:
        return NO_RESOURCES
    return Resources(
        cpu=cpu,
        memory_bytes=memory_bytes,
        gpu=gpu,
        labels=frozenset(json.loads(labels)) if labels else frozenset(),
        nodes=nodes,
        exclusive=bool(exclusive),
        buffer_bytes=buffer_bytes,
        flavours=(
            () if flavours is None else tuple(nodes_of(*one) for one in json.loads(flavours))
        ),
    )


def flavours_text(flavours: Iterable[FlavouredNodes]) -> str | None:
    """Returns nodes by flavour as a JSON array of [flavour, nodes, idle]; None if there are
    none."""
    rows = [(one.flavour, one.nodes, one.idle) for one in flavours]
    return json.dumps(rows) if rows else None


def offered_flavours(free: Resources) -> str:
    """Returns the free nodes of a worker by every name that a task may ask them by, as
    ``flavours_text`` does. A worker that has none of these takes no task that names one."""
    if not (free.flavours or free.labels):
        return "[]"
    names = {one.flavour for one in free.flavours}
    names |= {one for one in free.labels if not one.startswith(RUNNER_LABEL_PREFIX)}
    if not names:
        return "[]"
    return flavours_text(map(free.offered_of, ["", *sorted(names)])) or "[]"


def labels_text(labels: frozenset[str]) -> str | None:
    """Returns labels as a sorted JSON array; None, which is NULL, if there are none.

    For NULL a claim need not compare anything.
    """
    return json.dumps(sorted(labels)) if labels else None


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
    environment: str | None
    graph: int | None
    cpu: float
    memory_bytes: int
    gpu: int
    labels: str | None
    nodes: int
    exclusive: bool
    buffer_bytes: int
    flavours: str | None
    handler: str | None
    limit_key: str | None
    now: float


# What a new task says is stored under the same names, but for what stands elsewhere.
_ELSEWHERE = ("needs", "continuations", "delay_seconds", "retry", "resources")
_SAID = tuple(one.name for one in fields(NewTask) if one.name not in _ELSEWHERE)
_said = attrgetter(*_SAID)
_ASKS_NOTHING = dict(zip(RESOURCE_COLUMNS, resource_values(NO_RESOURCES), strict=True))


def new_task_row(task: NewTask, status: Status, digest: str) -> dict[str, object]:
    """Returns the row by which the query insert_tasks stores a new task."""
    row: dict[str, object] = dict(zip(_SAID, _said(task), strict=True))
    row |= (
        _ASKS_NOTHING
        if task.resources is NO_RESOURCES
        else zip(RESOURCE_COLUMNS, resource_values(task.resources), strict=True)
    )
    row["status"] = status.value
    row["due_at"] = task.delay_seconds or None  # from now, by the database's clock
    row["retry"] = retry_text(task.retry)
    row["executes"] = task.executes
    row["digest"] = digest
    return row


WORKER_DIGITS_MAX = 18


def worker_number(worker: str) -> int:
    """Returns 27 for worker-27, and -1, which no worker has, for a name no store gave out."""
    kind, _, digits = worker.partition("-")
    number = int(digits) if digits.isdecimal() and len(digits) <= WORKER_DIGITS_MAX else -1
    # "worker-07" is not worker-7: an owner is compared letter by letter.
    return number if kind == "worker" and digits == str(number) else -1


class Now(NamedTuple):
    """Holds the time on the database's clock, which a row has beside another value."""

    now: Instant


def _lease(owner: str, status: str, *facts: Any) -> Lease | None:  # noqa: ANN401 - columns
    """Returns the lease that a row of a task holds; None if its status is one without a lease.
    The owner alone is no sign of a lease: it is kept after the end."""
    if status not in LEASED:
        return None
    deadline_at, lease_seconds, claimed_at, started_at, progress, messages = facts
    assert deadline_at is not None and claimed_at is not None
    return Lease(
        owner=WorkerId(owner),
        deadline_at=deadline_at,
        lease_seconds=lease_seconds or 0.0,
        claimed_at=claimed_at,
        started_at=started_at,
        progress=progress or 0.0,
        messages=messages or 0,
    )


def _error(code: str, args: str | None, description: str | None) -> TaskError:
    return TaskError(code=code, args=args or "{}", description=description or "")


def _errors(status: str, code: str | None, *told: str | None) -> tuple[TaskError, ...]:
    return (_error(code, *told),) if code is not None and status == Status.FAILED else ()


@overload
def storable(text: str) -> str: ...
@overload
def storable(text: None) -> None: ...
def storable(text: str | None) -> str | None:
    """Returns a text as every database can hold it; None stays None.

    NUL and halves of surrogate pairs are replaced.
    """
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
    """Returns the retry policy that a JSON text holds.

    Cached, because a store holds few different ones.
    """
    said = json.loads(text)
    if "seconds" in said:
        return FixedDelays(seconds=tuple(said["seconds"]))
    return Exponential(**said)


@lru_cache(maxsize=1024)
def retry_text(policy: RetryPolicy) -> str:
    """Returns the JSON text of a retry policy."""
    return msgspec.json.encode(policy).decode()


def _process(host: str, boot_id: str, pid: int, started: float) -> HostProcess:
    return HostProcess(host=host, boot_id=boot_id, pid=pid, started=started)


STORED.update(
    {
        Resources: Stored(resources, resource_values, RESOURCE_COLUMNS),
        RetryPolicy: Stored(retry_policy, retry_text),
        HostProcess: Stored(_process, astuple, ("host", "boot_id", "pid", "process_started")),
        TaskError: Stored(_error, columns=ERROR_COLUMNS),
        Abilities: Stored(
            lambda text: msgspec.json.decode(text, type=Abilities),
            lambda known: msgspec.json.encode(known, order="deterministic").decode(),
        ),
        tuple[str, ...]: Stored(lambda text: tuple(json.loads(text)), json.dumps),
        (Claimed, "token"): None,
        (Claimed, "has_inputs"): None,
        (InputView, "values_text"): Stored(str, columns=("body",)),
        (Claimed, "deadline_at"): Stored(operator.add, columns=("now", "lease_seconds")),
        (Task, "spec_text"): Stored(str, columns=("spec",)),
        (Task, "environment_text"): Stored(str, columns=("environment",)),
        (Task, "errors"): Stored(_errors, columns=("status", *ERROR_COLUMNS)),
        (TaskState, "lease"): Stored(
            _lease,
            columns=(
                *("owner", "status", "deadline_at", "lease_seconds", "claimed_at"),
                *("started_at", "progress", "messages"),
            ),
        ),
    }
)


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
_NO_FLAVOURS = b',"flavours":[]}'  # of the resources, which came later than the lists
# Left out, so that a task has the digest that it had before it could ask for these.
_ONE_SHARED_NODE = b',"nodes":1,"exclusive":false,"buffer_bytes":0,"idle_nodes":null}'


def _names(thing: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass
    return tuple(thing.__dataclass_fields__)


@once
def _later_fields(kind: type[NewTask]) -> dict[str, object] | None:
    """Returns the fields of tasks that stand behind those of the list, with their defaults;
    None if the list is not what a task of this kind begins with."""
    if _names(kind)[: len(_TODAY[0])] != _TODAY[0]:
        return None
    return {one.name: _default_of(one) for one in fields(kind)[len(_TODAY[0]) :]}


def _default_of(one: Field[Any]) -> object:
    return one.default if one.default_factory is MISSING else one.default_factory()


def digest_of(task: NewTask) -> str:
    """Returns a digest of all that a new task says, except for its id and run.

    By it a submission that comes again is told from another one with the same id.
    """
    return _digest(_body(task))


def digests_of(tasks: AlikeTasks) -> list[str] | str:
    """Returns the digest of each of these tasks; only one if it is that of all of them."""
    body = _body(tasks.said)
    if tasks.specs is None:
        return _digest(body)
    # Before the spec stand texts at most, in which a quote has a backslash.
    before, _, behind = body.partition(_NO_SPEC)
    begun = hashlib.blake2b(before + _SPEC, digest_size=16)
    encode, digests = msgspec.json.encode, []
    for spec in tasks.specs:
        digest = begun.copy()
        digest.update(encode(spec) + behind)
        digests.append(digest.hexdigest())
    return digests


_SPEC = b',"spec":'
_NO_SPEC = _SPEC + b"null"


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _body(task: NewTask) -> bytes:
    """Returns what the digest of a task is made of."""
    task = _in_floats(task)
    policy = _FIXED_DELAYS if isinstance(task.retry, FixedDelays) else _EXPONENTIAL
    later = _later_fields(type(task))
    if (
        later is not None
        and all(getattr(task, name) == default for name, default in later.items())
        and _names(task.resources) == (*_TODAY[1], "flavours")
        and not task.resources.flavours
        and _names(task.retry) in _TODAY[2:4]
        and all(_names(need) == _TODAY[4] for need in task.needs)
    ):
        # Nothing but the fields of the lists: they need not be picked one by one.
        whole = msgspec.json.encode(task, order="deterministic")
        # The id is the first field. What it says cannot end it: there a quote has a backslash.
        body = whole[whole.index(b',"queue":') :].replace(_NO_FLAVOURS, b"}", 1)
        if later:
            ending = b"," + msgspec.json.encode(later)[1:]
            assert body.endswith(ending), body  # a default is written as its type says
            body = body.removesuffix(ending) + b"}"
    else:
        picked = _picked(task, _TASK) | {
            "needs": [_picked(need, _NEED) for need in task.needs],
            "retry": _picked(task.retry, policy),
            "resources": _picked(task.resources, _RESOURCES),
        }
        body = b"," + msgspec.json.encode(picked)[1:]
    return body.replace(_ONE_SHARED_NODE, b"}", 1)


def _picked(thing: Any, known: Defaults) -> dict[str, object]:  # noqa: ANN401 - any version's
    """Returns the fields of a thing that count for a digest. These are the known ones, and
    others whose value is not their default."""
    found = {name: getattr(thing, name, default) for name, default in known.items()}
    for one in fields(thing):
        if one.name in known or one.name in _NO_PART:
            continue
        if (value := getattr(thing, one.name)) != _default_of(one):
            found[one.name] = value
    sets = {name: sorted(one) for name, one in found.items() if isinstance(one, frozenset)}
    return found | sets


_SECONDS = tuple(name for name in _TASK if name.endswith("_seconds"))
_seconds = attrgetter(*_SECONDS)


def _in_floats(task: NewTask) -> NewTask:
    """Returns the task with its durations and its cpu as floats. 5 and 5.0 are one number, and
    for a task that came by HTTP nobody can tell which was meant."""
    retry, cpu = task.retry, task.resources.cpu
    delays = retry.seconds if isinstance(retry, FixedDelays) else astuple(retry)
    if int not in map(type, (*_seconds(task), *delays, cpu)):
        return task  # as nearly all of them are
    told: dict[str, Any] = {
        name: float(seconds)
        for name, seconds in zip(_SECONDS, _seconds(task), strict=True)
        if seconds is not None
    }
    floats = tuple(map(float, delays))
    return replace(
        task,
        retry=(
            FixedDelays(seconds=floats)
            if isinstance(retry, FixedDelays)
            else Exponential(**dict(zip(_EXPONENTIAL, floats, strict=True)))
        ),
        resources=replace(task.resources, cpu=float(cpu)),
        **told,
    )
