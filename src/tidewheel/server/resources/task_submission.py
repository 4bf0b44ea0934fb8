"""Submits tasks: one or many, all or each, in the words of tidewheel, Scylla or Banyan."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from tidewheel.client.async_client import new_id
from tidewheel.client.fields import QUEUE_DEFAULT, new_task
from tidewheel.core.operator.definition import run_named_by
from tidewheel.core.queue.access import RUN_QUEUE, Scope
from tidewheel.core.queue.requests import Submitted
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import BadSetting, InvalidTask, NotFound, PayloadTooLarge, Refused
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest, NotAllowed, problem
from tidewheel.server.routes import API, Needs, Route
from tidewheel.server.wire.tasks import (
    AnsweredOut,
    BatchOut,
    OrderedOut,
    RefusedOut,
    SubmittedOut,
    TaskIn,
    banyan_fields,
    refused_out,
    scylla_fields,
)
from tidewheel.server.wire.validation import FINDINGS_MAX, In, read, read_many
from tidewheel.vocabulary import Vocabulary

REFERENCES_MAX = 1_000  # of a caller whose token is not for every queue


class SubmitQuery(In):
    """The parameters of a submission: what is stored together, and in whose words."""

    atomic: Literal["all", "each"] = "all"
    vocabulary: Vocabulary = Vocabulary.TIDEWHEEL
    in_order: bool = False  # for many: an answer for each in its place, instead of four lists


class Item(NamedTuple):
    """Holds one task of a request: as it can be stored, or why it cannot."""

    task: NewTask | None
    refused: Submitted | None


class Submission(NamedTuple):
    """Holds a request to store tasks."""

    items: list[Item]
    many: bool


def parse(call: Call) -> Submission:
    """Reads one object or a list of them; unless atomic=each, any mistake refuses them all."""
    query = call.query_as(SubmitQuery)
    many = call.raw.lstrip()[:1] == b"["
    raws = read_many(call.raw) if many else [msgspec.Raw(call.raw)]
    each = many and query.atomic == "each"
    items, findings = [], []
    for index, raw in enumerate(raws):
        try:
            items.append(Item(_task(call, bytes(raw), index, query.vocabulary), None))
        except (BadRequest, InvalidTask) as error:
            if not each:
                where = f"[{index}]: " if many else ""
                findings += [f"{where}{finding}" for finding in error.findings]
                if len(findings) >= FINDINGS_MAX:
                    break
                continue
            name = TaskId(getattr(error, "task_id", ""))
            items.append(Item(None, Submitted(id=name, refused=error)))
    if findings:
        raise BadRequest(findings)
    return Submission(items, many)


def _task(call: Call, raw: bytes, index: int, vocabulary: Vocabulary) -> NewTask:
    fields = _READERS[vocabulary](raw)
    queue = fields.pop("queue", None)
    queue = QUEUE_DEFAULT if queue is None else queue
    return new_task(queue, fields, lambda: _own_id(call, index))


def _own_id(call: Call, index: int) -> str:
    """Returns an id for a task that has none; a repeated request gets the same ids, even if
    nobody could keep its answer."""
    if call.key is None or call.token is None:
        return new_id()
    said = f"{call.token.number}/{call.key}/{index}".encode()
    return "k-" + hashlib.sha256(said).hexdigest()[:32]


def _our_fields(raw: bytes) -> dict[str, Any]:
    form = read(raw, TaskIn)
    given = {
        name: value
        for name in TaskIn.__struct_fields__
        if name != "spec" and (value := getattr(form, name)) is not None
    }
    if isinstance(given.get("backoff"), msgspec.Struct):
        given["backoff"] = msgspec.to_builtins(given["backoff"])
    if bytes(form.spec) and form.spec_text is not None:
        raise BadRequest(["it has both spec and spec_text; give one of them"])
    if bytes(form.spec):
        given["spec_text"] = bytes(form.spec).decode()
    return given


_READERS: dict[Vocabulary, Callable[[bytes], dict[str, Any]]] = {
    Vocabulary.TIDEWHEEL: _our_fields,
    Vocabulary.SCYLLA: scylla_fields,
    Vocabulary.BANYAN: banyan_fields,
}


async def queues_concerned(call: Call) -> Iterable[str]:
    """Returns the queues of every task, and of every stored task that one is tied to."""
    tasks = [item.task for item in call.body_as(Submission).items if item.task]
    queues = {task.queue for task in tasks}
    if not call.covers_everything:
        _require_own_ids(call, tasks)
        queues |= await _queues_of(call, _references(tasks))
    return queues


def _require_own_ids(call: Call, tasks: Iterable[NewTask]) -> None:
    """Raises NotAllowed for the id of a job of a run that the token is not for.

    Ids are the whole store's: a caller who took the id of a job to come would bring its run
    down.
    """
    for task in tasks:
        run = run_named_by(task.id)
        if run is not None and not call.covers(f"{RUN_QUEUE}{run}"):
            raise NotAllowed(
                f"{task.id!r} is what a job of a run {run!r} is called, and this token is not "
                f"for queue '{RUN_QUEUE}{run}'; choose another id, or leave it out"
            )


def _references(tasks: Iterable[NewTask]) -> set[TaskId]:
    named = {need.task_id for task in tasks for need in task.needs}
    return named | {child for task in tasks for child in task.continuations}


async def _queues_of(call: Call, ids: set[TaskId]) -> set[str]:
    if len(ids) > REFERENCES_MAX:
        accepted = f"up to {REFERENCES_MAX} for a token that is not for every queue"
        raise BadSetting("dependencies", len(ids), accepted)
    queues = set()
    for one in ids:
        with suppress(NotFound):  # it may come with this request
            queues.add((await call.store.get(one)).queue)
    return queues


async def submit(call: Call) -> object:
    submission = call.body_as(Submission)
    tasks = [item.task for item in submission.items if item.task]
    call.targets += [f"{len(tasks)} tasks", *(task.id for task in tasks[:5])]
    each = submission.many and call.query_as(SubmitQuery).atomic == "each"
    call.quota.take(Counter(task.queue for task in tasks))
    answers = await call.store.submit(tasks, atomic=not each)
    if not submission.many:
        [one] = answers
        told = SubmittedOut(id=one.id, created=one.created)
        return Answer(body=told, status=201 if one.created else 200)
    if call.query_as(SubmitQuery).in_order:
        return _ordered(call, submission.items, answers)
    batch = _batch(submission.items, answers)
    return Answer(body=batch, status=201 if batch.inserted else 200)


def _ordered(call: Call, items: list[Item], answers: list[Submitted]) -> Answer:
    stored = iter(answers)
    each = [item.refused or next(stored) for item in items]
    told = [
        AnsweredOut(
            id=one.id,
            created=one.created,
            refused=problem(one.refused, call.correlation) if one.refused else None,
        )
        for one in each
    ]
    status = 201 if any(one.created for one in each) else 200
    return Answer(body=OrderedOut(answers=told), status=status)


def _batch(items: list[Item], answers: list[Submitted]) -> BatchOut:
    stored = iter(answers)
    inserted: list[str] = []
    present: list[str] = []
    failed: list[RefusedOut] = []
    invalid: list[RefusedOut] = []
    for index, item in enumerate(items):
        one = item.refused or next(stored)
        if one.refused is not None:
            (invalid if _is_invalid(one.refused) else failed).append(refused_out(index, one))
        else:
            (inserted if one.created else present).append(one.id)
    return BatchOut(inserted=inserted, present=present, failed=failed, invalid=invalid)


def _is_invalid(error: Refused) -> bool:
    return isinstance(error, InvalidTask | PayloadTooLarge | BadRequest)


ROUTES = (
    Route(
        method="POST",
        path=f"{API}/tasks",
        guard=Needs(scopes=(Scope.SUBMIT,), queues=queues_concerned),
        handler=submit,
        says="Store a task, or a list of tasks: all or none, or each by itself (atomic=each).",
        query=SubmitQuery,
        body=TaskIn | list[TaskIn],
        parse=parse,
        answers=(SubmittedOut, BatchOut, OrderedOut),
        status=201,
    ),
)
