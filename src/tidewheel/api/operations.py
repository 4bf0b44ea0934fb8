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

from dataclasses import replace
from operator import not_
from typing import Annotated, Any

import msgspec

from tidewheel.api.operation import (
    ADMIN,
    OPERATE,
    REQUIRED,
    SUBMIT,
    WORKER,
    Answer,
    Concern,
    Echo,
    Listed,
    ListedDocuments,
    Operation,
    Parameter,
    Part,
    Place,
    ServiceName,
    Work,
)
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

# Tasks.

_TASK = "/tasks/{id}"
_NAMED_TASK = _path("task_id", "id", check=check_task)


def _of_task(name: str, below: str, says: str, answers: Answer, **rest: Any) -> Operation:  # noqa: ANN401
    taken = (_NAMED_TASK, *rest.pop("takes", ()))
    return Operation(
        *(name, f"GET {_TASK}/{below}", says, answers),
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
ARM = Operation(
    "arm",
    f"POST {_TASK}/arm",
    "Let a task that was created unarmed run.",
    Task,
    scopes=SUBMIT,
    concerns=Concern.CHANGED_TASK,
    takes=(_NAMED_TASK,),
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
        "GET /queues",
        "Every queue that has settings or open tasks, and how much waits in it.",
        Listed("QueuesOut", "queues", QueueView, seen="queue"),
    ),
    Operation(
        "ready_queues",
        "GET /ready-queues",
        "The names of queues that hold ready tasks: where a worker may claim.",
        Part(
            "ReadyQueuesOut", "priorities", {"queues": list[str], "priorities": dict[str, int]}
        ),
    ),
    Operation(
        "queue",
        f"GET {_QUEUE}",
        "One queue; one that nobody has named yet is empty.",
        QueueView,
        concerns=Concern.QUEUE,
        takes=(_NAMED_QUEUE,),
    ),
)
PAUSES = tuple(
    Operation(
        "pause_queue",
        f"POST {_QUEUE}/{verb}",
        says,
        QueueView,
        scopes=OPERATE,
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
        "POST /tasks/get",
        "Many tasks by their ids, as they are at one moment, in this order.",
        _TASKS,
        takes=(
            _body("task_ids", list[str], key="ids"),
        ),  # up to 10,000; its handler looks at each
        form=("IdsIn", "The ids of tasks."),
        again=True,
        audited=False,
        only_reads=True,
    ),
    Operation(
        "peek",
        f"GET {_QUEUE}/peek",
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
        "GET /ended-attempts",
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
        "GET /store",
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
        "GET /verify",
        "Every row of the store that breaks a promise.",
        Listed(
            "ViolationsOut",
            "violations",
            Violation,
            "Every row that breaks a promise; none is the right answer.",
        ),
        scopes=ADMIN,
    ),
)

# Workers.

WORKERS = (
    Operation(
        "workers",
        "GET /workers",
        "Workers alive and what they hold; with all=true also those that stopped.",
        Listed("WorkersOut", "workers", WorkerView, seen="worker"),
        takes=(_query("live_only", bool, default=False, key="all", turn=not_),),
    ),
    Operation(
        "stop_worker",
        "POST /workers/{id}/stop",
        "Sign off; leases that the worker still holds run out by themselves.",
        Echo("WorkerIdOut", "id"),
        scopes=WORKER,
        concerns=Concern.WORKER,
        takes=(_OWN_WORKER,),
        again=True,
    ),
    Operation(
        "set_trouble",
        "POST /workers/{id}/trouble",
        "Let people know why the worker takes no tasks just now.",
        Echo("WorkerIdOut", "id"),
        scopes=WORKER,
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
    "GET /orphans",
    "Leases of this token's workers on a host: what a new worker there may adopt.",
    Listed("OrphansOut", "leases", HeldLease),
    scopes=WORKER,
    takes=(_query("host", Host), _query("boot_id", Host)),
)

# Blocks and objects.

_BLOCK = "/processing-blocks/{block}"
_OBJECTS = "/objects"
CHANGES_OBJECTS = (Scope.SUBMIT, Scope.OPERATE)
BLOCKS = tuple(
    replace(row, of=ServiceName.BLOCKS)
    for row in (
        Operation(
            "sbis",
            "GET /sbis",
            "Scheduling block instances, newest first.",
            "api.blocks.SbiList",
            takes=(_query("count", Count, 100, key="limit"),),
        ),
        Operation(
            "sbi",
            "GET /sbis/{sbi}",
            "A scheduling block instance: as it was asked for, and its blocks.",
            "api.blocks.SbiDocument",
            concerns=Concern.SBI,
            takes=(_path("sbi_id", "sbi"),),
        ),
        Operation(
            "blocks",
            "GET /processing-blocks",
            "Processing blocks, newest first.",
            ListedDocuments("api.blocks.BlockList", "blocks", "workflow"),
            takes=(
                _query("sbi", str | None, None),
                _query("count", Count, 100, key="limit"),
            ),
        ),
        Operation(
            "block",
            f"GET {_BLOCK}",
            "A processing block: what it waits for, and each stage with its events.",
            "api.blocks.BlockDocument",
            concerns=Concern.BLOCK,
            takes=(_path("block_id", "block"),),
            work=Work.APART,
        ),
        Operation(
            "abort",
            f"POST {_BLOCK}/abort",
            "End the stages of a block that run, and start no more.",
            "api.blocks.AbortedBlock",
            scopes=OPERATE,
            concerns=Concern.BLOCK,
            takes=(_path("block_id", "block"), _WHO, _body("reason", Reason, "")),
            form=("AbortIn", "The reason of an abort, for people."),
            again=True,
            seconds_max=SECONDS_MAX,
        ),
    )
)
OBJECTS = tuple(
    replace(row, of=ServiceName.BLOCKS)
    for row in (
        Operation(
            "objects",
            f"GET {_OBJECTS}",
            "Objects that are there, by name.",
            "api.blocks.ObjectList",
            takes=(
                _query("after", str, ""),
                _query("count", Count, 1_000, key="limit"),
            ),
        ),
        Operation(
            "remove_object",
            f"DELETE {_OBJECTS}/{{name}}",
            "An object is there no more; whoever has seen it goes on.",
            "api.blocks.BufferObject",
            scopes=CHANGES_OBJECTS,
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
        f"POST /{name}",
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
        "GET ",
        "{} of a workflow: findings, parameters, files.",
        "api.workflows.WorkflowDocument",
    ),
    Operation(
        "remove",
        "DELETE ",
        "Forget {} of a workflow; runs of it are not harmed.",
        "api.workflows.WorkflowFacts",
        scopes=SUBMIT,
    ),
)


def _said(says: str, which: str) -> str:
    return says.format(which.capitalize() if says.startswith("{}") else which)


WORKFLOWS = (
    Operation(
        "list",
        f"GET {_WORKFLOWS}",
        "Registered workflows by name, the highest version first.",
        ListedDocuments("api.workflows.WorkflowList", "workflows", "name"),
        of=ServiceName.REGISTRY,
        takes=(_query("name", Named, ""),),
    ),
    *(
        replace(
            row,
            route=f"{row.method} {place}{row.path}",
            says=_said(row.says, which),
            of=ServiceName.REGISTRY,
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
        "GET /notifications",
        "The rules by which people are told, what waits to be sent, and what was.",
        "api.notifications.NotificationsOut",
        scopes=ADMIN,
        of=ServiceName.NOTIFICATIONS,
    ),
    Operation(
        "try_notifications",
        "POST /notifications/test",
        "Send a test under one rule or all of them, and say how that went.",
        "api.notifications.TestsOut",
        scopes=ADMIN,
        of=ServiceName.NOTIFICATIONS,
        takes=(_body("rule", RuleName | None, None),),
        form=("TestIn", "The name of the rule to try; without one, each rule is tried."),
        target=lambda asked: f"rule {asked['rule'] or '*'}",
        seconds_max=TEST_SECONDS_MAX,
    ),
)

# Tokens and the audit.

TOKENS = (
    Operation(
        "tokens",
        "GET /tokens",
        "Every token with its last use, without its secret.",
        Listed("TokensOut", "tokens", TokenView),
        scopes=ADMIN,
    ),
    Operation(
        "revoke_token",
        "POST /tokens/{number}/revoke",
        "Let a token open nothing any more, within a second.",
        TokenView,
        scopes=ADMIN,
        takes=(_path("number", kind=int),),
        again=True,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    HISTORY,
    ARM,
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
