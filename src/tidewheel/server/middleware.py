"""Checks size, host, origin and speed of every request, and adds security headers to answers.

It also routes by the path as it was sent: a slash within an id, written %2F, is no border
between two parts of the path.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidewheel.config import ServerSettings
from tidewheel.server.errors import plain
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
# Sent by TLS: a browser comes by TLS from then on, for a year. Not for this machine, whose name
# other programs share, on other ports and without TLS.
STRICT_TRANSPORT = ("strict-transport-security", "max-age=31536000")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}


def host_name(header: str) -> str:
    """Returns the name in a Host header, without its port; "" if there is none."""
    found = _HOST.fullmatch(header)
    return "" if found is None else (found[1] or found[2]).lower()


def _origin(scheme: str, host: str) -> tuple[str, str, str]:
    """Returns scheme, name and port, with the scheme's own port where none is written."""
    found = _HOST.fullmatch(host)
    port = found[3] if found is not None else None
    return scheme, host_name(host), port or _PORTS.get(scheme, "")


def _is_for_this_machine(scope: Scope) -> bool:
    return host_name(Headers(scope=scope).get("host", "")) in LOOPBACK


class Middleware:
    """Refuses bad requests before the application; adds security headers to answers."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings
        # The names by which this server may be called (DNS rebinding uses others).
        own = (settings.host,) if settings.host not in ("0.0.0.0", "::", "") else ()
        known = (*LOOPBACK, *own, *settings.hosts)
        self._hosts = frozenset(name.lower() for name in known)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                if scope["scheme"] == "https" and not _is_for_this_machine(scope):
                    headers.setdefault(*STRICT_TRANSPORT)
            await send(message)

        if refused := self._refusal(scope):
            status, code, words = refused
            response = plain(status, code, words, secrets.token_hex(8))
            await response(scope, receive, send_guarded)
            return
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        await self._app(
            {**scope, "path": raw.decode("latin-1"), "root_path": ""}, receive, send_guarded
        )

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        settings = self._settings
        url = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
        if url > settings.url_bytes_max:
            return 414, "url_too_long", f"the URL has more than {settings.url_bytes_max} bytes"
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size > settings.header_bytes_max:
            accepted = settings.header_bytes_max
            return 431, "headers_too_large", f"the headers have more than {accepted} bytes"
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self._hosts:
            return (
                421,
                "unknown_host",
                "this server is not called so; start it with --allow-host NAME if it is",
            )
        length = headers.get("content-length")
        if length is not None and not (length.isascii() and length.isdigit()):
            return 400, "bad_length", "Content-Length is no number"
        origin = headers.get("origin")
        listens = "text/event-stream" in headers.get("accept", "")
        concerns = listens or scope["method"] != "GET"
        if concerns and origin is not None and not self._is_own(origin, scope, hosts[0]):
            return 403, "forbidden", "a page of another site may change and hear nothing here"
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


class GuardedProtocol(HttpToolsProtocol):
    """Closes a connection that sent no complete request head in time, or too large a one."""

    settings = ServerSettings()
    crowd = ConnectionLimit(settings)
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    _is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._mourners: dict[Callable[[], None], None] = {}
        if not self.crowd.came(self, self.client[0] if self.client else ""):
            self._refuse(b"503 Service Unavailable\r\nretry-after: 1")
            return
        self._wait_for_head()

    def cut(self) -> None:
        """Aborts the connection, because there is no room for it any more."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._timer is None:
                self._wait_for_head()
        if self.transport.is_closing():  # nothing that was refused is done
            return
        super().data_received(data)
        limit = self.settings.header_bytes_max + self.settings.url_bytes_max
        if self._in_head and self._head_bytes > limit:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer, which nobody has asked for
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_waiting()
        super().on_headers_complete()
        extensions = self.scope.setdefault("extensions", {})
        extensions[ABORT] = {"call": self.transport.abort}
        extensions[PEER] = {"host": self.client[0] if self.client else ""}
        extensions[KNOWN] = {"call": partial(self.crowd.is_known, self)}
        extensions[GONE] = {"call": self.when_gone}

    def when_gone(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Has a function called when the connection is lost; returns how to have it not."""
        if self._is_lost:
            tell()
        self._mourners[tell] = None
        return lambda: self._mourners.pop(tell, None)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which may take its time to begin
        if not self.pipeline:  # else reading rests until the next request has its turn
            # uvicorn stops reading behind a large body, and would not see who hangs up.
            self.flow.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
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
