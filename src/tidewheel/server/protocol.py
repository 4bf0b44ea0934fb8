"""The HTTP protocol with limits for those who send headers without end, or without hurry.

uvicorn bounds neither with httptools: a connection that sends one byte a minute, or a header
of a gigabyte, would be kept.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidewheel.config import ServerSettings

ABORT = "tidewheel.abort"  # among the extensions of a request: cut the connection


class GuardedProtocol(HttpToolsProtocol):
    """Closes what has sent no complete head in time, or too large a one."""

    settings = ServerSettings()
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._timer is None:
                self._wait_for_head()
        super().data_received(data)
        limit = self.settings.header_bytes_max + self.settings.url_bytes_max
        if self._in_head and self._head_bytes > limit:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_waiting()
        super().on_headers_complete()
        self.scope.setdefault("extensions", {})[ABORT] = {"call": self.transport.abort}

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head = True  # of the next request, which may take its time to begin

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
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


def guarded_protocol(given: ServerSettings) -> type[HttpToolsProtocol]:
    """A protocol class for uvicorn, which makes the protocols itself."""

    class Guarded(GuardedProtocol):
        settings = given

    return Guarded
