"""Sends requests to a tidewheel server, with time-outs; raises problems as tidewheel's errors.

A request is repeated by itself in two cases only: the server turned it away without doing
anything and said when to come back, or a connection that was kept open turned out to be closed
before a byte of the answer came, and the request is one that may be done twice.

Several servers on one store may be named. One is spoken to until it fails; then the next one,
at once if nothing was sent, else by the next request.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from tidewheel import errors
from tidewheel.errors import BadSetting, Refused, StoreUnreachable, TidewheelError, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.store.remote.connection import (
    Address,
    BadAnswer,
    Connection,
    ConnectionEnded,
    Pool,
    Query,
    addresses,
)

EVENT_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Holds one event of a stream of server-sent events."""

    event: str
    data: str
    id: str | None = None  # the last one that was sent, for Last-Event-ID; None: none ever was

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return msgspec.json.decode(self.data)


class EventReader:
    """Makes server-sent events of the bytes of a stream, in whatever pieces they come."""

    def __init__(self, last_event_id: str | None = None) -> None:
        self._rest = b""
        self._name, self._id = "", last_event_id
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        """Yields the events that these bytes complete; each line ends with a line feed."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        size = len(self._rest) + sum(map(len, self._data))
        if size > EVENT_BYTES_MAX:
            raise Unavailable(
                f"the server sent an event with more than {EVENT_BYTES_MAX} bytes, which is "
                "not accepted"
            )
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode(errors="replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # a comment, the advice to come back later, or what we do not know
        return None

    def _complete(self) -> ServerEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        if not data:
            return None
        return ServerEvent(name or "message", "\n".join(data), self._id)


# Requests.

CALL_SECONDS_MAX = 40.0  # a server answers, or gives up, within 30
CONNECT_SECONDS_MAX = 10.0
CONNECT_SECONDS_OF_SEVERAL = 3.0  # where another server may be nearer
SILENCE_SECONDS_MAX = 45.0  # of a stream; servers send a sign of life every few seconds
ANSWER_BYTES_MAX = 256 * 1024 * 1024
STREAM_BYTES_MAX = 2**62
TURNS_MAX = 3
TOO_MANY = 429
UNAUTHENTICATED = 401
BAD_FROM = 300

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Response:
    """Holds an answer whose status means success."""

    status: int
    headers: dict[str, str]
    body: bytes

    def read(self, kind: type[Kind]) -> Kind:
        """Returns the body as a value of this type; leaves out what the type does not know."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(
                f"the server's answer is not understood ({error}); does the server have the "
                "same version as this program?"
            ) from error

    def part(self, name: str, kind: type[Kind]) -> Kind:
        """Returns one field of the body as a value of this type; a missing field is null."""
        part = self.read(dict[str, msgspec.Raw]).get(name, msgspec.Raw(b"null"))
        return Response(self.status, self.headers, bytes(part)).read(kind)

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return self.read(object)


class Transport:
    """Speaks to one store's servers with one token; used in one event loop at a time.

    ``origin`` says where the token comes from, for messages. ``ca`` is a file with the
    certificates to believe instead of the system's.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        origin: str = "",
        ca: str | None = None,
        seconds_max: float = CALL_SECONDS_MAX,
    ) -> None:
        self._addresses = addresses(url)
        self._at = 0  # which of them is spoken to
        odd = token is not None and not (token.isascii() and token.isprintable() and token)
        if odd or (token and " " in token):
            raise BadSetting(
                origin or "token", "…", "a token that tidewheel token create printed"
            )
        self._token, self._origin = token, origin
        self._context = _context(ca) if any(one.secure for one in self._addresses) else None
        self._seconds_max = seconds_max
        self._pool: Pool | None = None

    @property
    def url(self) -> str:
        """Returns the address of the server, as messages name it."""
        return self._address.url

    @property
    def _address(self) -> Address:
        return self._addresses[self._at]

    async def call(  # noqa: PLR0913 - each by name
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        key: str | None = None,
        again: bool | None = None,
        seconds_max: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Sends a request and returns the good answer; raises a bad one as an error.

        ``path`` is below the API. ``body`` is bytes, or something to be written as JSON.
        ``key`` is an idempotency key. ``again``: the request may be done twice; by default
        what only looks, and what has a key.
        """
        repeatable = again if again is not None else method == "GET" or key is not None
        given = {**(headers or {}), **({} if key is None else {"idempotency-key": key})}
        seconds = self._seconds_max if seconds_max is None else seconds_max
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        content = b"" if body is None else content

        asked = self._at

        async def ask() -> Response:
            nonlocal asked
            asked = self._at
            target = self._address.target(path, query)
            request = self._request(method, target, content, given)
            return await self._answered(request, repeatable, seconds)

        try:
            async with asyncio.timeout(seconds):
                return await self._of_any_server(ask)
        except TimeoutError:
            silent = self._unreachable(f"no answer within {seconds:g} s")
            self._turn_from(asked)
            raise silent from None

    async def events(
        self, path: str, *, query: Query | None = None, last_event_id: str | None = None
    ) -> AsyncIterator[ServerEvent]:
        """Yields a stream's events until it ends; raises Unavailable if it breaks or stalls."""
        headers = {"accept": "text/event-stream"}
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id
        reader = EventReader(last_event_id)
        connection = await self._of_any_server(self._connected)
        request = self._request("GET", self._address.target(path, query), b"", headers)
        try:
            async with aclosing(self._stream(connection, request)) as parts:
                while (part := await _within(SILENCE_SECONDS_MAX, parts)) is not None:
                    for event in reader.feed(part):
                        yield event
        except TimeoutError:
            raise self._unreachable(f"silent for {SILENCE_SECONDS_MAX:g} s") from None
        finally:
            connection.drop()

    async def close(self) -> None:
        """Closes every connection; a second call does nothing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    # ---- asking ----

    async def _of_any_server(self, ask: Callable[[], Awaitable[Kind]]) -> Kind:
        """Returns the answer of the first server that can be connected to, in their order.

        It begins with the server that was spoken to last. It raises StoreUnreachable if none
        can be connected to, or if the one that can breaks off; then the next request goes to
        the next server.
        """
        for _ in self._addresses[1:]:
            asked = self._at
            try:
                return await ask()
            except StoreUnreachable as error:
                self._turn_from(asked)
                if not isinstance(error, _NotConnected):
                    raise
        asked = self._at
        try:
            return await ask()
        except StoreUnreachable:
            self._turn_from(asked)
            raise

    def _turn_from(self, asked: int) -> None:
        """Speaks to the next server from now on, unless another request has turned already."""
        if len(self._addresses) == 1 or asked != self._at:
            return
        self._at = (self._at + 1) % len(self._addresses)
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _request(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str]
    ) -> bytes:
        lines = {
            "host": self._address.authority,
            "accept": "application/json",
            "user-agent": "tidewheel",
            **headers,
        }
        if self._token is not None:
            lines["authorization"] = f"Bearer {self._token}"
        if method != "GET" or body:
            lines["content-length"] = str(len(body))
            lines.setdefault("content-type", "application/json")
        for name, value in lines.items():
            if not (value.isascii() and value.isprintable()):
                raise BadSetting(name, value, "printable ASCII characters")
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {target} HTTP/1.1\r\n{text}\r\n".encode() + body

    async def _answered(self, request: bytes, repeatable: bool, seconds: float) -> Response:
        """Returns an answer whose status means success; raises the error of any other.

        Where the server has no room for a moment, it waits as long as the server says and asks
        again, at most TURNS_MAX times in all.
        """
        end = asyncio.get_running_loop().time() + seconds
        for turn in range(1, TURNS_MAX + 1):
            response = await self._exchanged(request, repeatable)
            if response.status < BAD_FROM:
                return response
            error = self._error(response)
            said = response.headers.get("retry-after", "")
            wait = float(said) if said.isascii() and said.isdigit() else 1.0
            left = end - asyncio.get_running_loop().time()
            # These two were turned away at the door: nothing was done.
            may_wait = response.status == TOO_MANY or error.code == "overloaded"
            if turn == TURNS_MAX or not may_wait or wait > left / 2:
                raise error
            await asyncio.sleep(wait)
        raise AssertionError("the last turn answers or raises")

    async def _exchanged(self, request: bytes, repeatable: bool) -> Response:
        """Returns the answer, whatever its status; raises StoreUnreachable if none comes.

        A request that may be done twice is sent once more if a connection that was kept open
        is closed, and no byte of an answer came.
        """
        kept = False
        for fresh in (False, True):
            try:
                async with self._connections().connection(fresh=fresh) as (connection, kept):
                    answer = connection.send(request, ANSWER_BYTES_MAX)
                    await answer.head()
                    body = b"".join([part async for part in connection.body()])
                    return Response(answer.status, answer.headers, body)
            except ConnectionEnded as ended:
                if not (kept and repeatable) or ended.answered:
                    raise self._unreachable(ended.reason) from None
            except BadAnswer as bad:
                raise self._unreachable(f"its answer is refused: {bad}") from None
            except OSError as error:
                raise self._no_connection(error) from error
        raise AssertionError("a fresh connection answers or raises")

    async def _connected(self) -> Connection:
        try:
            return await self._connections().connect()
        except OSError as error:
            raise self._no_connection(error) from error

    async def _stream(self, connection: Connection, request: bytes) -> AsyncGenerator[bytes]:
        answer = connection.send(request, STREAM_BYTES_MAX)
        try:
            await answer.head()
            if answer.status >= BAD_FROM:
                body = b"".join([part async for part in connection.body()])
                raise self._error(Response(answer.status, answer.headers, body))
            async for part in connection.body():
                yield part
        except (ConnectionEnded, BadAnswer) as ended:
            raise self._unreachable(f"the stream ended: {ended}") from None

    def _connections(self) -> Pool:
        if self._pool is None or self._pool.loop is not asyncio.get_running_loop():
            # Those of a loop that is over are gone with it.
            context = self._context if self._address.secure else None
            self._pool = Pool(self._address, context, self._connect_seconds_max)
        return self._pool

    @property
    def _connect_seconds_max(self) -> float:
        return CONNECT_SECONDS_OF_SEVERAL if self._addresses[1:] else CONNECT_SECONDS_MAX

    # ---- errors ----

    def _error(self, response: Response) -> TidewheelError:
        error = error_of(response.status, response.body, self.url)
        if response.status == UNAUTHENTICATED:
            error.args = (self._not_known(),)
        return error

    def _not_known(self) -> str:
        do = (
            "ask an admin of the server for a token (tidewheel token create NAME --scope "
            "SCOPE), then set TIDEWHEEL_TOKEN or write the token into the file token of your "
            f"state directory; where people sign in by name: tidewheel login {self.url}"
        )
        if self._token is None:
            return f"the server {self.url} needs a token and none was given; {do}"
        source = f" from {self._origin}" if self._origin else ""
        return (
            f"the server {self.url} does not accept the token{source}: it is unknown there, "
            f"expired or revoked; {do}"
        )

    def _no_connection(self, error: OSError) -> StoreUnreachable:
        if isinstance(error, ssl.SSLCertVerificationError):
            return _NotConnected(
                f"the certificate of the server {self.url} is not trusted "
                f"({error.verify_message}); if it is the right server, name a file with the "
                "certificate of its authority: TIDEWHEEL_CA=FILE"
            )
        late = f"no connection within {self._connect_seconds_max:g} s"
        reason = late if isinstance(error, TimeoutError) else _reason(error)
        return _NotConnected(str(self._unreachable(reason)))

    def _unreachable(self, reason: str) -> StoreUnreachable:
        return StoreUnreachable(
            f"the server {self.url} does not answer ({reason}); start it (tidewheel up, or "
            "tidewheel server), or give the address of another: --server URL"
        )


class _NotConnected(StoreUnreachable):
    """Nothing was sent."""


async def _within(seconds: float, parts: AsyncIterator[bytes]) -> bytes | None:
    """Returns the next part, or None behind the last; raises TimeoutError if it is late."""
    async with asyncio.timeout(seconds):
        return await anext(parts, None)


def _reason(error: OSError) -> str:
    """Returns the reason of an error in words, without the addresses that were tried."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _context(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl's own errors are such, too
        accepted = "a file with certificates in PEM form"
        raise BadSetting("TIDEWHEEL_CA", ca, f"{accepted} ({error.strerror})") from error


# Problems: the error that an answer stands for, as server/errors.py told it.
#
# The class follows from the code, its attributes from the details. A code that is known to
# servers only stays what it is by its status: refused, or unavailable.

TRY_LATER = frozenset({408, 429})
SERVERS_FAULT = 500
MESSAGE_LENGTH_MAX = 2_000
INTERNAL = "internal"  # a bug, which somebody has to find in a log
# What a server says of fields and paths that came with a later version than its own.
UNKNOWN_THERE = (
    *("there is no field ", "there is no parameter "),
    "there is nothing at this path",
)
UPGRADE_IT = "if the server is older than this program, upgrade the server first"


class ReceivedProblem(msgspec.Struct):
    """Holds the fields of an answer in application/problem+json."""

    code: str = ""
    message: str = ""
    status: int = 0
    id: str = ""  # the server's log has the same
    findings: tuple[Any, ...] = ()  # texts, or of a definition with places
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def error_of(status: int, body: bytes, url: str) -> TidewheelError:
    """Returns the error that an answer with a bad status stands for."""
    try:
        problem = msgspec.json.decode(body, type=ReceivedProblem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = ReceivedProblem()
    if not problem.code and _is_passing(status):  # it is not from a tidewheel server
        return Unavailable(f"a proxy in front of the server {url} answered {status}; try again")
    if not problem.code:
        return Refused(
            f"{url} answered with status {status}, but not as a tidewheel server does; "
            "give the address of a tidewheel server: --server URL"
        )
    problem.status = problem.status or status
    if problem.code == INTERNAL:
        problem.message += f"; the log of {url} has the details under {problem.id}"
    if any(words in problem.message for words in UNKNOWN_THERE):
        problem.message += f"; {UPGRADE_IT}"
    return error_from(problem)


def is_unknown_there(refused: Refused) -> bool:
    """Says whether a server refused something because it may be older than this program."""
    return str(refused).endswith(UPGRADE_IT)


def error_from(problem: ReceivedProblem) -> TidewheelError:
    """Returns the error that a problem describes, of the nearest class known here."""
    root = Unavailable if _is_passing(problem.status) else Refused
    details = {name: _frozen(value) for name, value in problem.details.items()}
    error = next(_built(problem.code, root, details), None) or root()
    error.args = (problem.message[:MESSAGE_LENGTH_MAX],)
    if problem.code not in (error.code, "cancelled"):
        error.code = problem.code  # what only a server says
        vars(error)["findings"] = problem.findings
    return error


def refusal_from(problem: ReceivedProblem | None) -> Refused | None:
    """Returns the refusal of one thing of many in a request; None if that thing was done."""
    refused = None if problem is None else error_from(problem)
    assert refused is None or isinstance(refused, Refused), refused
    return refused


def _built(
    code: str, root: type[TidewheelError], details: dict[str, Any]
) -> Iterator[TidewheelError]:
    """Yields the problem as an error of each class that its code stands for. The most special
    comes first; a class is left out if the problem lacks an argument of it."""
    for kind in _classes(code):
        needed, known = _arguments(cast("Hashable", kind))
        if issubclass(kind, root) and needed <= details.keys():
            yield kind(**{name: details[name] for name in known if name in details})


def _is_passing(status: int) -> bool:
    """Says whether the same request may succeed later, if only because a bug was mended."""
    return status in TRY_LATER or status >= SERVERS_FAULT


def _classes(code: str) -> tuple[type[TidewheelError], ...]:
    """Returns the class that a code names, then its base classes, the nearest first."""
    named = "wrong_status" if code == "cancelled" else code
    listed = [one for one in vars(errors).values() if isinstance(one, type)]
    kinds = [one for one in listed if issubclass(one, TidewheelError) and one.code == named]
    return tuple(
        one for kind in kinds[-1:] for one in kind.__mro__ if issubclass(one, TidewheelError)
    )


@cache
def _arguments(kind: type[TidewheelError]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Returns the arguments that an error's constructor must have, and those that it takes."""
    if kind.__init__ is TidewheelError.__init__:
        return frozenset(), ()
    taken = inspect.signature(kind).parameters.values()
    needed = frozenset(one.name for one in taken if one.default is inspect.Parameter.empty)
    return needed, tuple(one.name for one in taken)


def _frozen(value: Any) -> Any:  # noqa: ANN401 - JSON
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
