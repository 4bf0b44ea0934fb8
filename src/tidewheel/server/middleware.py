"""Checks size, host, origin and speed of every request, and adds security headers to answers.

It also routes by the path as it was sent: a slash within an id, written %2F, is no border
between two parts of the path.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache, partial
from itertools import chain
from typing import Any, ClassVar

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from tidewheel.config import ServerSettings
from tidewheel.server.call import JsonResponse, Request
from tidewheel.server.errors import plain, random_id
from tidewheel.server.load_shedding import ConnectionLimit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Other sites hear nothing. With `no-referrer` a browser hides from our own form, too, where
    # it came from, and the login would be refused as that of another site.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_SECURITY_HEADERS = [(name.encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]
_SECURITY_NAMES = frozenset(name for name, _ in _SECURITY_HEADERS)
# Sent by TLS: a browser comes by TLS from then on, for a year. Not for this machine, whose name
# other programs share, on other ports and without TLS.
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}
HeaderLine = tuple[bytes, bytes]


@lru_cache(maxsize=1024)  # clients say the same with every request
def host_name(header: str) -> str:
    """Returns the name in a Host header, without its port; "" if there is none."""
    found = _HOST.fullmatch(header)
    return "" if found is None else (found[1] or found[2]).lower()


def _origin(scheme: str, host: str) -> tuple[str, str, str]:
    """Returns scheme, name and port, with the scheme's own port where none is written."""
    found = _HOST.fullmatch(host)
    port = found[3] if found is not None else None
    return scheme, host_name(host), port or _PORTS.get(scheme, "")


def _lines(headers: Iterable[HeaderLine]) -> bytes:
    return b"".join([b"%b: %b\r\n" % line for line in headers])


_SECURITY_LINES = _lines(_SECURITY_HEADERS)


def _security_headers(request: Request, headers: Iterable[HeaderLine]) -> list[HeaderLine]:
    """Returns the headers that every answer has, except for those that this one has already."""
    named = {name for name, _ in headers}
    if not request.is_secure and named.isdisjoint(_SECURITY_NAMES):
        return _SECURITY_HEADERS
    added = [one for one in _SECURITY_HEADERS if one[0] not in named]
    is_strict = request.is_secure and STRICT_TRANSPORT[0] not in named
    if is_strict and host_name(request.headers.get("host", "")) not in LOOPBACK:
        added.append(STRICT_TRANSPORT)
    return added


# Answers a request, whatever becomes of it.
Answering = Callable[[Request], Awaitable[Response]]


class Middleware:
    """Refuses bad requests before the application; adds security headers to answers."""

    def __init__(self, answer: Answering, settings: ServerSettings) -> None:
        self._answer, self._settings = answer, settings
        # The names by which this server may be called (DNS rebinding uses others).
        own = (settings.host,) if settings.host not in ("0.0.0.0", "::", "") else ()
        known = (*LOOPBACK, *own, *settings.hosts)
        self._hosts = frozenset(name.lower() for name in known)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        scope["path"], scope["root_path"] = raw.decode("latin-1"), ""
        request = Request(scope, receive, send)
        if refused := self._refusal(request, raw):
            response = plain(*refused, random_id())
        else:
            response = await self._answer(request)
        # Taken away, because it knows the scope: both would be left to the garbage collector.
        exchange = scope.pop(EXCHANGE, None)
        if type(response).__call__ is Response.__call__ and response.background is None:
            is_usual = isinstance(response, JsonResponse) and not request.is_secure
            added = (
                _SECURITY_HEADERS
                if is_usual
                else _security_headers(request, response.raw_headers)
            )
            if exchange is None or not exchange.send(response, added):
                response.raw_headers += added
                await response(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += _security_headers(request, message["headers"])
            await send(message)

        await response(scope, receive, send_guarded)

    def _refusal(self, request: Request, path: bytes) -> tuple[int, str, str] | None:
        settings, scope, first = self._settings, request.scope, request.first
        url = len(path) + len(scope["query_string"])
        if url > settings.url_bytes_max:
            return 414, "url_too_long", f"the URL has more than {settings.url_bytes_max} bytes"
        size = len(b"".join(chain.from_iterable(scope["headers"])))
        if size > settings.header_bytes_max:
            accepted = settings.header_bytes_max
            return 431, "headers_too_large", f"the headers have more than {accepted} bytes"
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self._hosts:
            return (
                421,
                "unknown_host",
                "the Host header does not name this server; to allow this name, start the "
                "server with --allow-host NAME",
            )
        length = first(b"content-length")
        if length is not None and not length.isdigit():
            return 400, "bad_length", "Content-Length is not a number"
        sent_from = first(b"origin")
        origin = None if sent_from is None else sent_from.decode("latin-1")
        if origin is not None and not self._is_own(origin, scope, hosts[0]):
            listens = "text/event-stream" in request.headers.get("accept", "")
            if listens or scope["method"] != "GET":
                words = "pages of other sites may neither change nor read anything here"
                return 403, "forbidden", words
        return None

    def _is_own(self, origin: str, scope: Scope, host: str) -> bool:
        """Says whether the page that sends a request is this server's; `null` is nobody's.

        A browser says where the page comes from. A page of this server has its scheme, name and
        port. A proxy may have another port and name before the world than it uses towards this
        server: there it is enough that the name is one of the server's.
        """
        scheme, _, name = origin.partition("://")
        if self._settings.proxies:
            return host_name(name) in self._hosts
        return _origin(scheme, name) == _origin(scope["scheme"], host)


# The HTTP protocol with limits for those who send headers without end, or without hurry.
#
# uvicorn bounds neither with httptools: a connection that sends one byte a minute, or a header
# of a gigabyte, would be kept. It also takes what follows a chunked body (trailers) for
# headers, although everybody between the sender and us has judged the headers by then.


# Among the extensions of a request:
ABORT = "tidewheel.abort"  # cut the connection
KNOWN = "tidewheel.known"  # the holder of the connection has shown a valid token
GONE = "tidewheel.gone"  # call this function when the connection is lost; returns how not to
PEER = "tidewheel.peer"  # the address at the other end, whatever a proxy says about the caller
# Beside them, if the request came by a connection of this server:
EXCHANGE = "tidewheel.exchange"  # what can be had or sent in one piece
_UNSAFE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # in a header
_NOT_WHOLE = frozenset((b"connection", b"transfer-encoding"))  # uvicorn knows what these mean


class Exchange:
    """Is one request and its response, as far as no part of them has to be waited for.

    uvicorn hands over a body, and takes a response, piece by piece, each with a step of the
    event loop or a check of every header: for the usual case, in which all is there, that costs
    as much as the answer.
    """

    __slots__ = ("_cycle",)
    # What every response begins with; uvicorn makes another list when the time has changed.
    default_headers: ClassVar[list[HeaderLine]] = []
    default_lines: ClassVar[bytes] = b""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def body(self) -> bytes | None:
        """Returns the body if all of it has come, else None; it can be had once."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.flow.resume_reading()
        # Whoever asks for more waits until the caller is gone, as after any body.
        cycle.message_event.clear()
        return body

    def send(self, response: Response, added: list[HeaderLine]) -> bool:
        """Writes a response as uvicorn would, with the security headers that are added; returns
        False, having done nothing, if it has to wait or is of a rare kind."""
        cycle, headers = self._cycle, response.raw_headers
        if (
            cycle.flow.write_paused
            or cycle.response_started
            or cycle.scope["method"] == "HEAD"
            or not (isinstance(response, JsonResponse) or _is_usual(headers))
        ):
            return False
        if cycle.disconnected:
            return True
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        if Exchange.default_headers is not cycle.default_headers:  # there is a new time
            Exchange.default_headers = cycle.default_headers
            Exchange.default_lines = _lines(cycle.default_headers)
        text = (
            STATUS_LINE[response.status_code],
            Exchange.default_lines,
            _lines(headers),
            _SECURITY_LINES if added is _SECURITY_HEADERS else _lines(added),
            b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n",
            response.body,
        )
        cycle.transport.write(b"".join(text))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True


def _is_usual(headers: list[HeaderLine]) -> bool:
    """Says whether headers can be written as they are, for a body that is sent in one piece."""
    names = {name for name, _ in headers}
    is_whole = b"content-length" in names and names.isdisjoint(_NOT_WHOLE)
    return is_whole and not _UNSAFE.search(b"".join([value for _, value in headers]))


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection that sent no complete request head in time, or too large a one."""

    settings = ServerSettings()
    crowd = ConnectionLimit(settings)
    _timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _answered_at = 0.0  # by the loop's clock: the last request
    _head_bytes = 0
    _in_head = True
    _is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._mourners: dict[Callable[[], None], None] = {}
        address = self.client[0] if self.client else ""
        self._extensions: dict[str, dict[Any, Any]] = {
            ABORT: {"call": self.transport.abort},
            PEER: {"host": address},
            KNOWN: {"call": partial(self.crowd.is_known, self)},
            GONE: {"call": self.when_gone},
        }
        if not self.crowd.came(self, address):
            self._refuse(b"503 Service Unavailable\r\nretry-after: 1")
            return
        self._wait_for_head()

    def cut(self) -> None:
        """Aborts the connection, because there is no room for it any more."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        if self.transport.is_closing():  # nothing that was refused is done
            return
        super().data_received(data)
        if not (self._in_head and self._head_bytes):
            return
        limit = self.settings.header_bytes_max + self.settings.url_bytes_max
        if self._head_bytes > limit:
            self._refuse(b"431 Request Header Fields Too Large")
        elif self._timer is None:  # most heads come in one piece
            self._wait_for_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:  # it is a trailer, which nobody has asked for
            return
        name = name.lower()
        if name == b"expect":
            super().on_header(name, value)
        else:  # as uvicorn does
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        if self._timer is not None:
            self._stop_waiting()
        super().on_headers_complete()
        self.scope["extensions"] = self._extensions
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[EXCHANGE] = Exchange(self.cycle)

    def when_gone(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Has a function called when the connection is lost; returns how to have it not."""
        if self._is_lost:
            tell()
        self._mourners[tell] = None
        return partial(self._mourners.pop, tell, None)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which may take its time to begin
        if not self.pipeline:  # else reading rests until the next request has its turn
            # uvicorn stops reading behind a large body, and would not see who hangs up.
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        # As uvicorn does, but for its timer, which would be made and stopped for each request.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._answered_at = self.loop.time()
        if self._idle_timer is None:
            self._wait_idle(self.timeout_keep_alive)

    def _wait_idle(self, seconds: float) -> None:
        self._idle_timer = self.loop.call_later(seconds, self._end_if_idle)

    def _end_if_idle(self) -> None:
        """Closes a connection on which nothing came for long; until then, looks again when it
        is time. A request that is under way begins the wait anew."""
        self._idle_timer = None
        if self._head_bytes or not self.cycle.response_complete:
            return
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait_idle(left)
        else:
            self.timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self.crowd.left(self)
        super().connection_lost(exc)
        self._is_lost = True
        for tell in list(self._mourners):
            tell()

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.settings.header_seconds_max, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._in_head:
            self._refuse(b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        if not self.transport.is_closing():
            rest = b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(b"HTTP/1.1 " + status + rest)
            self.transport.close()


def guarded_protocol(
    given: ServerSettings, of_server: ConnectionLimit
) -> type[HttpToolsProtocol]:
    """Returns a protocol class with these settings; uvicorn makes the protocols by itself."""

    class Guarded(GuardedProtocol):
        settings = given
        crowd = of_server

    return Guarded
