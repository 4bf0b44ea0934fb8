"""Requests as bytes, on one connection: for those that no client library would send."""

from __future__ import annotations

import socket

from tests.support.patience import allowed


class RawConnection:
    """Speaks HTTP/1.1 as it is told; opened again whenever the server has closed it."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._where = (host, int(port))
        self._socket: socket.socket | None = None

    def ask(self, request: bytes, *, streams: bool = False) -> tuple[int, bytes]:
        """Status and body; of a stream, its head only. Status 0: closed without a word."""
        for _ in range(2):
            fresh = self._socket is None
            try:
                return self._ask(request, streams=streams)
            except (ConnectionError, EOFError):
                self.close()
                if fresh:
                    break
        return 0, b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: bytes, *, streams: bool) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(self._where, timeout=allowed(20))
        self._socket.sendall(request)
        head, body = self._until(b"", b"\r\n\r\n")
        status, fields = int(head.split(b" ", 2)[1]), _fields(head)
        if streams and fields.get(b"content-type", b"").startswith(b"text/event-stream"):
            self.close()
            return status, b""
        is_bare = request.startswith(b"HEAD ")
        length = 0 if is_bare else int(fields.get(b"content-length", b"0"))
        while len(body) < length:
            body += self._more()
        if fields.get(b"connection") == b"close":
            self.close()
        return status, body

    def _until(self, read: bytes, end: bytes) -> tuple[bytes, bytes]:
        while end not in read:
            read += self._more()
        head, _, rest = read.partition(end)
        return head, rest

    def _more(self) -> bytes:
        assert self._socket is not None
        received = self._socket.recv(65_536)
        if not received:
            raise EOFError
        return received


def _fields(head: bytes) -> dict[bytes, bytes]:
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in lines}
