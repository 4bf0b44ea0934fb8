"""Asks a server for the operations of ``api.operations``: encode, call, decode for all alike.

A name that no task, queue or worker can have is in no store: such a request is answered here,
with the words of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from tidewheel.api.operations import (
    OPERATIONS,
    Answer,
    Echo,
    Listed,
    Listing,
    Operation,
    Part,
    Place,
    Service,
    resolved,
)
from tidewheel.api.wire import Fields, read, read_all
from tidewheel.core.queue.requests import page_count
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.errors import NotFound, PayloadTooLarge
from tidewheel.store.remote.connection import segment
from tidewheel.store.remote.encode import BODY_BYTES_MAX
from tidewheel.store.remote.transport import Response, Transport

P = ParamSpec("P")
R = TypeVar("R")
Document = dict[str, Any]
COUNT_DEFAULT = 100
PAGE_MAX = 1_000


class ServerPart:
    """Speaks to one server."""

    def __init__(self, transport: Transport, limits: SubmitLimits | None = None) -> None:
        self.transport = transport
        self._limits = limits or SubmitLimits()

    async def ask(self, service: Service, name: str, given: Mapping[str, object]) -> Any:  # noqa: ANN401 - the row says it
        """Asks for an operation by the name of its method, with its arguments by name."""
        row = next(one for one in _rows(service, name) if _is_meant(one, given))
        if isinstance(row.answers, Listed) and row.answers.goes_on is not None:
            return await self._pages(row, *row.answers.goes_on, dict(given))
        return await self._asked(row, given)

    async def _pages(
        self, row: Operation, begins: str, last: str, given: dict[str, Any]
    ) -> list[Any]:
        """Returns as many things as are asked for: one request gives at most a thousand."""
        found: list[Any] = []
        count = page_count(given.get("count", COUNT_DEFAULT))
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
        return _told(row.answers, response)


def asks(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
    service: Service = Service.STORE,
) -> Callable[Concatenate[ServerPart, P], Coroutine[Any, Any, R]]:
    """Returns a method that asks a server for what this method of a port does."""
    name = method.__name__

    async def ask(self: ServerPart, /, *args: P.args, **given: P.kwargs) -> R:
        taken = _rows(service, name)[0].takes
        named = dict(zip((one.name for one in taken), args, strict=False))
        found: R = await self.ask(service, name, named | given)
        return found

    return ask


@cache
def _rows(service: Service, name: str) -> tuple[Operation, ...]:
    """Returns the rows of an operation, those first that name more in their path."""
    found = [one for one in OPERATIONS if (one.of, one.name) == (service, name)]
    return tuple(sorted(found, key=lambda one: -len(one.takes)))


def _is_meant(row: Operation, given: Mapping[str, object]) -> bool:
    """Says whether a row is for these arguments: all of its path is given."""
    named = [given.get(one.name) for one in row.takes if one.place is Place.PATH]
    return "" not in named and None not in named and row.fixed.items() <= given.items()


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
        case Listing() | str():
            return response.read(Document)
        case kind:
            return read(kind, response.read(Fields))
