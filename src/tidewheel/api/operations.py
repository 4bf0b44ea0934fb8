"""Lists the operations that a server does for others, each as one row.

A row says where an operation is found, who may ask for it, what it takes and what it answers.
From it follow the route of the server with its guard, its query and its body
(``server.operation_routes``), the OpenAPI document, and the method of the remote store that
asks for it (``store.remote.transport.asks``). What does more than to call a method and to write
down its answer (streams, logs, sessions, archives, the seeds' words, claims and reports) has a
route and a remote method of its own; a row may also have a handler of its own, given where the
routes are made.

Types that take long to load, and that a client does not need, are named by a text:
``api.blocks.SbiList``. They are loaded when a server makes its routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum, auto
from importlib import import_module
from operator import not_
from typing import Annotated, Any, NamedTuple

import msgspec

from tidewheel.api.tasks import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    QueueView,
    Task,
    UsageView,
    Violation,
    WorkerView,
)
from tidewheel.core.queue.access import Scope, TokenView
from tidewheel.core.queue.requests import PAGE_COUNT_MAX, HeldLease, page_count
from tidewheel.core.queue.submission import name_finding
from tidewheel.errors import BadSetting, NotFound

REQUIRED: Any = msgspec.NODEFAULT

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
LongCount = Annotated[int, msgspec.Meta(ge=1, le=PAGE_COUNT_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Host = Annotated[str, msgspec.Meta(max_length=256)]
Named = Annotated[str, msgspec.Meta(max_length=200)]
Reason = Trouble = Annotated[str, msgspec.Meta(max_length=1_000)]
RuleName = Annotated[str, msgspec.Meta(max_length=100)]
Parameters = dict[str, Any]
SECONDS_MAX = 60.0  # many blocks or stages take their time to be judged
TEST_SECONDS_MAX = 120.0


class Service(Enum):
    """Whose method an operation is."""

    STORE = auto()
    BLOCKS = auto()
    REGISTRY = auto()
    NOTIFICATIONS = auto()


class Concern(Enum):
    """What the guard of an operation looks at, beside the scope."""

    NOTHING = auto()  # or the answer is filtered: `Listed.seen`
    TASK = auto()  # the queue of the task in the path, which its own job may see, too
    QUEUE = auto()  # the queue in the path
    WORKER = auto()  # the worker in the path, which must be the caller's own
    WORKFLOW = auto()  # the workflow in the path
    BLOCK = auto()  # the workflow of the block in the path
    SBI = auto()  # the workflows of all blocks of the instance in the path


class Work(Enum):
    """How a server does an operation, so that heartbeats are answered meanwhile."""

    HERE = auto()
    APART = auto()  # in the thread of views: it reads the definition of a run
    FEW = auto()  # a few at a time: it reads a definition from its text


class Place(Enum):
    """Where a parameter travels."""

    PATH = auto()
    QUERY = auto()
    BODY = auto()
    CALLER = auto()  # nowhere: a server knows the caller by the token


class Parameter(NamedTuple):
    """Is an argument of the method, and how it travels."""

    name: str
    place: Place
    key: str  # its name in the path, the query or the body
    kind: Any = str
    default: Any = REQUIRED
    check: Callable[[Any], object] | None = None  # raises before anything is sent
    turn: Callable[[Any], Any] | None = None  # what travels is this of the value, and back


class Listed(NamedTuple):
    """Is an answer with a list of things under a key."""

    title: str  # of the type in the OpenAPI document
    key: str
    kind: Any
    says: str | None = None
    seen: str | None = None  # by what of each thing a caller may see it: queue or worker
    # A page: the parameter of the next one, and the field of the last thing that it has.
    goes_on: tuple[str, str] | None = None
    beside: tuple[tuple[str, Any], ...] = ()  # what its handler adds


class Part(NamedTuple):
    """Is an answer of several parts, of which the method has one."""

    title: str
    key: str
    parts: Mapping[str, Any]
    says: str | None = None


class Echo(NamedTuple):
    """Is the answer of a method without one: the name in the path."""

    title: str
    key: str


class Listing(NamedTuple):
    """Is a document with a list of documents, which a caller may see by their workflow."""

    kind: str
    key: str
    workflow: str  # the field that has it


Answer = Listed | Part | Echo | Listing | type | str


@dataclass(frozen=True, slots=True)
class Operation:
    """Is one row of the table."""

    name: str  # of the method
    method: str
    path: str  # below the API
    scopes: tuple[Scope, ...]
    says: str  # one line of documentation
    answers: Answer  # a type is that of a thing, a text that of a document
    _: KW_ONLY
    of: Service = Service.STORE
    concerns: Concern = Concern.NOTHING
    takes: tuple[Parameter, ...] = ()  # in the order of the method's arguments
    form: tuple[str, str] = ("", "")  # what the type of the body is called, and what it says
    fixed: Mapping[str, Any] = field(default_factory=dict)  # arguments that the path implies
    missing: Callable[[], Any] | None = None  # the method's answer where there is no such thing
    again: bool | None = None  # whether it may be done twice; None: as its method says
    audited: bool = True
    only_reads: bool = False  # and is as urgent, though it is a POST
    work: Work = Work.HERE
    seconds_max: float | None = None

    @property
    def may_be_repeated(self) -> bool:
        """Says whether a request whose answer was lost may be sent again."""
        return self.method == "GET" if self.again is None else self.again


def resolved(kind: Any) -> Any:  # noqa: ANN401 - any type
    """Returns a type that may be named by a text."""
    if not isinstance(kind, str):
        return kind
    module, _, name = kind.rpartition(".")
    return getattr(import_module(f"tidewheel.{module}"), name)


# Names and numbers that no store can have are refused in its words before anything is sent.


def check_task(task_id: str) -> None:
    """Raises NotFound for an id that no task can have."""
    if name_finding("task", task_id) is not None:
        raise NotFound("task", task_id)


def check_worker(worker: str) -> None:
    """Raises NotFound for an id that no worker can have."""
    if name_finding("worker", worker) is not None:
        raise NotFound("worker", worker)


def check_queue(queue: str) -> None:
    """Raises BadSetting for a name that no queue can have."""
    if finding := name_finding("queue", queue):
        raise BadSetting("queue", queue, finding)


def _find_queue(queue: str) -> None:
    if name_finding("queue", queue) is not None:
        raise NotFound("queue", queue)


def _path(name: str, key: str = "", kind: Any = str, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.PATH, key or name, kind, **rest)


def _query(name: str, kind: Any, default: Any = REQUIRED, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.QUERY, rest.pop("key", name), kind, default, **rest)


def _body(name: str, kind: Any, default: Any = REQUIRED, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.BODY, rest.pop("key", name), kind, default, **rest)


_WHO = Parameter("who", Place.CALLER, "")
_OWN_WORKER = _path("worker", "id", check=check_worker)
_READ, _OPERATE, _WORKER = (Scope.READ,), (Scope.OPERATE,), (Scope.WORKER,)
_SUBMIT, _ADMIN = (Scope.SUBMIT,), (Scope.ADMIN,)

# Tasks.

_TASK = "/tasks/{id}"
_NAMED_TASK = _path("task_id", "id", check=check_task)


def _of_task(name: str, below: str, says: str, answers: Answer, **rest: Any) -> Operation:  # noqa: ANN401
    taken = (_NAMED_TASK, *rest.pop("takes", ()))
    return Operation(
        *(name, "GET", f"{_TASK}/{below}", _READ, says, answers),
        concerns=Concern.TASK,
        takes=taken,
        **rest,
    )


HISTORY = _of_task(
    "history",
    "history",
    "Every step of a task's life, oldest first, page by page.",
    Listed(
        "HistoryPage",
        "history",
        HistoryEntry,
        "Oldest first; ``next`` is what ``after`` is for the page after.",
        goes_on=("after", "seq"),
    ),
    takes=(
        _query("after", Number, 0),
        _query("count", Count, 100, key="limit", check=page_count),
    ),
)
PARTS_OF_TASKS = (
    _of_task(
        "attempts",
        "attempts",
        "Every attempt of a task, the live one last.",
        Listed("AttemptsOut", "attempts", AttemptView),
    ),
    _of_task(
        "outputs",
        "outputs",
        "Messages, outputs in order, and values for later tasks.",
        Listed(
            "OutputsOut",
            "outputs",
            OutputView,
            "What the jobs said, and the object that the task hands to those after it.",
            beside=(("values", msgspec.Raw),),  # null if it hands on nothing
        ),
    ),
    _of_task(
        "usage",
        "usage",
        "What the task used over time.",
        Listed("SeriesOut", "usage", UsageView),
    ),
    _of_task(
        "edges",
        "graph",
        "What the task waits for, and what waits for it.",
        Listed(
            "GraphOut", "edges", EdgeView, "What the task waits for, and what waits for it."
        ),
    ),
)

# Queues.

_QUEUE = "/queues/{queue}"
_NAMED_QUEUE = _path("queue", check=check_queue)

QUEUES = (
    Operation(
        "queues",
        "GET",
        "/queues",
        _READ,
        "Every queue that has settings or open tasks, and how much waits in it.",
        Listed("QueuesOut", "queues", QueueView, seen="queue"),
    ),
    Operation(
        "ready_queues",
        "GET",
        "/ready-queues",
        _READ,
        "The names of queues that hold ready tasks: where a worker may claim.",
        Part(
            "ReadyQueuesOut", "priorities", {"queues": list[str], "priorities": dict[str, int]}
        ),
    ),
    Operation(
        "queue",
        "GET",
        _QUEUE,
        _READ,
        "One queue; one that nobody has named yet is empty.",
        QueueView,
        concerns=Concern.QUEUE,
        takes=(_NAMED_QUEUE,),
    ),
)
PAUSES = tuple(
    Operation(
        "pause_queue",
        "POST",
        f"{_QUEUE}/{verb}",
        _OPERATE,
        says,
        QueueView,
        concerns=Concern.QUEUE,
        takes=(_NAMED_QUEUE,),
        fixed={"paused": paused},
        again=True,
    )
    for verb, paused, says in (
        ("pause", True, "Hand out no task of the queue; what runs goes on."),
        ("resume", False, "Let tasks of the queue be claimed again."),
    )
)

# Many things at once.

_TASKS = Listed("TasksOut", "tasks", Task, "Tasks with every field.")
MANY = (
    Operation(
        "get_many",
        "POST",
        "/tasks/get",
        _READ,  # and its handler looks at the queue of each
        "Many tasks by their ids, as they are at one moment, in this order.",
        _TASKS,
        takes=(_body("task_ids", list[str], key="ids"),),  # up to 10,000
        form=("IdsIn", "The ids of tasks."),
        again=True,
        audited=False,
        only_reads=True,
    ),
    Operation(
        "peek",
        "GET",
        f"{_QUEUE}/peek",
        _READ,
        "What would be claimed next from a queue, without taking it.",
        _TASKS,
        concerns=Concern.QUEUE,
        takes=(
            _path("queue", check=_find_queue),
            _query("count", LongCount, 10, check=page_count),
        ),
        missing=list,
    ),
    Operation(
        "ended_attempts",
        "GET",
        "/ended-attempts",
        _READ,
        "The newest attempts that are over, one by one, for figures of your own.",
        Listed(
            "EndedOut",
            "attempts",
            "core.queue.statistics.EndedAttempt",
            "Attempts that are over, newest first, as far as figures need them.",
            seen="queue",
        ),
        takes=(_query("count", LongCount, 1_000, key="limit"),),
    ),
    Operation(
        "store_id",
        "GET",
        "/store",
        _READ,
        "Which store the server stands before, and the time by its clock.",
        Part(
            "StoreOut",
            "id",
            {"id": str, "now": str | None},
            "The id of the store, and the time by its clock.",
        ),
    ),
    Operation(
        "verify",
        "GET",
        "/verify",
        _ADMIN,
        "Every row of the store that breaks a promise.",
        Listed(
            "ViolationsOut",
            "violations",
            Violation,
            "Every row that breaks a promise; none is the right answer.",
        ),
    ),
)

# Workers.

WORKERS = (
    Operation(
        "workers",
        "GET",
        "/workers",
        _READ,
        "Workers alive and what they hold; with all=true also those that stopped.",
        Listed("WorkersOut", "workers", WorkerView, seen="worker"),
        takes=(_query("live_only", bool, default=False, key="all", turn=not_),),
    ),
    Operation(
        "stop_worker",
        "POST",
        "/workers/{id}/stop",
        _WORKER,
        "Sign off; leases that the worker still holds run out by themselves.",
        Echo("WorkerIdOut", "id"),
        concerns=Concern.WORKER,
        takes=(_OWN_WORKER,),
        again=True,
    ),
    Operation(
        "set_trouble",
        "POST",
        "/workers/{id}/trouble",
        _WORKER,
        "Let people know why the worker takes no tasks just now.",
        Echo("WorkerIdOut", "id"),
        concerns=Concern.WORKER,
        takes=(_OWN_WORKER, _body("trouble", Trouble | None, None)),
        form=(
            "TroubleIn",
            "The reason why a worker takes no tasks just now; null: it takes them again.",
        ),
        again=True,
        audited=False,
    ),
)
ORPHANS = Operation(
    "orphans",
    "GET",
    "/orphans",
    _WORKER,
    "Leases of this token's workers on a host: what a new worker there may adopt.",
    Listed("OrphansOut", "leases", HeldLease),
    takes=(_query("host", Host), _query("boot_id", Host)),
)

# Blocks and objects.

_BLOCK = "/processing-blocks/{block}"
_OBJECTS = "/objects"
CHANGES_OBJECTS = (Scope.SUBMIT, Scope.OPERATE)
BLOCKS = tuple(
    replace(row, of=Service.BLOCKS)
    for row in (
        Operation(
            "sbis",
            "GET",
            "/sbis",
            _READ,
            "Scheduling block instances, newest first.",
            "api.blocks.SbiList",
            takes=(_query("count", Count, 100, key="limit"),),
        ),
        Operation(
            "sbi",
            "GET",
            "/sbis/{sbi}",
            _READ,
            "A scheduling block instance: as it was asked for, and its blocks.",
            "api.blocks.SbiDocument",
            concerns=Concern.SBI,
            takes=(_path("sbi_id", "sbi"),),
        ),
        Operation(
            "blocks",
            "GET",
            "/processing-blocks",
            _READ,
            "Processing blocks, newest first.",
            Listing("api.blocks.BlockList", "blocks", "workflow"),
            takes=(
                _query("sbi", str | None, None),
                _query("count", Count, 100, key="limit"),
            ),
        ),
        Operation(
            "block",
            "GET",
            _BLOCK,
            _READ,
            "A processing block: what it waits for, and each stage with its events.",
            "api.blocks.BlockDocument",
            concerns=Concern.BLOCK,
            takes=(_path("block_id", "block"),),
            work=Work.APART,
        ),
        Operation(
            "abort",
            "POST",
            f"{_BLOCK}/abort",
            _OPERATE,
            "End the stages of a block that run, and start no more.",
            "api.blocks.AbortedBlock",
            concerns=Concern.BLOCK,
            takes=(_path("block_id", "block"), _WHO, _body("reason", Reason, "")),
            form=("AbortIn", "The reason of an abort, for people."),
            again=True,
            seconds_max=SECONDS_MAX,
        ),
    )
)
OBJECTS = tuple(
    replace(row, of=Service.BLOCKS)
    for row in (
        Operation(
            "objects",
            "GET",
            _OBJECTS,
            _READ,
            "Objects that are there, by name.",
            "api.blocks.ObjectList",
            takes=(
                _query("after", str, ""),
                _query("count", Count, 1_000, key="limit"),
            ),
        ),
        Operation(
            "remove_object",
            "DELETE",
            f"{_OBJECTS}/{{name}}",
            CHANGES_OBJECTS,
            "An object is there no more; whoever has seen it goes on.",
            "api.blocks.BufferObject",
            takes=(_path("name"),),
            again=False,
        ),
    )
)

# Workflows of the registry: the highest version, or one that the path names.

_WORKFLOWS = "/workflows"
_PARAMETERS = _body("parameters", Parameters | None, None)
_PARAMETERS_FORM = (
    "ParametersIn",
    "The parameters that a request would give; null: no request.",
)


def _tried(name: str, answers: str, says: str) -> Operation:
    """Returns a POST for the sake of its body: parameters may be larger than a URL."""
    return Operation(
        name,
        "POST",
        f"/{name}",
        _READ,
        says,
        answers,
        takes=(_PARAMETERS,),
        form=_PARAMETERS_FORM,
        again=True,
        audited=False,  # it changes nothing
        work=Work.FEW,
        seconds_max=SECONDS_MAX,
    )


_OF_ONE_WORKFLOW = (
    _tried(
        "check", "api.workflows.WorkflowVerdict", "Whether {} can run with some parameters."
    ),
    _tried(
        "render",
        "api.workflows.RenderedWorkflow",
        "What {} would execute with some parameters.",
    ),
    Operation(
        "show",
        "GET",
        "",
        _READ,
        "{} of a workflow: findings, parameters, files.",
        "api.workflows.WorkflowDocument",
    ),
    Operation(
        "remove",
        "DELETE",
        "",
        _SUBMIT,
        "Forget {} of a workflow; runs of it are not harmed.",
        "api.workflows.WorkflowFacts",
    ),
)


def _said(says: str, which: str) -> str:
    return says.format(which.capitalize() if says.startswith("{}") else which)


WORKFLOWS = (
    Operation(
        "list",
        "GET",
        _WORKFLOWS,
        _READ,
        "Registered workflows by name, the highest version first.",
        Listing("api.workflows.WorkflowList", "workflows", "name"),
        of=Service.REGISTRY,
        takes=(_query("name", Named, ""),),
    ),
    *(
        replace(
            row,
            path=place + row.path,
            says=_said(row.says, which),
            of=Service.REGISTRY,
            concerns=Concern.WORKFLOW,
            takes=(*names, *row.takes),
        )
        for place, which, names in (
            (f"{_WORKFLOWS}/{{name}}", "the highest version", (_path("name"),)),
            (
                f"{_WORKFLOWS}/{{name}}/{{version}}",
                "one version",
                (_path("name"), _path("version")),
            ),
        )
        for row in _OF_ONE_WORKFLOW
    ),
)

# Notifications.

NOTIFICATIONS = (
    Operation(
        "notifications",
        "GET",
        "/notifications",
        _ADMIN,
        "The rules by which people are told, what waits to be sent, and what was.",
        "api.notifications.NotificationsOut",
        of=Service.NOTIFICATIONS,
    ),
    Operation(
        "try_notifications",
        "POST",
        "/notifications/test",
        _ADMIN,
        "Send a test under one rule or all of them, and say how that went.",
        "api.notifications.TestsOut",
        of=Service.NOTIFICATIONS,
        takes=(_body("rule", RuleName | None, None),),
        form=("TestIn", "The name of the rule to try; without one, each rule is tried."),
        seconds_max=TEST_SECONDS_MAX,
    ),
)

# Tokens and the audit.

TOKENS = (
    Operation(
        "tokens",
        "GET",
        "/tokens",
        _ADMIN,
        "Every token with its last use, without its secret.",
        Listed("TokensOut", "tokens", TokenView),
    ),
    Operation(
        "revoke_token",
        "POST",
        "/tokens/{number}/revoke",
        _ADMIN,
        "Let a token open nothing any more, within a second.",
        TokenView,
        takes=(_path("number", kind=int),),
        again=True,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    HISTORY,
    *PARTS_OF_TASKS,
    *QUEUES,
    *PAUSES,
    *MANY,
    *WORKERS,
    ORPHANS,
    *BLOCKS,
    *OBJECTS,
    *WORKFLOWS,
    *NOTIFICATIONS,
    *TOKENS,
)
