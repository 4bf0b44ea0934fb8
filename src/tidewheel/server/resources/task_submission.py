"""Submits tasks: one or many, all or each, in the words of tidewheel, Scylla or Banyan."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from tidewheel.api.operation import SUBMIT
from tidewheel.api.wire import answer
from tidewheel.client import fields
from tidewheel.client.async_client import new_id
from tidewheel.client.fields import QUEUE_DEFAULT, TaskFields, new_task
from tidewheel.core.operator.definition import run_named_by
from tidewheel.core.queue.access import Name, queue_name, run_name
from tidewheel.core.queue.requests import Submitted
from tidewheel.core.queue.submission import DIGITS_MAX
from tidewheel.core.queue.task import PRIORITY_DEFAULT, NewTask, TaskId
from tidewheel.errors import (
    BadSetting,
    DependencyCycle,
    Duplicate,
    InvalidTask,
    NotFound,
    PayloadTooLarge,
    Refused,
    UnknownDependency,
)
from tidewheel.exact_json import decode
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed, Problem, problem
from tidewheel.server.request_batches import AuditedTask
from tidewheel.server.routes import Needs, RouteList
from tidewheel.server.validation import FINDINGS_MAX, Duration, In, Size, read, read_many
from tidewheel.vocabulary import Vocabulary

REFERENCES_MAX = 1_000  # of a caller whose token is not for every queue
Text = Annotated[str, msgspec.Meta(max_length=256)]
ROUTES = RouteList()


class Backoff(In):
    """Growing delays between retries."""

    first_seconds: float = 1.0
    factor: float = 2.0
    seconds_max: float = 600.0
    jitter: float = 0.5


class FlavouredNodesIn(In):
    """Says how many nodes of one flavour a task asks for."""

    flavour: Text  # "": of all flavours together
    nodes: int
    idle: int = 0  # of these, those that it wants alone


# A new task has the fields that the client knows, but for those of which it makes others.
_NOT_SENT = frozenset({"resources", "runner", "compose", "directives"})
_SENT_AS: dict[str, Any] = {
    "spec_text": str,  # the spec as a text that holds JSON, white space and all
    "command": str,
    "needs": list[str | tuple[str, str]],
    "continuations": list[str],
    "retries": int,
    "retry_delays": list[Duration],
    "backoff": Backoff | bool,
    "labels": list[str],
    "flavours": list[FlavouredNodesIn],  # of its nodes, instead of nodes and exclusive
    "environment": dict[str, str],  # of the command; secret:NAME is for the worker to find
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
        "__doc__": "A new task; nothing is required. Null is the same as not given, except for "
        "spec, where null is a value."
    },
)


class ScyllaTaskIn(In):
    """A task as Scylla describes it."""

    rn: Text
    queue: Text
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    priority: int | None = None


class RequestedResources(In):
    """The resources that a task asks for, with the field names of the task server Banyan."""

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


# The words of Scylla and Banyan for which tidewheel has others.
_OUR_WORDS = {
    "rn": "id",
    "max_termination_time": "max_termination",
    "max_retry_count": "retries",
    **{"cores": "cpu", "gpus": "gpu"},
}


def our_fields(form: msgspec.Struct) -> dict[str, Any]:
    """Returns the fields of a form that are not null, by tidewheel's names.

    Banyan's requested_resources become fields beside the others; where both name a resource,
    the others count.
    """
    said = {
        _OUR_WORDS.get(name, name): value
        for name, value in msgspec.structs.asdict(form).items()
        if value is not None
    }
    if "flavours" in said:
        said["flavours"] = msgspec.to_builtins(said["flavours"])
    asked = said.pop("requested_resources", None)
    return said if asked is None else our_fields(asked) | said


class SubmitQuery(In):
    """Holds the parameters of a submission: what is stored together, and in whose words."""

    atomic: Literal["all", "each"] = "all"
    vocabulary: Vocabulary = Vocabulary.TIDEWHEEL
    in_order: bool = False  # for many: an answer for each in its place, instead of four lists


SubmittedOut = answer(
    "SubmittedOut",
    "The outcome of submitting one task.",
    id=str,
    created=bool,  # false: the same task was there already
)
AnsweredOut = answer(
    "AnsweredOut",
    "The outcome of submitting one task of a list.",
    id=str,
    created=bool,
    refused=Problem | None,
)
RefusedOut: Any = answer(
    "RefusedOut",
    "The reason why a task was not stored; ``index`` is its place in the request.",
    **{"index": int, "id": str, "code": str, "message": str},
)
BatchOut = answer(
    "BatchOut",
    "The outcome of submitting a list: the tasks that were stored (``inserted``) or existed "
    "already (``present``), and those that were refused, because they conflict with the store "
    "(``failed``) or break a rule (``invalid``).",
    **{"inserted": list[str], "present": list[str]},
    **{"failed": list[RefusedOut], "invalid": list[RefusedOut]},
)
OrderedOut = answer(
    "OrderedOut",
    "The outcome of each task, in the order of the request (with `in_order=true`).",
    answers=list[AnsweredOut],  # type: ignore[valid-type]
)


class Submission(NamedTuple):
    """Holds a request to store tasks: each as it can be stored, or why it cannot."""

    items: list[NewTask | Submitted]
    tasks: list[NewTask]  # of these
    many: bool


def parse(call: Call) -> Submission:
    """Reads one object or a list of them; unless atomic=each, any mistake refuses them all."""
    query = call.query_as(SubmitQuery)
    form = _FORMS[query.vocabulary]
    if call.raw.lstrip()[:1] != b"[":
        try:
            task = _usual_task(call, form) or _task(call, call.raw, 0, form)
        except InvalidTask as error:
            raise BadRequest(error.findings) from None
        return Submission([task], [task], many=False)
    each = query.atomic == "each"
    items: list[NewTask | Submitted] = []
    findings: list[str] = []
    for index, raw in enumerate(read_many(call.raw)):
        try:
            items.append(_task(call, bytes(raw), index, form))
        except (BadRequest, InvalidTask) as error:
            if not each:
                findings += [f"[{index}]: {finding}" for finding in error.findings]
                if len(findings) >= FINDINGS_MAX:
                    break
                continue
            name = TaskId(getattr(error, "task_id", ""))
            items.append(Submitted(id=name, refused=error))
    if findings:
        raise BadRequest(findings)
    return Submission(items, [one for one in items if isinstance(one, NewTask)], many=True)


_FORMS: dict[Vocabulary, type[In]] = {
    Vocabulary.TIDEWHEEL: TaskIn,
    Vocabulary.SCYLLA: ScyllaTaskIn,
    Vocabulary.BANYAN: BanyanTaskIn,
}


class _UsualTaskIn(In):
    """Holds what most tasks say, each field as it is stored."""

    id: Text | None = None
    queue: Text = QUEUE_DEFAULT
    handler: Text | None = None
    command: str | None = None
    spec: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    priority: int = PRIORITY_DEFAULT


_read_usual = msgspec.json.Decoder(_UsualTaskIn).decode


def _usual_task(call: Call, form: type[In]) -> NewTask | None:
    """Returns the task of a body that says no more than usual; None if it does, or if anything
    is wrong: it is then read as the whole form is, which tells what."""
    if form is not TaskIn or len(call.raw) > DIGITS_MAX:
        return None
    try:
        said = _read_usual(call.raw)
        spec = bytes(said.spec).decode() or None
        if spec is not None:
            decode(spec)
    except (ValueError, RecursionError):
        return None
    return NewTask(
        id=TaskId(_own_id(call, 0) if said.id is None else said.id),
        queue=said.queue,
        handler=said.handler,
        command=said.command,
        spec=spec,
        priority=said.priority,
    )


def _task(call: Call, raw: bytes, index: int, form: type[In]) -> NewTask:
    given = our_fields(read(raw, form))
    if spec := bytes(given.pop("spec", b"")):
        if "spec_text" in given:
            raise BadRequest(["it has both spec and spec_text; give one of them"])
        given["spec_text"] = spec.decode()
    if isinstance(given.get("backoff"), msgspec.Struct):
        given["backoff"] = msgspec.to_builtins(given["backoff"])
    if "state" in given:
        given["armed"] = given.pop("state") == "available"
    return new_task(given.pop("queue", QUEUE_DEFAULT), given, lambda: _own_id(call, index))


def _own_id(call: Call, index: int) -> str:
    """Returns an id for a task that has none; a repeated request gets the same ids, even if
    nobody could keep its answer."""
    if call.key is None or call.token is None:
        return new_id()
    # With what nobody else knows: an id that can be guessed can be taken.
    said = f"{call.token.number}/{call.token.digest}/{call.key}/{index}".encode()
    return "k-" + hashlib.sha256(said).hexdigest()[:32]


async def queues_concerned(call: Call) -> Iterable[Name]:
    """Returns the queues of all new tasks; none for a caller with all queues, for whom nothing
    is to be looked up. A stored task that one is tied to, and that the
    caller may not see, is unknown, see `stored_for`."""
    if call.grant.covers_everything:
        return ()
    tasks = call.body_as(Submission).tasks
    _require_own_ids(call, tasks)
    _check_references(tasks)
    return {queue_name(task.queue) for task in tasks}


def _require_own_ids(call: Call, tasks: Iterable[NewTask]) -> None:
    """Raises NotAllowed for a new task with the id of a job, in a run whose queue the token is
    not for.

    Ids are unique in the whole store: a caller who took the id of a job to come would bring its
    run down.
    """
    for task in tasks:
        run = run_named_by(task.id)
        if run is not None and not call.covers(run_name(run)):
            raise NotAllowed(
                f"{task.id!r} has the form of an id of a job of run {run!r}, and this token is "
                "not for that run; choose another id, or leave it out"
            )


def _references(tasks: Iterable[NewTask]) -> set[TaskId]:
    needed = {need.task_id for task in tasks for need in task.needs}
    return needed | {child for task in tasks for child in task.continuations}


def _check_references(tasks: Iterable[NewTask]) -> None:
    if (count := len(_references(tasks))) > REFERENCES_MAX:
        accepted = f"up to {REFERENCES_MAX} for a token that is not for every queue"
        raise BadSetting("dependencies", count, accepted)


# A task that the caller may not see is to be as unknown as one that is not there. So that all
# else is judged as ever, and in its order, the store is given an id in its place that no task
# has; in what it answers, the caller's word stands again.


async def stored_for(call: Call, tasks: list[NewTask], *, atomic: bool) -> list[Submitted]:
    """Stores tasks as ``Store.submit`` does, for a caller who may not see everything."""
    if len(tasks) == 1 and atomic and not _has_edges(tasks[0]):
        return [await _stored_with_others(call, tasks[0])]
    hidden = {} if call.grant.covers_everything else await _hidden(call, tasks)
    given = [_tied(task, hidden) for task in tasks] if hidden else tasks
    said = {ours: theirs for theirs, ours in hidden.items()}
    try:
        found = await call.store.submit(given, atomic=atomic)
    except Refused as refused:
        raise await told_to(call, refused, said) from None
    return [
        replace(one, refused=await told_to(call, one.refused, said)) if one.refused else one
        for one in found
    ]


def _has_edges(task: NewTask) -> bool:
    return bool(task.needs or task.continuations)


async def _stored_with_others(call: Call, task: NewTask) -> Submitted:
    """Stores a task that is tied to no other, together with those of other requests, and with
    what the audit tells of it."""
    audited = AuditedTask(task, lambda outcome: call.entry(_status_of(outcome)))
    try:
        stored = await call.server.gathered.submissions.ask(audited)
    except Refused as refused:
        raise await told_to(call, refused) from None
    call.audited_status = _status_of(stored)
    return stored


async def _hidden(call: Call, tasks: Iterable[NewTask]) -> dict[TaskId, TaskId]:
    """Returns the stored tasks that new ones are tied to and the caller may not see, each with
    an id that no task has."""
    hidden = {}
    for one in _references(tasks):
        with suppress(NotFound):  # it may come with this request
            if not call.covers_queue((await call.store.get(one)).queue):
                hidden[one] = TaskId(new_id())
    return hidden


def _tied(task: NewTask, instead: Mapping[TaskId, TaskId]) -> NewTask:
    needs = (replace(one, task_id=instead.get(one.task_id, one.task_id)) for one in task.needs)
    children = (instead.get(one, one) for one in task.continuations)
    return replace(task, needs=tuple(needs), continuations=tuple(children))


async def told_to(
    call: Call, refused: Refused, said: Mapping[TaskId, TaskId] | None = None
) -> Refused:
    """Returns a refusal as the caller may hear it: it names no task of others."""
    said = said or {}
    match refused:
        case UnknownDependency():
            missing = (TaskId(one) for one in refused.missing)
            return UnknownDependency(refused.task_id, [said.get(one, one) for one in missing])
        case Duplicate(kind="name") if not await _sees(call, refused.holder):
            return Duplicate(refused.kind, refused.name, "")
        case DependencyCycle():
            return DependencyCycle(
                [one if await _sees(call, one) else "a task of others" for one in refused.path]
            )
        case _:
            return refused


async def _sees(call: Call, task_id: str) -> bool:
    try:
        task = await call.store.get(TaskId(task_id))
    except NotFound:  # it is a new one
        return True
    return call.covers_queue(task.queue)


@ROUTES.add(
    "POST /tasks",
    Needs(SUBMIT, queues_concerned),
    "Store a task, or a list of tasks: all or none, or each by itself (`atomic=each`).",
    (SubmittedOut, BatchOut, OrderedOut),
    query=SubmitQuery,
    body=TaskIn | list[TaskIn],
    parse=parse,
    status=201,
)
async def submit(call: Call) -> object:
    submission, query = call.body_as(Submission), call.query_as(SubmitQuery)
    tasks = submission.tasks
    call.targets += [f"{len(tasks)} tasks", *[task.id for task in tasks[:5]]]
    if not submission.many:
        [task] = tasks
        call.server.quotas.take_tasks(call.token, {task.queue: 1})
        if _has_edges(task):
            [one] = await stored_for(call, tasks, atomic=True)
        else:
            one = await _stored_with_others(call, task)
        told: object = {"id": one.id, "created": one.created}
        return told if one.created else Answer(body=told, status=_status_of(one))
    each = query.atomic == "each"
    call.server.quotas.take_tasks(call.token, Counter([task.queue for task in tasks]))
    stored = iter(await stored_for(call, tasks, atomic=not each))
    answers = [one if isinstance(one, Submitted) else next(stored) for one in submission.items]
    status = max(map(_status_of, answers), default=200)
    told = _ordered(call, answers) if query.in_order else _batch(answers)
    return Answer(body=told, status=status)


def _status_of(answer: Submitted) -> int:
    return 201 if answer.created else 200


def _ordered(call: Call, answers: list[Submitted]) -> object:
    told = [
        {
            "id": one.id,
            "created": one.created,
            "refused": problem(one.refused, call.correlation) if one.refused else None,
        }
        for one in answers
    ]
    return {"answers": told}


def _batch(answers: list[Submitted]) -> object:
    told: dict[str, list[object]] = {
        name: [] for name in ("inserted", "present", "failed", "invalid")
    }
    for index, one in enumerate(answers):
        why = one.refused
        if why is None:
            told["inserted" if one.created else "present"].append(one.id)
            continue
        is_invalid = isinstance(why, InvalidTask | PayloadTooLarge | BadRequest)
        refused = {"index": index, "id": one.id, "code": why.code, "message": str(why)}
        told["invalid" if is_invalid else "failed"].append(refused)
    return told
