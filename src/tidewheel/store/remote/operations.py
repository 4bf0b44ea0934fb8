"""Turns operations into requests, and answers into values: one way for all in the catalogue.

``asks`` gives a class the methods of ``api.operations``. What travels in a form of its own
(tasks, claims, reports) has its function here. A name that no task, queue or worker can have is
in no store: such a request is answered here, with the words of a store. Some names could not
even be written into a request: half a character is no UTF-8, and a server bounds its URLs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from typing import Any, TypeVar

import msgspec

from tidewheel.api.operation import (
    Answer,
    Echo,
    Listed,
    ListedDocuments,
    Operation,
    Part,
    Place,
    ServiceName,
    resolved,
)
from tidewheel.api.operations import OPERATIONS, check_task
from tidewheel.api.wire import Fields, read, read_all
from tidewheel.core.queue import requests
from tidewheel.core.queue.requests import End
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import NO_DELAY, FixedDelays, RetryPolicy
from tidewheel.core.queue.submission import SubmitLimits, name_finding
from tidewheel.core.queue.task import SUCCEEDED_OUTPUT, NewTask, TaskId
from tidewheel.errors import NotFound, PayloadTooLarge
from tidewheel.store.remote.connection import path_of, segment
from tidewheel.store.remote.transport import Response, Transport
from tidewheel.store.rows import storable, storable_end

C = TypeVar("C", bound="ServerPart")
Document = dict[str, Any]
COUNT_DEFAULT = 100
PAGE_MAX = 1_000


class ServerPart:
    """Asks a server for operations; each service that is asked over HTTP is such a part."""

    def __init__(self, transport: Transport, limits: SubmitLimits | None = None) -> None:
        self.transport = transport
        self._limits = limits or SubmitLimits()

    async def ask(self, service: ServiceName, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
        """Asks for an operation and returns its answer as a value.

        ``name`` is that of the method, ``given`` are its arguments by name.
        """
        row = _row(service, name, given)
        if isinstance(row.answers, Listed) and row.answers.goes_on is not None:
            return await self._pages(row, *row.answers.goes_on, dict(given))
        return await self._asked(row, given)

    async def _pages(
        self, row: Operation, begins: str, last: str, given: dict[str, Any]
    ) -> list[Any]:
        """Returns as many things as are asked for, by pages: one request gives a thousand.
        The argument ``begins`` of the next page is the field ``last`` of the last thing.
        """
        found: list[Any] = []
        count = requests.page_count(given.get("count", COUNT_DEFAULT))
        while (left := count - len(found)) > 0:
            given["count"] = min(left, PAGE_MAX)
            part = await self._asked(row, given)
            found += part
            if len(part) < given["count"]:
                break
            given[begins] = getattr(part[-1], last)
        return found

    async def _asked(self, row: Operation, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
        try:
            path, query, body = _sent(row, given)
            response = await self.transport.call(
                row.method,
                path,
                query=query,
                body=body,
                again=row.may_be_repeated,
                seconds_max=None if row.seconds_max is None else 2 * row.seconds_max,
            )
        except NotFound:
            if row.missing is None:
                raise
            return row.missing()
        return _told(row.answers, response) if row.returns else None


def asks(*services: ServiceName) -> Callable[[type[C]], type[C]]:
    """Returns a class decorator that adds a method for each operation of these services.

    The method asks a server. Operations that the class itself defines stay as they are.
    """

    def complete(part: type[C]) -> type[C]:
        for row in OPERATIONS:
            if row.of in services and not hasattr(part, row.name):
                setattr(part, row.name, _method(row))
        return part

    return complete


def _method(row: Operation) -> Callable[..., Coroutine[Any, Any, Any]]:
    service, name = row.of, row.name

    async def ask(self: ServerPart, /, *args: object, **given: object) -> Any:  # noqa: ANN401 - the row says it
        taken = _rows(service, name)[0].takes
        named = dict(zip((one.name for one in taken), args, strict=False))
        return await self.ask(service, name, named | given)

    ask.__name__ = name
    return ask


@cache
def _rows(service: ServiceName, name: str) -> tuple[Operation, ...]:
    """Returns the rows of an operation in the catalogue, those that take most first."""
    found = [one for one in OPERATIONS if (one.of, one.name) == (service, name)]
    return tuple(sorted(found, key=lambda one: -len(one.takes)))


def _row(service: ServiceName, name: str, given: Mapping[str, object]) -> Operation:
    """Returns the row for these arguments: the first for whose path all is given. The last row
    is for whatever fits no other."""
    rows = [one for one in _rows(service, name) if one.fixed.items() <= given.items()]
    for row in rows[:-1]:
        if all(given.get(one.name) for one in row.takes if one.place is Place.PATH):
            return row
    return rows[-1]


def _sent(row: Operation, given: Mapping[str, Any]) -> tuple[str, Document, bytes | None]:
    path, query, body = row.path, Document(), Document()
    for one in row.takes:
        if one.name not in given or one.place is Place.CALLER:
            continue  # the server's default is that of the method
        value = given[one.name]
        if one.check is not None:
            one.check(value)
        if one.turn is not None:
            value = one.turn(value)
        if one.place is Place.PATH:
            path = path.replace(f"{{{one.key}}}", segment(str(value)))
        elif one.place is Place.QUERY:
            query[one.key] = value
        else:
            body[one.key] = dict(value) if isinstance(value, Mapping) else value
    content = msgspec.json.encode(body) if row.form[0] else None
    if content and len(content) > BODY_BYTES_MAX:
        raise PayloadTooLarge("the request", len(content), BODY_BYTES_MAX)
    return path, query, content


def _told(answers: Answer, response: Response) -> Any:  # noqa: ANN401 - any answer
    match answers:
        case Listed(_, key, kind):
            return read_all(resolved(kind), response.part(key, list[Fields]))
        case Part(_, key, parts):
            return response.part(key, parts[key])
        case Echo():
            return None
        case ListedDocuments() | str():
            return response.read(Document)
        case kind:
            return read(kind, response.read(Fields))


# Values of the core as the bodies of requests.

Body = dict[str, Any]

# How a server calls the fields of a new task, where it does not use our names.
_RENAMED = {
    "spec": "spec_text",
    "max_retries": "retries",
    **{
        name: name.removesuffix("_seconds")
        for name in (one.name for one in fields(NewTask))
        if name.endswith("_seconds")
    },
}
_WRITTEN_APART = frozenset({"id", "run", "needs", "resources", "retry", "environment"})
# Ours, and the server's; what has its default value is left out.
_TASK_FIELDS = {
    one.name: _RENAMED.get(one.name, one.name)
    for one in fields(NewTask)
    if one.name not in _WRITTEN_APART
}
_PLAIN = NewTask(id=TaskId(""), queue="")


def task_body(task: NewTask) -> Body:
    """Returns the body of a request that submits a task."""
    body: Body = {"id": task.id}
    for ours, theirs in _TASK_FIELDS.items():
        value = getattr(task, ours)
        if value != getattr(_PLAIN, ours):
            body[theirs] = value
    body["queue"] = task.queue
    if task.needs:
        body["needs"] = [
            need.task_id if need.output == SUCCEEDED_OUTPUT else [need.task_id, need.output]
            for need in task.needs
        ]
    if task.resources != _PLAIN.resources:
        body |= _resources(task.resources)
    if task.environment is not None:
        body["environment"] = task.environment
        with suppress(ValueError):  # else the server says what is accepted
            body["environment"] = json.loads(task.environment)
    return body | _retry(task.retry)


def _resources(asked: Resources) -> Body:
    said = {one.name: getattr(asked, one.name) for one in fields(Resources)}
    del said["idle_nodes"]  # which no task asks for
    if not asked.flavours:
        del said["flavours"]  # of which an earlier server knows nothing
    said["labels"] = sorted(asked.labels)
    return {name.removesuffix("_bytes"): value for name, value in said.items()}


def _retry(policy: RetryPolicy) -> Body:
    if policy == NO_DELAY:
        return {}
    if isinstance(policy, FixedDelays):
        return {"retry_delays": policy.seconds}
    return {"backoff": policy}


def amendment_body(amendment: requests.Amendment) -> Body:
    """Returns the body of an amendment; null leaves a field as it is."""
    said = {one.name: getattr(amendment, one.name) for one in fields(requests.Amendment)}
    asked = said.pop("resources")
    given = {_RENAMED.get(name, name): value for name, value in said.items()}
    return given if asked is None else given | _resources(asked)


def filter_body(which: requests.TaskFilter) -> Body:
    """Returns the body that says which tasks are meant; a field that is None matches all."""
    body = {one.name: getattr(which, one.name) for one in fields(requests.TaskFilter)}
    statuses = body.pop("statuses")
    body["status"] = None if statuses is None else [one.value for one in statuses]
    # What is not asked for is not said: an older server may not know of it.
    return {name: value for name, value in body.items() if value is not None}


def worker_body(worker: requests.NewWorker) -> Body:
    """Returns the body with which a worker registers itself and its process on its host."""
    said = {name: getattr(worker, name) for name in ("name", "queues", "slots")}
    said["capacity"] = _offer(worker.capacity)
    abilities = asdict(worker.abilities) | {"handlers": _sorted(worker.abilities.handlers)}
    return said | abilities | asdict(worker.process)


def _offer(offered: Resources) -> Body:
    """Returns what a worker has; without flavours, of which an earlier server knows nothing,
    where there are none."""
    said = {one.name: getattr(offered, one.name) for one in fields(Resources)}
    if not offered.flavours:
        del said["flavours"]
    return said


def claim_body(request: requests.ClaimRequest) -> Body:
    """Returns the body with which a worker asks for tasks."""
    return {
        "worker": request.worker,
        "n": request.count,
        "lease_s": request.lease_seconds,
        "resources": None if request.free == requests.ANY_RESOURCES else _offer(request.free),
        "commands": request.commands,
        "handlers": _sorted(request.handlers),
        "bare": request.bare,
    }


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def report_body(report: requests.Report) -> Body:
    """Returns the body of a report, without the parts of which it says nothing."""
    body: Body = {"id": report.holder.task_id, "attempt": report.holder.attempt}
    if report.started:
        body |= {"started": True, "started_seconds_ago": report.started_seconds_ago}
    if report.messages:
        body["messages"] = [_message(one) for one in report.messages]
    if report.usage:
        body["samples"] = report.usage
    if report.end is not None:
        body["end"] = _end(storable_end(report.end))
    if report.frees is not None:
        body["frees"] = report.frees
    return body


def _message(one: requests.JobMessage) -> Body:
    said: Body = {
        "number": one.number,
        "text": storable(one.text),
        "output": storable(one.output),
    }
    if one.values is not None:
        said["values_text"] = storable(one.values)
    return said


def _end(end: End) -> Body:
    body: Body = {"ending": end.ending.value, "exit_status": end.exit_status}
    if end.error is not None:
        body["error"] = {
            "code": end.error.code,
            "description": end.error.description,
            "args": msgspec.Raw(end.error.args.encode()),
        }
    if end.metrics is not None:
        body["metrics_text"] = end.metrics
    if end.values is not None:
        body["values_text"] = end.values
    return body


# Lists that are sent in chunks, each of a size that a server takes.

BODY_BYTES_MAX = 8 * 1024 * 1024  # that a server takes
FRAME_BYTES_MAX = 1024  # what stands around a list


def in_portions(parts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yields JSON values in order, as many at once as fit; one that is larger goes alone."""
    portion: list[bytes] = []
    size = 0
    for part in parts:
        if portion and size + len(part) + FRAME_BYTES_MAX > BODY_BYTES_MAX:
            yield portion
            portion, size = [], 0
        portion.append(part)
        size += len(part) + 1
    if portion:
        yield portion


def json_list(parts: Iterable[bytes]) -> bytes:
    """Returns a JSON array of values that are JSON texts already."""
    return b"[" + b",".join(parts) + b"]"


# What a request can name at all.


def is_possible(*names: str | None) -> bool:
    """Says whether a task, queue or worker could have each of these names; None is no name."""
    return all(name is None or name_finding("name", name) is None for name in names)


def is_findable(which: requests.TaskFilter) -> bool:
    """Says whether a filter can match anything."""
    names = [one.name for one in fields(requests.TaskFilter) if one.name != "matching"]
    values = (getattr(which, name) for name in names)
    return which.statuses != () and is_possible(
        *(one for one in values if isinstance(one, str))
    )


def check_tasks(task_ids: Iterable[TaskId]) -> None:
    """Raises NotFound for an id that no task can have."""
    for task_id in task_ids:
        check_task(task_id)


def task_path(task_id: TaskId, *rest: str) -> str:
    """Returns the path of a task, or of something that belongs to it."""
    check_task(task_id)
    return path_of("tasks", task_id, *rest)
