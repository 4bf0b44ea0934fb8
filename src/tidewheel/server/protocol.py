"""The HTTP protocol with limits for those who send headers without end, or without hurry.

uvicorn bounds neither with httptools: a connection that sends one byte a minute, or a header
of a gigabyte, would be kept. It also takes what follows a chunked body (trailers) for headers,
although everybody between the sender and us has judged the headers by then.
"""

from __future__ import annotations

import asyncio
from functools import partial

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidewheel.config import ServerSettings
from tidewheel.server.load_shedding import ConnectionLimit

# Among the extensions of a request:
ABORT = "tidewheel.abort"  # cut the connection
KNOWN = "tidewheel.known"  # whoever holds the connection has shown a valid token


class GuardedProtocol(HttpToolsProtocol):
    """Closes what has sent no complete head in time, or too large a one."""

    settings = ServerSettings()
    crowd = ConnectionLimit(settings)
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.crowd.came(self, self.client[0] if self.client else ""):
            self._refuse(b"503 Service Unavailable\r\nretry-after: 1")
            return
        self._wait_for_head()

    def cut(self) -> None:
        """There is no room for it any more."""
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
        extensions[KNOWN] = {"call": partial(self.crowd.is_known, self)}

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which may take its time to begin

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.crowd.left(self)
        super().connection_lost(exc)

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
    """A protocol class for uvicorn, which makes the protocols itself."""

    class Guarded(GuardedProtocol):
        settings = given
        crowd = of_server

    return Guarded
