"""Lists the operations that a server does for others, each as one row.

A row says where an operation is found, who may ask for it, what it takes and what it answers.
From it follow the route of the server with its guard, its query and its body
(``server.operation_routes``), the OpenAPI document, and the method of the remote store that
asks for it (``store.remote.operations.asks``). What does more than to call a method and to
write down its answer (streams, logs, sessions, archives, the seeds' words, claims and reports)
has a route and a remote method of its own; a row may also have a handler of its own, given
where the routes are made.

Types that take long to load, and that a client does not need, are named by a text:
``api.blocks.SbiList``. They are loaded when a server makes its routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import not_
from typing import Annotated, Any

import msgspec

from tidewheel.api import tasks
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
from tidewheel.core.queue.access import Scope, TokenView
from tidewheel.core.queue.requests import PAGE_COUNT_MAX, HeldLease, page_count
from tidewheel.core.queue.submission import name_finding
from tidewheel.errors import BadSetting, NotFound

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
LongCount = Annotated[int, msgspec.Meta(ge=1, le=PAGE_COUNT_MAX)]
ManyIds = Annotated[list[str], msgspec.Meta(min_length=1, max_length=PAGE_COUNT_MAX)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Host = Annotated[str, msgspec.Meta(max_length=256)]
Named = Annotated[str, msgspec.Meta(max_length=200)]
Reason = Trouble = Annotated[str, msgspec.Meta(max_length=1_000)]
RuleName = Annotated[str, msgspec.Meta(max_length=100)]
Parameters = dict[str, Any]
SECONDS_MAX = 60.0  # many blocks or stages take their time to be judged
TEST_SECONDS_MAX = 120.0


# Names that no store can have are refused in its words before anything is sent.


def _check(kind: str) -> Callable[[str], None]:
    def check(name: str) -> None:
        if name_finding(kind, name) is not None:
            raise NotFound(kind, name)

    return check


# Each raises NotFound for a name that none can have.
check_task, check_worker, _find_queue = _check("task"), _check("worker"), _check("queue")


def check_queue(queue: str) -> None:
    """Raises BadSetting for a name that no queue can have."""
    if finding := name_finding("queue", queue):
        raise BadSetting("queue", queue, fault=finding)


def _path(name: str, key: str = "", kind: Any = str, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.PATH, key or name, kind, **rest)


def _query(name: str, kind: Any, default: Any = REQUIRED, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.QUERY, rest.pop("key", name), kind, default, **rest)


def _body(name: str, kind: Any, default: Any = REQUIRED, **rest: Any) -> Parameter:  # noqa: ANN401
    return Parameter(name, Place.BODY, rest.pop("key", name), kind, default, **rest)


_WHO = Parameter("who", Place.CALLER, "")
# What a path names is what its guard looks at, and the first argument of the method.
_NAMED: dict[str, tuple[Concern, Parameter]] = {
    "GET /tasks/{id}": (Concern.TASK, _path("task_id", "id", check=check_task)),
    "POST /tasks/{id}": (Concern.CHANGED_TASK, _path("task_id", "id", check=check_task)),
    "/queues/{queue}": (Concern.QUEUE, _path("queue", check=check_queue)),
    "/workers/{id}": (Concern.WORKER, _path("worker", "id", check=check_worker)),
    "/sbis/{sbi}": (Concern.SBI, _path("sbi_id", "sbi")),
    "/processing-blocks/{block}": (Concern.BLOCK, _path("block_id", "block")),
    "/workflows/{name}": (Concern.NAME, _path("name")),
    "/objects/{name}": (Concern.NAME, _path("name")),
}


def _row(name: str, route: str, says: str, answers: Answer, **rest: Any) -> Operation:  # noqa: ANN401
    taken: tuple[Parameter, ...] = rest.pop("takes", ())
    for place, (concern, named) in _NAMED.items():
        if place in route:
            rest["concerns"] = concern
            is_taken = any(one.name == named.name for one in taken)
            taken = taken if is_taken else (named, *taken)
    return Operation(name, route, says, answers, takes=taken, **rest)


# Tasks.

HISTORY = _row(
    "history",
    "GET /tasks/{id}/history",
    "Every change of a task's status, oldest first, page by page.",
    Listed(
        "HistoryPage",
        "history",
        tasks.HistoryEntry,
        "The history, oldest first; send ``next`` as ``after`` to get the next page.",
        goes_on=("after", "seq"),
    ),
    takes=(
        _query("after", Number, 0),
        _query("count", Count, 100, key="limit", check=page_count),
    ),
)
ARM = _row(
    "arm",
    "POST /tasks/{id}/arm",
    "Let a task that was created unarmed run.",
    tasks.Task,
    scopes=SUBMIT,
)
PARTS_OF_TASKS = (
    _row(
        "attempts",
        "GET /tasks/{id}/attempts",
        "Every attempt at a task, oldest first.",
        Listed("AttemptsOut", "attempts", tasks.AttemptView),
    ),
    _row(
        "outputs",
        "GET /tasks/{id}/outputs",
        "The messages and outputs of a task, in the order of sending, and its values.",
        Listed(
            "OutputsOut",
            "outputs",
            tasks.OutputView,
            "The messages of the jobs, and the values that the task passes to later tasks.",
            beside=(("values", msgspec.Raw),),  # null if it hands on nothing
        ),
    ),
    _row(
        "inputs",
        "GET /tasks/{id}/inputs",
        "The values of the tasks that this task needs, if you may see those tasks.",
        Listed("InputsOut", "inputs", tasks.InputView),
    ),
    _row(
        "usage",
        "GET /tasks/{id}/usage",
        "The memory, CPU and GPU that the task used over time.",
        Listed("SeriesOut", "usage", tasks.UsageView),
    ),
    _row(
        "edges",
        "GET /tasks/{id}/graph",
        "What the task waits for, and what waits for it.",
        Listed(
            "GraphOut",
            "edges",
            tasks.EdgeView,
            "What the task waits for, and what waits for it.",
        ),
    ),
    _row(
        "why",
        "GET /tasks/{id}/why",
        "Why the task does not run, in words.",
        Part(
            "WhyOut",
            "reasons",
            {"id": str, "reasons": list[str]},
            "The reasons why a task does not run; empty if nothing holds it back.",
        ),
    ),
)

RESUBMIT = _row(
    "resubmit",
    "POST /tasks/resubmit",
    "Submit ended tasks again, each as a new task with the same fields and needs.",
    Listed(
        "ResubmittedOut",
        "tasks",
        tasks.Resubmitted,
        "The result for each task. If a task was submitted again earlier, the result names the "
        "task that was made then, and no other task is made.",
    ),
    scopes=SUBMIT,
    takes=(
        _body("task_ids", ManyIds, key="ids"),
        _body("with_children", bool, default=False),
        _body("dry_run", bool, default=False),
    ),
    form=(
        "ResubmitIn",
        "The ids of tasks that have ended; ``with_children`` adds the tasks that were "
        "cancelled because they need one of these; with ``dry_run`` nothing is stored.",
    ),
    again=True,
)

# Queues.

_QUEUE = "/queues/{queue}"
QUEUES = (
    _row(
        "queues",
        "GET /queues",
        "Every queue that has settings or open tasks, or was used lately, with its counts.",
        Listed("QueuesOut", "queues", tasks.QueueView, seen="queue"),
    ),
    _row(
        "ready_queues",
        "GET /ready-queues",
        "The names of the queues with ready tasks, from which a worker may claim.",
        Part(
            "ReadyQueuesOut", "priorities", {"queues": list[str], "priorities": dict[str, int]}
        ),
    ),
    _row(
        "queue",
        f"GET {_QUEUE}",
        "One queue; a queue that was never used is empty.",
        tasks.QueueView,
    ),
)
PAUSES = tuple(
    _row(
        "pause_queue",
        f"POST {_QUEUE}/{verb}",
        says,
        tasks.QueueView,
        scopes=OPERATE,
        fixed={"paused": paused},
        returns=False,
        again=True,
    )
    for verb, paused, says in (
        ("pause", True, "Hand out no task of the queue; running tasks continue."),
        ("resume", False, "Let tasks of the queue be claimed again."),
    )
)

# Many things at once.

_TASKS = Listed("TasksOut", "tasks", tasks.Task, "Tasks with every field.")
MANY = (
    _row(
        "get_many",
        "POST /tasks/get",
        "The tasks with these ids, all as of one moment, in the order of the request.",
        _TASKS,
        takes=(
            _body("task_ids", list[str], key="ids"),
        ),  # up to 10,000; its handler looks at each
        form=("IdsIn", "The ids of tasks."),
        again=True,
        audited=False,
        only_reads=True,
    ),
    _row(
        "peek",
        f"GET {_QUEUE}/peek",
        "The tasks that would be claimed next from a queue; this request does not claim them.",
        _TASKS,
        takes=(
            _path("queue", check=_find_queue),
            _query("count", LongCount, 10, check=page_count),
        ),
        missing=list,
    ),
    _row(
        "ended_attempts",
        "GET /ended-attempts",
        "The newest attempts that have ended, one by one, for your own statistics.",
        Listed(
            "EndedOut",
            "attempts",
            "core.queue.statistics.EndedAttempt",
            "Attempts that have ended, newest first, with the fields that statistics need.",
        ),
        takes=(_query("count", LongCount, 1_000, key="limit"),),
    ),
    _row(
        "store_id",
        "GET /store",
        "Which store the server uses, and the time of the store's clock.",
        Part(
            "StoreOut",
            "id",
            {"id": str, "now": str | None},
            "The id of the store, and the time by its clock.",
        ),
    ),
    _row(
        "verify",
        "GET /verify",
        "Every inconsistency in the store.",
        Listed(
            "ViolationsOut",
            "violations",
            tasks.Violation,
            "Every inconsistency; an empty list means that the store is consistent.",
        ),
        scopes=ADMIN,
    ),
)

# Workers.

WORKERS = (
    _row(
        "workers",
        "GET /workers",
        "Running workers and the tasks that they hold; with `all=true` also stopped workers.",
        Listed("WorkersOut", "workers", tasks.WorkerView, seen="worker"),
        takes=(_query("live_only", bool, default=False, key="all", turn=not_),),
    ),
    _row(
        "stop_worker",
        "POST /workers/{id}/stop",
        "Unregister a worker that stops; leases that it still holds will lapse.",
        Echo("WorkerIdOut", "id"),
        scopes=WORKER,
        again=True,
    ),
    _row(
        "set_trouble",
        "POST /workers/{id}/trouble",
        "Report why the worker takes no tasks now.",
        Echo("WorkerIdOut", "id"),
        scopes=WORKER,
        takes=(_body("trouble", Trouble | None, None),),
        form=(
            "TroubleIn",
            "The reason why a worker takes no tasks now; null: it takes tasks again.",
        ),
        again=True,
        audited=False,
    ),
)
ORPHANS = _row(
    "orphans",
    "GET /orphans",
    "Leases of this token's workers on a host, which a new worker on this host may take over.",
    Listed("OrphansOut", "leases", HeldLease),
    scopes=WORKER,
    takes=(_query("host", Host), _query("boot_id", Host)),
)

# Blocks and objects.

_BLOCK = "/processing-blocks/{block}"
_OBJECTS = "/objects"
CHANGES_OBJECTS = (Scope.SUBMIT, Scope.OPERATE)
_ABORT: dict[str, Any] = {
    "scopes": OPERATE,
    "takes": (_WHO, _body("reason", Reason, "")),
    "form": ("AbortIn", "The reason for the abort, for people who see the block later."),
    "again": True,
    "seconds_max": SECONDS_MAX,
}
BLOCKS = tuple(
    replace(row, of=ServiceName.BLOCKS)
    for row in (
        _row(
            "sbis",
            "GET /sbis",
            "Scheduling block instances, newest first.",
            "api.blocks.SbiList",
            takes=(
                _query("count", Count, 100, key="limit"),
                _query("status", str | None, None),
                _query("subarray", str | None, None),
            ),
        ),
        _row(
            "sbi",
            "GET /sbis/{sbi}",
            "A scheduling block instance as it was requested, and its blocks.",
            "api.blocks.SbiDocument",
        ),
        _row(
            "abort_sbi",
            "POST /sbis/{sbi}/abort",
            "Abort all blocks of a scheduling block instance; the answer lists each block.",
            "api.blocks.AbortedSbi",
            **_ABORT,
        ),
        _row(
            "blocks",
            "GET /processing-blocks",
            "Processing blocks, newest first.",
            "api.blocks.BlockList",
            takes=(
                _query("sbi", str | None, None),
                _query("status", str | None, None),
                _query("workflow", str | None, None),
                _query("count", Count, 100, key="limit"),
            ),
        ),
        _row(
            "block",
            f"GET {_BLOCK}",
            "A processing block: what it waits for, and each stage with its events.",
            "api.blocks.BlockDocument",
            work=Work.APART,
        ),
        _row(
            "block_history",
            f"GET {_BLOCK}/history",
            "What happened to a processing block and its stages, oldest first.",
            "api.blocks.BlockHistory",
        ),
        _row(
            "abort",
            f"POST {_BLOCK}/abort",
            "Abort a processing block: end its running stages, and start no more stages.",
            "api.blocks.AbortedBlock",
            **_ABORT,
        ),
    )
)
OBJECTS = tuple(
    replace(row, of=ServiceName.BLOCKS)
    for row in (
        _row(
            "objects",
            f"GET {_OBJECTS}",
            "Buffer objects by name; for the next page, send the last name as ``after``.",
            "api.blocks.ObjectList",
            takes=(
                _query("after", str, ""),
                _query("count", Count, 1_000, key="limit"),
            ),
        ),
        _row(
            "remove_object",
            f"DELETE {_OBJECTS}/{{name}}",
            "Remove a buffer object; stages that have already found it continue.",
            "api.blocks.BufferObject",
            scopes=CHANGES_OBJECTS,
            again=False,
        ),
    )
)

# Workflows of the registry: the highest version, or one that the path names.


def _of_workflow(version: str, which: str) -> Iterator[Operation]:
    place, shared = f"/workflows/{{name}}{version}", {"of": ServiceName.REGISTRY}
    named = (_path("name"), _path("version")) if version else (_path("name"),)
    # A POST for the sake of its body: parameters may be larger than a URL.
    tried: dict[str, Any] = shared | {
        "takes": (*named, _body("parameters", Parameters | None, None)),
        "form": ("ParametersIn", "The parameters of a run; null: any parameters."),
        "again": True,
        "audited": False,  # it changes nothing
        "seconds_max": SECONDS_MAX,
    }
    can_run = f"Whether {which} can run with the given parameters."
    executes = f"What {which} would execute with the given parameters."
    stages = f"Each stage of {which}: what it waits for and needs, its values and its files."
    shows = f"{which.capitalize()} of a workflow: findings, parameters, files."
    # A DELETE without a version never guesses: it is refused where there are several.
    forgotten = "one version" if version else "the only version"
    forgets = f"Forget {forgotten} of a workflow; its runs are not affected."
    types = "api.workflows"
    yield _row("check", f"POST {place}/check", can_run, f"{types}.WorkflowVerdict", **tried)
    yield _row("render", f"POST {place}/render", executes, f"{types}.RenderedWorkflow", **tried)
    yield _row("stages", f"POST {place}/stages", stages, f"{types}.WorkflowStages", **tried)
    asked: dict[str, Any] = shared | {"takes": named}
    yield _row("show", f"GET {place}", shows, f"{types}.WorkflowDocument", **asked)
    asked["scopes"] = SUBMIT
    yield _row("remove", f"DELETE {place}", forgets, f"{types}.WorkflowFacts", **asked)


WORKFLOWS = (
    _row(
        "list",
        "GET /workflows",
        "Registered workflows by name, the highest version first.",
        ListedDocuments("api.workflows.WorkflowList", "workflows", "name"),
        of=ServiceName.REGISTRY,
        takes=(_query("name", Named, ""),),
    ),
    *_of_workflow("", "the highest version"),
    *_of_workflow("/{version}", "one version"),
    _row(
        "diff",
        "GET /workflows/{name}/{version}/diff",
        "The files in which another version of a workflow differs from this one, line by line.",
        "api.workflows.WorkflowDiff",
        of=ServiceName.REGISTRY,
        takes=(_path("name"), _path("version"), _query("against", Named)),
        seconds_max=SECONDS_MAX,
    ),
)

# Notifications.

NOTIFICATIONS = (
    _row(
        "notifications",
        "GET /notifications",
        "The rules of notifications, and the notifications that wait or were sent.",
        "api.notifications.NotificationsOut",
        scopes=ADMIN,
        of=ServiceName.NOTIFICATIONS,
    ),
    _row(
        "try_notifications",
        "POST /notifications/test",
        "Send a test message for one rule or for all rules, and report the results.",
        "api.notifications.TestsOut",
        scopes=ADMIN,
        of=ServiceName.NOTIFICATIONS,
        takes=(_body("rule", RuleName | None, None),),
        form=("TestIn", "The name of the rule to try; without a name, every rule is tried."),
        target=lambda asked: f"rule {asked['rule'] or '*'}",
        seconds_max=TEST_SECONDS_MAX,
    ),
)

# Tokens and the audit.

TOKENS = (
    _row(
        "tokens",
        "GET /tokens",
        "Every token and when it was last used, without the secret itself.",
        Listed("TokensOut", "tokens", TokenView),
        scopes=ADMIN,
    ),
    _row(
        "revoke_token",
        "POST /tokens/{number}/revoke",
        "Revoke a token; this takes effect within a second.",
        TokenView,
        scopes=ADMIN,
        takes=(_path("number", kind=int),),
        again=True,
    ),
)
SESSIONS = (
    _row(
        "sessions",
        "GET /sessions",
        "Your own open sessions, newest first; for admins all open sessions.",
        Listed("SessionsOut", "sessions", TokenView),
    ),
    _row(
        "end_session",
        "POST /sessions/{number}/end",
        "End one of your sessions (admins: any session); this takes effect within a second.",
        TokenView,
        takes=(_path("number", kind=int),),
        again=True,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    HISTORY,
    ARM,
    RESUBMIT,
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
    *SESSIONS,
)
