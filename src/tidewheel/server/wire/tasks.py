"""Describes what clients send about tasks, and what they are told of their submissions.

Tasks themselves are the types of `api`. The words of Scylla (seed 002) and Banyan (seed 003)
for a new task are translated here, too.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from tidewheel.api.tasks import Task
from tidewheel.api.wire import Out, answer, part_type
from tidewheel.client import fields
from tidewheel.client.fields import RESOURCE_FIELDS, Filters, TaskFields, task_filter
from tidewheel.core.queue.requests import Submitted, TaskFilter
from tidewheel.server.errors import BadRequest, Problem
from tidewheel.server.wire.validation import Duration, In, Size, field_names, read
from tidewheel.vocabulary import Vocabulary

Text = Annotated[str, msgspec.Meta(max_length=256)]


class Backoff(In):
    """Growing delays between retries."""

    first_seconds: float = 1.0
    factor: float = 2.0
    seconds_max: float = 600.0
    jitter: float = 0.5


# A new task has the fields that the client knows, but for those of which it makes others.
_NOT_SENT = frozenset({"resources", "runner", "compose", "directives"})
_SENT_AS: dict[str, Any] = {
    "spec_text": str,  # the spec as a text that holds JSON, white space and all
    "command": str,
    "needs": list[str | tuple[str, str]],
    "continuations": list[str],
    "retry_delays": list[Duration],
    "backoff": Backoff | bool,
    "labels": list[str],
}
_OF_TYPE: dict[Any, Any] = {str: Text, fields.Duration: Duration}


def _field_in(name: str, kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any type
    if name == "spec":  # any JSON value, stored and returned letter by letter
        return name, msgspec.Raw, msgspec.field(default_factory=msgspec.Raw)
    sent: Any = _SENT_AS.get(name) or _OF_TYPE.get(kind, kind)
    return name, sent | None, None


TaskIn: Any = msgspec.defstruct(
    "TaskIn",
    [
        _field_in(name, kind)
        for name, kind in ({"id": str, "queue": str} | get_type_hints(TaskFields)).items()
        if name not in _NOT_SENT
    ],
    bases=(In,),
    namespace={
        "__doc__": "A new task; nothing is required, and null is the same as not given."
    },
)

# The conditions that select tasks: a name, a figure, or any of several statuses.
_SIZE_MIN = Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None
_NAMES: list[Any] = [(name, str | None, None) for name in fields.explained(Filters)]
_FIGURES: list[Any] = [
    ("estimated_runtime_seconds_max", float | None, None),
    ("memory_bytes_min", _SIZE_MIN, None),
]
FilterIn: Any = msgspec.defstruct(
    "FilterIn",
    [("status", str | list[str] | None, None), *_NAMES, *_FIGURES],
    bases=(In,),
    namespace={"__doc__": "The conditions that select tasks; everything given must match."},
)


class TaskQuery(In):
    """The vocabulary of the answer, and the fields that are shown."""

    vocabulary: Vocabulary = Vocabulary.TIDEWHEEL
    fields: str | None = None  # names, separated by commas


TaskListQuery: Any = msgspec.defstruct(
    "TaskListQuery",
    [
        ("status", str | None, None),  # any of several, separated by commas, in any vocabulary
        *_NAMES,
        ("run", str | None, None),
        *_FIGURES,
        ("limit", Annotated[int, msgspec.Meta(ge=1, le=1_000)], 100),
        ("before", Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None, None),
    ],
    bases=(TaskQuery,),
    namespace={"__doc__": "The parameters that select tasks; everything given must match."},
)


def filter_of(given: In, **instead: Any) -> TaskFilter:  # noqa: ANN401 - as `Filters` has them
    """Returns the store's filter, with other values for some of its parts."""
    asked = {name: getattr(given, name) for name in field_names(FilterIn)}
    return task_filter(**{**asked, **instead})


class CancelIn(In):
    """Either ids, or a filter; one that names nothing needs ``all``."""

    ids: Annotated[list[str], msgspec.Meta(max_length=10_000)] | None = None
    filter: FilterIn | None = None
    all: bool = False
    count_max: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


class WhyOut(Out):
    """The reasons why a task does not run; empty if nothing holds it back."""

    id: str
    reasons: list[str]


TaskPart = part_type(
    "TaskPart", "A task with some of its fields, or with those of a seed.", Task
)
TaskPage = answer(
    "TaskPage",
    "Tasks, newest first; ``next`` is what ``before`` is for the page after.",
    tasks=list[TaskPart],  # type: ignore[valid-type]
    next=int | None,
)

# What became of submitted tasks.


class SubmittedOut(Out):
    """The outcome of one task's submission."""

    id: str
    created: bool  # false: the same task was there already


class AnsweredOut(Out):
    """The outcome of one of many tasks."""

    id: str
    created: bool
    refused: Problem | None


class RefusedOut(Out):
    """The reason why a task was not stored; ``index`` is its place in the request."""

    index: int
    id: str
    code: str
    message: str


class BatchOut(Out):
    """The outcome of many tasks, which never fail as a whole (atomic=each)."""

    inserted: list[str]
    present: list[str]
    failed: list[RefusedOut]
    invalid: list[RefusedOut]


class OrderedOut(Out):
    """The outcome of each task, in the order of the request (in_order=true)."""

    answers: list[AnsweredOut]


def refused_out(index: int, one: Submitted) -> RefusedOut:
    assert one.refused is not None
    return RefusedOut(index=index, id=one.id, code=one.refused.code, message=str(one.refused))


# New tasks as clients of Scylla and of Banyan describe them.


class ScyllaTaskIn(In):
    """A task as Scylla describes it."""

    rn: Text
    queue: Text
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    priority: int | None = None


class RequestedResources(In):
    """The resources that a task of Banyan asks for."""

    memory: Size | None = None
    cores: float | None = None
    gpus: int | None = None


class BanyanTaskIn(In):
    """A task as Banyan describes it; it waits until it is, or was created, available."""

    id: Text | None = msgspec.field(name="_id", default=None)
    queue: Text | None = None
    name: Text | None = None
    command: str | None = None
    state: Literal["inactive", "available"] = "inactive"
    continuations: list[str] | None = None
    requested_resources: RequestedResources | None = None
    estimated_runtime: Duration | None = None
    max_termination_time: Duration | None = None
    max_retry_count: int | None = None


def scylla_fields(raw: bytes) -> dict[str, Any]:
    """Returns the fields of a task of Scylla in tidewheel's words."""
    form = read(raw, ScyllaTaskIn)
    given = {"id": form.rn, "queue": form.queue, "priority": form.priority}
    if bytes(form.spec):
        given["spec_text"] = bytes(form.spec).decode()
    return {name: value for name, value in given.items() if value is not None}


def banyan_fields(raw: bytes) -> dict[str, Any]:
    """Returns the fields of a task of Banyan in tidewheel's words."""
    form = read(raw, BanyanTaskIn)
    given = {
        "id": form.id,
        "queue": form.queue,
        "name": form.name,
        "command": form.command,
        "armed": form.state == "available",
        "continuations": form.continuations,
        "estimated_runtime": form.estimated_runtime,
        "max_termination": form.max_termination_time,
        "retries": form.max_retry_count,
        **resource_fields(form.requested_resources),
    }
    return {name: value for name, value in given.items() if value is not None}


def resource_fields(asked: RequestedResources | None) -> dict[str, Any]:
    """Returns requested resources in tidewheel's words; nothing if none are requested."""
    if asked is None:
        return {}
    return {"memory": asked.memory, "cpu": asked.cores, "gpu": asked.gpus}


# Changes of a task: fields while it waits, and seed 003's changes of its state.


class ExecutionInfoIn(In):
    """The facts that workers of Banyan send with a change of state."""

    worker: str | None = None
    exit_status: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] | None = None
    time_terminated: str | None = None  # the store's clock is what counts
    time_started: str | None = None


class TaskPatch(In):
    """The changes to a task; null leaves a field as it is."""

    state: str | None = None  # status, in any vocabulary
    status: str | None = None
    execution_info: ExecutionInfoIn | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    name: Text | None = None
    command: str | None = None
    retries: int | None = None
    max_retry_count: int | None = None
    estimated_runtime: Duration | None = None
    max_termination: Duration | None = None
    max_termination_time: Duration | None = None
    cpu: float | None = None
    memory: Size | None = None
    gpu: int | None = None
    labels: list[str] | None = None
    nodes: int | None = None
    exclusive: bool | None = None
    buffer: Size | None = None
    requested_resources: RequestedResources | None = None

    @property
    def word(self) -> str | None:
        """Returns the status that is asked for."""
        return self.state if self.status is None else self.status

    def amended(self) -> dict[str, Any]:
        """Returns the fields that shall change, in tidewheel's words."""
        pairs = (
            ("retries", "max_retry_count"),
            ("max_termination", "max_termination_time"),
        )
        for ours, theirs in (*pairs, ("status", "state")):
            if getattr(self, ours) is not None and getattr(self, theirs) is not None:
                raise BadRequest([f"it has both {ours} and {theirs}; give one of them"])
        given: dict[str, Any] = {
            "retries": self.max_retry_count,
            "max_termination": self.max_termination_time,
            **resource_fields(self.requested_resources),
        }
        own = ("name", "command", "retries", "estimated_runtime", "max_termination")
        for name in (*own, *RESOURCE_FIELDS):
            if (value := getattr(self, name)) is not None:
                given[name] = value
        return {name: value for name, value in given.items() if value is not None}
