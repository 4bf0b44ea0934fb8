"""Answers questions about tasks: pages of them, one of them, and what belongs to it."""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tidewheel.api.log_lines import FileHits
from tidewheel.api.operation import READ
from tidewheel.api.operations import HISTORY, PARTS_OF_TASKS, Count, Number
from tidewheel.api.tasks import EdgeView, Task
from tidewheel.api.views import TASK_LOG_QUERY
from tidewheel.api.wire import answer, json_value, out_type, part_type, write
from tidewheel.client.async_client import AsyncClient
from tidewheel.client.fields import Filters, explained, task_filter
from tidewheel.client.log_places import STREAMS, attempt_log
from tidewheel.core.queue.access import run_name
from tidewheel.core.queue.requests import PAGE_COUNT_MAX, KeysetPage, TaskFilter
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import NotFound
from tidewheel.exact_json import encode
from tidewheel.server.call import Answer, Call, covered_page
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import routes_of
from tidewheel.server.resources.logs import PartQuery, log_answer
from tidewheel.server.routes import READS_TASK, Needs, RouteList, queue_asked
from tidewheel.server.validation import In, field_names
from tidewheel.services.explain import reasons
from tidewheel.vocabulary import FIELD_WORDS, Vocabulary, banyan_task, scylla_task

SPEC = ("spec", "spec_text")  # left out of lists unless it is asked for: it may be large
ROUTES = RouteList()

# The conditions that select tasks: a name, a figure, or any of several statuses.
_SIZE_MIN = Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None
_NAMES: list[Any] = [(name, str | None, None) for name in explained(Filters)]
_FIGURES: list[Any] = [
    ("estimated_runtime_seconds_max", float | None, None),
    ("memory_bytes_min", _SIZE_MIN, None),
    ("jobs", bool | None, None),  # false leaves out jobs of runs
]
FilterIn: Any = msgspec.defstruct(
    "FilterIn",
    [("status", str | list[str] | None, None), *_NAMES, *_FIGURES],
    bases=(In,),
    namespace={"__doc__": "The conditions that select tasks; a task must meet all of them."},
)


class TaskQuery(In):
    """Names the vocabulary of the answer, and the fields that are shown."""

    vocabulary: Vocabulary = Vocabulary.TIDEWHEEL
    fields: str | None = None  # names, separated by commas


TaskListQuery: Any = msgspec.defstruct(
    "TaskListQuery",
    [
        ("status", str | None, None),  # any of several, separated by commas, in any vocabulary
        *_NAMES,
        ("run", str | None, None),
        *_FIGURES,
        ("limit", Count, 100),
        ("before", Number | None, None),
    ],
    bases=(TaskQuery,),
    namespace={"__doc__": "The parameters that select tasks; a task must match all of them."},
)
TaskPart = part_type(
    "TaskPart", "A task with some of its fields, or with the fields of Scylla or Banyan.", Task
)
TaskPage = answer(
    "TaskPage",
    "Tasks, newest first; send ``next`` as ``before`` to get the next page.",
    tasks=list[TaskPart],  # type: ignore[valid-type]
    next=int | None,
)


class LogQuery(PartQuery):
    """Names the attempt whose log is asked for; by default the last."""

    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


def filter_of(given: In, **instead: Any) -> TaskFilter:  # noqa: ANN401 - as `Filters` has them
    """Returns the store's filter for a request's conditions; ``instead`` replaces some."""
    asked = {name: getattr(given, name) for name in field_names(FilterIn)}
    return task_filter(**{**asked, **instead})


@ROUTES.add(
    "GET /tasks",
    Needs(READ, queue_asked),
    "Tasks, newest first, page by page; with their specs only if `fields` names `spec`.",
    TaskPage,
    query=TaskListQuery,
)
async def list_tasks(call: Call) -> object:
    query = call.query
    which = filter_of(
        query,
        status=query.status.split(",") if query.status else None,
        queue=await _queue_filter(call, query.run, query.queue),
        vocabulary=query.vocabulary,
    )
    shown, following = await covered_page(
        lambda before, count: call.store.list_tasks(
            which, KeysetPage(count=count, before=before)
        ),
        lambda task: call.covers_queue(task.queue),
        attrgetter("seq"),
        query.limit,
        query.before,
    )
    fields = _fields(query, leave_out=SPEC)
    told = [await _document(call, task, query.vocabulary, fields) for task in shown]
    return _told({"tasks": told, "next": following}, query.vocabulary)


async def _queue_filter(call: Call, name: str | None, queue: str | None) -> str | None:
    """Returns the queue of the named run, else the queue that was given, which may be None."""
    if name is None:
        return queue
    run = await call.run_called(name)
    call.require((run_name(run.name),))  # before anything is said of it
    if queue not in (None, run.queue):
        raise BadRequest(
            [f"the tasks of run {run.name} are in queue {run.queue!r}; leave out queue"]
        )
    return run.queue


@ROUTES.add("GET /tasks/{id}", READS_TASK, "One task.", TaskPart, query=TaskQuery)
async def get_task(call: Call) -> object:
    query = call.query_as(TaskQuery)
    task = call.task or await call.found_task()
    if query.fields is None and query.vocabulary is Vocabulary.TIDEWHEEL:
        return write(task)  # as nearly all ask for it
    told = await _document(call, task, query.vocabulary, _fields(query))
    return _told(told, query.vocabulary)


def _fields(query: TaskQuery, leave_out: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the names of the fields that are shown; raises BadRequest for an unknown name."""
    known = _FIELDS[query.vocabulary]
    if query.fields is None:
        return tuple(name for name in known if name not in leave_out) if leave_out else known
    wanted = tuple(dict.fromkeys(name.strip() for name in query.fields.split(",")))
    if unknown := [name for name in wanted if name not in known]:
        accepted = ", ".join(known)
        raise BadRequest([f"there is no field {unknown[0][:100]!r}; expected {accepted}"])
    return wanted


_OUR_FIELDS = {
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
_FIELDS = {
    one: tuple(FIELD_WORDS[one].get(name, name) for name in names)
    for one, names in _OUR_FIELDS.items()
}


async def _document(
    call: Call, task: Task, vocabulary: Vocabulary, fields: tuple[str, ...]
) -> object:
    """Returns a task in the words of a vocabulary; fields not asked for are not looked up."""
    if vocabulary is Vocabulary.TIDEWHEEL:
        out = write(task)
        if fields is _FIELDS[vocabulary]:  # all, in their order
            return out
        told = {name: getattr(out, name) for name in fields}
        return {name: value for name, value in told.items() if value is not msgspec.UNSET}
    speak = _scylla if vocabulary is Vocabulary.SCYLLA else _banyan
    whole = await speak(call, task, frozenset(fields))
    return {name: whole[name] for name in fields}


async def _scylla(call: Call, task: Task, fields: frozenset[str]) -> dict[str, object]:
    known = "history" in fields
    return scylla_task(task, await AsyncClient(call.store).history(task.id) if known else ())


async def _banyan(call: Call, task: Task, fields: frozenset[str]) -> dict[str, object]:
    store, known = call.store, bool({"execution_info", "history"} & fields)
    return banyan_task(
        task,
        await store.attempts(task.id) if known or "state" in fields else (),
        await _edges_seen(call, task) if "continuations" in fields else (),
        await store.usage(task.id) if known else (),
    )


def _told(document: object, vocabulary: Vocabulary) -> object:
    """Returns the answer; documents of Scylla and Banyan hold decoded JSON, whose numbers may
    be of any size, and so are encoded here."""
    if vocabulary is Vocabulary.TIDEWHEEL:
        return document
    return Answer(body=encode(document))


async def edges(call: Call) -> object:
    return write({"edges": await _edges_seen(call, await call.found_task())})


async def _edges_seen(call: Call, task: Task) -> list[EdgeView]:
    """Returns the edges of a task to others that the caller may see."""
    found = await call.store.edges(task.id)
    if call.grant.covers_everything:
        return found
    ids = list({end for edge in found for end in (edge.parent, edge.child)})
    seen: set[TaskId] = set()
    for start in range(0, len(ids), PAGE_COUNT_MAX):
        with suppress(NotFound):  # one was removed at this moment: the next look shows the rest
            seen |= {
                one.id
                for one in await call.store.get_many(ids[start : start + PAGE_COUNT_MAX])
                # A job sees what is in its own queue.
                if one.queue == task.queue or call.covers_queue(one.queue)
            }
    return [edge for edge in found if {edge.parent, edge.child} <= seen]


async def outputs(call: Call) -> object:
    task_id = TaskId(call.path["id"])
    found = await call.store.outputs(task_id)
    values = await call.store.values_of([task_id])
    return write({"outputs": found, "values": json_value(values.get(task_id))})


ROUTES += routes_of([HISTORY])


@ROUTES.add(
    "GET /tasks/{id}/logs/{stream}",
    READS_TASK,
    "The end of a log of an attempt (`out` or `err`), or the part that `offset` and `limit` "
    "select.",
    str,
    query=LogQuery,
    media_type="text/plain",
)
async def log(call: Call) -> object:
    """Answers with the log of the last attempt, or of the one that the query names, if this
    host has it."""
    query = call.query_as(LogQuery)
    root, path, what = await _log_place(call, query.attempt)
    return await log_answer(root, path, query, what)


@ROUTES.add(
    "GET /tasks/{id}/logs/{stream}/search",
    READS_TASK,
    "Search a log for lines that contain a text, or have at least a level. Each request "
    "searches one part of the file; its `cursor` continues the search.",
    FileHits,
    query=TASK_LOG_QUERY,
)
async def search_log(call: Call) -> object:
    from tidewheel.views.log_search import search_file  # noqa: PLC0415 - loads the core

    root, path, what = await _log_place(call, call.query.attempt)
    found = await search_file(root, path, call.query.arguments())
    if found is None:
        raise NotFound("log", what)
    return found


async def _log_place(call: Call, attempt: int | None) -> tuple[Path, Path, str]:
    """Returns where the log of an attempt is that a request names, None for the last one:
    below which folder, which file, and what it is called."""
    task, stream = await call.found_task(), call.path["stream"]
    if stream not in STREAMS:
        raise NotFound("stream", stream)
    home = call.server.settings.state_directory
    number = attempt or max(1, task.attempt)
    path = await attempt_log(call.store, home, (task.id, task.seq), stream, number)
    root = home / path.relative_to(home).parts[0]
    return root, path, f"{task.id} {stream} of attempt {number}"


async def why(call: Call) -> object:
    """Answers with the reasons why a task does not run."""
    task = await call.found_task()
    return {"id": task.id, "reasons": await reasons(call.store, task.id, call.readable)}


async def inputs(call: Call) -> object:
    """Answers with the values of the needed tasks that the caller may see; a job also sees what
    is in its own queue."""
    task = await call.found_task()
    found = await call.store.inputs(task.id)
    seen = [one for one in found if one.queue == task.queue or call.covers_queue(one.queue)]
    return write({"inputs": seen})


ROUTES += routes_of(
    PARTS_OF_TASKS, {"outputs": outputs, "inputs": inputs, "edges": edges, "why": why}
)
