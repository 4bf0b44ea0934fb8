"""Answers questions about tasks: pages of them, one of them, and what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from tidewheel.api.operations import HISTORY, PARTS_OF_TASKS
from tidewheel.api.tasks import HistoryEntry, Task
from tidewheel.api.wire import json_value, out_type, write
from tidewheel.client.async_client import AsyncClient
from tidewheel.client.log_places import STREAMS, attempt_log
from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.requests import KeysetPage
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import NotFound
from tidewheel.exact_json import encode
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import routes_of
from tidewheel.server.resources.logs import PartQuery, log_answer
from tidewheel.server.routes import API, Needs, Route, own_task, queue_of_task
from tidewheel.server.wire.tasks import (
    TaskListQuery,
    TaskPage,
    TaskPart,
    TaskQuery,
    WhyOut,
    filter_of,
)
from tidewheel.server.wire.validation import field_names
from tidewheel.services.explain import reasons
from tidewheel.vocabulary import FIELD_WORDS, Vocabulary, banyan_task, scylla_task

SPEC = ("spec", "spec_text")  # left out of lists unless it is asked for: it may be large


class LogQuery(PartQuery):
    """The attempt whose log is asked for; by default the last."""

    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


async def queue_asked(call: Call) -> Iterable[str]:
    """Returns the filter's queue; without one, the handler shows what the caller may see."""
    query = call.query_as(TaskListQuery)
    return () if query.queue is None else (query.queue,)


async def list_tasks(call: Call) -> object:
    query = call.query_as(TaskListQuery)
    which = filter_of(
        query,
        status=query.status.split(",") if query.status else None,
        queue=await _queue_filter(call, query.run, query.queue),
        vocabulary=query.vocabulary,
    )
    found = await call.store.list_tasks(
        which, KeysetPage(count=query.limit, before=query.before)
    )
    following = found[-1].seq if len(found) == query.limit else None
    shown = [task for task in found if call.covers(task.queue)]
    fields = _fields(query, leave_out=SPEC)
    told = [await _document(call, task, query.vocabulary, fields) for task in shown]
    return _told({"tasks": told, "next": following}, query.vocabulary)


async def _queue_filter(call: Call, name: str | None, queue: str | None) -> str | None:
    """Returns the queue of the run that is named, else the queue that was given."""
    if name is None:
        return queue
    run = await call.store.find_run(name)
    call.require_workflows((run.workflow,))  # before anything is said of it
    if queue not in (None, run.queue):
        raise BadRequest([f"run {run.name} has its tasks in queue {run.queue!r}"])
    return run.queue


async def get_task(call: Call) -> object:
    query = call.query_as(TaskQuery)
    task = await call.found_task()
    told = await _document(call, task, query.vocabulary, _fields(query))
    return _told(told, query.vocabulary)


def _fields(query: TaskQuery, leave_out: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the names of the fields that are shown; an unknown name is refused."""
    known = _known_fields(query.vocabulary)
    if query.fields is None:
        return tuple(name for name in known if name not in leave_out)
    wanted = tuple(dict.fromkeys(name.strip() for name in query.fields.split(",")))
    if unknown := [name for name in wanted if name not in known]:
        accepted = ", ".join(known)
        raise BadRequest([f"there is no field {unknown[0][:100]!r}; known are {accepted}"])
    return wanted


def _known_fields(vocabulary: Vocabulary) -> tuple[str, ...]:
    names = FIELD_WORDS[vocabulary]
    return tuple(names.get(name, name) for name in _FIELDS[vocabulary])


_FIELDS = {
    Vocabulary.TIDEWHEEL: tuple(field_names(out_type(Task))),
    Vocabulary.SCYLLA: (
        *("id", "spec", "queue", "priority", "status", "eligible", "progress"),
        *("created_at", "updated_at", "errors", "owner", "deadline_at", "history"),
    ),
    Vocabulary.BANYAN: (
        *("id", "name", "command", "status", "children", "resources"),
        *("estimated_runtime_seconds", "max_termination_seconds", "max_retries"),
        *("attempt", "open_needs", "execution_info", "attempts"),
    ),
}


async def _document(
    call: Call, task: Task, vocabulary: Vocabulary, fields: tuple[str, ...]
) -> dict[str, object]:
    """Returns a task in the words of a vocabulary; fields not asked for are not looked up."""
    if vocabulary is Vocabulary.TIDEWHEEL:
        out = write(task)
        told = {name: getattr(out, name) for name in fields}
        return {name: value for name, value in told.items() if value is not msgspec.UNSET}
    speak = _scylla if vocabulary is Vocabulary.SCYLLA else _banyan
    whole = await speak(call, task, frozenset(fields))
    return {name: whole[name] for name in fields}


async def _scylla(call: Call, task: Task, fields: frozenset[str]) -> dict[str, object]:
    known = "history" in fields
    return scylla_task(task, await _whole_history(call, task.id) if known else ())


async def _whole_history(call: Call, task_id: TaskId) -> list[HistoryEntry]:
    return await AsyncClient(call.store).history(task_id)


async def _banyan(call: Call, task: Task, fields: frozenset[str]) -> dict[str, object]:
    store, known = call.store, bool({"execution_info", "history"} & fields)
    return banyan_task(
        task,
        await store.attempts(task.id) if known or "state" in fields else (),
        await store.edges(task.id) if "continuations" in fields else (),
        await store.usage(task.id) if known else (),
    )


def _told(document: object, vocabulary: Vocabulary) -> object:
    """Returns the answer; documents of Scylla and Banyan hold decoded JSON, whose numbers may
    be of any size, and so are encoded here."""
    if vocabulary is Vocabulary.TIDEWHEEL:
        return document
    return Answer(body=encode(document))


async def outputs(call: Call) -> object:
    task_id = TaskId(call.path["id"])
    found = await call.store.outputs(task_id)
    values = await call.store.values_of([task_id])
    return write({"outputs": found, "values": json_value(values.get(task_id))})


async def why(call: Call) -> object:
    task = await call.found_task()
    return WhyOut(id=task.id, reasons=await reasons(call.store, task.id))


async def log(call: Call) -> object:
    """Answers with the log of the last attempt, or of another, if it ran on this host."""
    query, task = call.query_as(LogQuery), await call.found_task()
    stream = call.path["stream"]
    if stream not in STREAMS:
        raise NotFound("stream", stream)
    home = call.settings.state_directory
    attempt = query.attempt or max(1, task.attempt)
    path = await attempt_log(call.store, home, (task.id, task.seq), stream, attempt)
    root = home / path.relative_to(home).parts[0]
    return await log_answer(root, path, query, f"{task.id} {stream} of attempt {attempt}")


_READS = Needs(scopes=(Scope.READ,), queues=queue_of_task, job=own_task)
_TASK = f"{API}/tasks/{{id}}"
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/tasks",
        guard=Needs(scopes=(Scope.READ,), queues=queue_asked),
        handler=list_tasks,
        says="Tasks, newest first, page by page; specs only if fields= names them.",
        query=TaskListQuery,
        answers=TaskPage,
    ),
    Route(
        method="GET",
        path=_TASK,
        guard=_READS,
        handler=get_task,
        says="One task.",
        query=TaskQuery,
        answers=TaskPart,
    ),
    *routes_of([HISTORY]),
    Route(
        method="GET",
        path=f"{_TASK}/logs/{{stream}}",
        guard=_READS,
        handler=log,
        media_type="text/plain",
        says="What an attempt wrote (out, err): the end, or a part by offset and limit.",
        query=LogQuery,
        answers=str,
    ),
    *routes_of(PARTS_OF_TASKS, {"outputs": outputs}),
    Route(
        method="GET",
        path=f"{_TASK}/why",
        guard=_READS,
        handler=why,
        says="Why the task does not run, in words.",
        answers=WhyOut,
    ),
)
