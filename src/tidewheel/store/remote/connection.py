"""Holds HTTP/1.1 connections to a server: each has one request at a time, a bounded answer.

Only this module knows how bytes become answers, and how paths below the API are written. While
nobody waits for an answer, nothing may come: bytes that nobody asked for would be taken for the
answer to the next request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote, urlencode, urlsplit

import httptools

from tidewheel.errors import BadSetting

API = "/api/v1"
SERVER_ACCEPTED = (
    "http://HOST:PORT or https://HOST, without user, password or parameters; "
    "several with commas between them"
)
_PORTS = {"http": 80, "https": 443}

Query = Mapping[str, str | int | float | bool | None]


class Address:
    """Holds where a server is: host, port, TLS or not, and perhaps a path before the API's."""

    def __init__(self, url: str) -> None:
        try:
            split = urlsplit(url)
            port = split.port
        except ValueError:
            raise BadSetting("server", url, SERVER_ACCEPTED) from None
        if split.username is not None or split.password is not None:
            raise BadSetting("server", f"{split.scheme}://…@{split.hostname}", SERVER_ACCEPTED)
        odd = split.query or split.fragment or not url.isascii() or not url.isprintable()
        if split.scheme not in _PORTS or not split.hostname or odd or " " in url:
            raise BadSetting("server", url, SERVER_ACCEPTED)
        self.secure = split.scheme == "https"
        self.host = split.hostname
        self.port = port or _PORTS[split.scheme]
        self.authority = split.netloc
        # An address that was copied from a request has the API's path in it.
        self._before = split.path.rstrip("/").removesuffix(API)
        self.url = f"{split.scheme}://{split.netloc}{self._before}"

    def target(self, path: str, query: Query | None) -> str:
        """Returns the target of a request; parameters that are None are left out."""
        given = {
            name: _text(value) for name, value in (query or {}).items() if value is not None
        }
        return f"{self._before}{API}{path}" + (f"?{urlencode(given)}" if given else "")


def addresses(text: str) -> tuple[Address, ...]:
    """Returns the addresses of servers on one store, separated by commas: any will do."""
    return tuple(Address(one.strip()) for one in text.split(","))


def path_of(*parts: str) -> str:
    """Returns a path below the API; each of its parts may hold any characters."""
    return "".join("/" + segment(part) for part in parts)


def segment(part: str) -> str:
    """Returns one part of a path with everything quoted that is special in a URL."""
    # Proxies take . and .. for folders.
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def _text(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


# One HTTP/1.1 connection.

HEAD_BYTES_MAX = 64 * 1024
BUFFERED_BYTES_MAX = 256 * 1024  # of a stream; then the server has to wait for us


class BadAnswer(Exception):
    """The answer is no HTTP, or has more bytes than we take."""


class ConnectionEnded(Exception):
    """The connection broke; ``answered`` if a part of the answer had come."""

    def __init__(self, reason: str, *, answered: bool) -> None:
        self.reason, self.answered = reason, answered
        super().__init__(reason)


class Answer:
    """Holds an HTTP answer as it arrives; the parser calls the methods that begin with ``on_``.

    An answer that arrived whole stays good if more bytes follow it, but its connection is not
    used again.
    """

    def __init__(self, bytes_max: int) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_head = self.is_whole = self.keeps_open = False
        self.begun = False  # any byte came
        self.buffered = 0
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._bytes_left, self._head_bytes = bytes_max, 0
        self.failure: Exception | None = None
        self._changed = asyncio.Event()

    # ---- the connection's side ----

    def feed(self, data: bytes) -> None:
        """Takes bytes that came from the server."""
        self.begun = True
        self._head_bytes += 0 if self.has_head else len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            # A refusal of ours inside a callback is wrapped by the parser.
            self.fail(error.__context__ if isinstance(error.__context__, BadAnswer) else error)
        if not self.has_head and self._head_bytes > HEAD_BYTES_MAX:
            self.fail(BadAnswer(f"its headers have more than {HEAD_BYTES_MAX} bytes"))
        self._changed.set()

    def end(self, reason: str) -> None:
        """Notes that the connection has ended.

        An answer that did not say its length is whole then; any other that is not, has failed.
        """
        known = {"content-length", "transfer-encoding"} & self.headers.keys()
        if self.has_head and not known:
            self.is_whole = True
        if not self.is_whole:
            self.fail(ConnectionEnded(reason, answered=self.begun))
        self._changed.set()

    def fail(self, error: BaseException) -> None:
        """Keeps why the answer cannot be read; of several reasons the first counts."""
        if self.failure is None:
            known = isinstance(error, BadAnswer | ConnectionEnded)
            self.failure = error if known else BadAnswer(f"it is not HTTP ({error})")  # type: ignore[assignment]

    # ---- the caller's side ----

    async def head(self) -> None:
        """Waits until status and headers are known.

        Raises BadAnswer or ConnectionEnded if they cannot be read.
        """
        while not self.has_head:
            await self._news()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yields the parts of the body as they arrive.

        Raises BadAnswer or ConnectionEnded if the rest cannot be read.
        """
        while True:
            while self._parts:
                part = self._parts.pop(0)
                self.buffered -= len(part)
                yield part
            if self.is_whole:
                return
            await self._news()

    async def _news(self) -> None:
        if self.failure is not None:
            raise self.failure
        await self._changed.wait()
        self._changed.clear()

    # ---- the parser's side ----

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise BadAnswer("more data follows it")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:  # noqa: PLR2004 - not the answer yet
            self.headers.clear()
            return
        self.status, self.has_head = status, True
        self.keeps_open = bool(self._parser.should_keep_alive())

    def on_body(self, body: bytes) -> None:
        self._bytes_left -= len(body)
        if self._bytes_left < 0:
            raise BadAnswer("it has more bytes than are accepted")
        self._parts.append(body)
        self.buffered += len(body)

    def on_message_complete(self) -> None:
        self.is_whole = self.has_head


class Connection(asyncio.Protocol):
    """Sends bytes to a server, and hands those that come back to the answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._paused = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.is_whole:
            self.drop()
            return
        self._answer.feed(data)
        if self._answer.buffered > BUFFERED_BYTES_MAX and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._answer is not None:
            self._answer.end(str(exc) if exc else "the server closed the connection")

    def send(self, request: bytes, bytes_max: int) -> Answer:
        """Sends a request and returns its answer, which arrives by and by."""
        assert self._answer is None, "one request at a time"
        self._answer = answer = Answer(bytes_max)
        if self._transport is None or self._transport.is_closing():
            answer.end("the server closed the connection")
        else:
            self._transport.write(request)
        return answer

    async def body(self) -> AsyncIterator[bytes]:
        """Yields the body of the answer; if nobody takes it, the server has to wait."""
        assert self._answer is not None
        async for part in self._answer.parts():
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            yield part

    def rest(self, now: float) -> bool:
        """Ends a request; says whether the connection can be used for another one."""
        answer, self._answer = self._answer, None
        if answer is None or not (answer.is_whole and answer.keeps_open) or answer.failure:
            self.drop()
        self.idle_since = now
        return self.is_open

    def drop(self) -> None:
        """Aborts the connection at once; what was not sent yet is lost."""
        if self._transport is not None:
            self._transport.abort()


# Connections that are kept open between requests.

CONNECTIONS_MAX = 64
IDLE_MAX = 8
IDLE_SECONDS_MAX = 15.0  # servers close what was silent for 30


class Pool:
    """Keeps the connections of one event loop to a server, and opens new ones as needed."""

    def __init__(
        self, address: Address, context: ssl.SSLContext | None, seconds_max: float
    ) -> None:
        self._address, self._context = address, context
        self._seconds_max = seconds_max  # for a connection
        self._idle: list[Connection] = []
        self._is_closed = False
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        self.loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def connection(self, *, fresh: bool) -> AsyncIterator[tuple[Connection, bool]]:
        """Yields a connection for a request, and whether it was kept from an earlier one."""
        async with self._places:
            kept = None if fresh else self._kept()
            connection = kept or await self.connect()
            try:
                yield connection, kept is not None
            finally:
                may_rest = not self._is_closed and len(self._idle) < IDLE_MAX
                if connection.rest(self.loop.time()) and may_rest:
                    self._idle.append(connection)
                else:
                    connection.drop()

    async def connect(self) -> Connection:
        """Opens a new connection; raises OSError or TimeoutError if that fails."""
        async with asyncio.timeout(self._seconds_max):
            _, connection = await self.loop.create_connection(
                Connection,
                self._address.host,
                self._address.port,
                ssl=self._context,
                server_hostname=self._address.host if self._context else None,
            )
        return connection

    def close(self) -> None:
        """Closes the connections that rest; those in use are closed when given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().drop()

    def _kept(self) -> Connection | None:
        """Returns the connection used last, or None. One that the server may be about to close
        is dropped."""
        while self._idle:
            connection = self._idle.pop()
            idle_seconds = self.loop.time() - connection.idle_since
            if connection.is_open and idle_seconds < IDLE_SECONDS_MAX:
                return connection
            connection.drop()
        return None
