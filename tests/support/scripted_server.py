"""A server that says exactly what a test wants, byte by byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CLOSE = "close the connection behind the answer before"
HANG_UP = "hear a request and close the connection"
SILENCE = "hear a request and say nothing"


class Script:
    """One answer to each request, in order, on whichever connection it comes."""

    def __init__(self, answers: tuple[bytes | str, ...]) -> None:
        self.answers = list(answers)
        self.heard: list[str] = []  # the first line of each request
        self.listener = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def serve(self) -> None:
        while self.answers:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # it was closed
                return
            with connection:
                while self.answers and self._hear(connection) and self._answer(connection):
                    pass

    def _hear(self, connection: socket.socket) -> bool:
        request = b""
        while b"\r\n\r\n" not in request:
            part = connection.recv(65_536)
            if not part:
                return False
            request += part
        self.heard.append(request.split(b"\r\n")[0].decode())
        return True

    def _answer(self, connection: socket.socket) -> bool:
        """Whether the connection stays open."""
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            if answer is SILENCE:
                connection.recv(1)  # until the other side has enough
            return False
        connection.sendall(answer)
        if self.answers[:1] == [CLOSE]:
            self.answers.pop(0)
            return False
        return True


@contextmanager
def scripted(*answers: bytes | str) -> Iterator[tuple[str, list[str]]]:
    """Its address, and what it is asked."""
    script = Script(answers)
    thread = threading.Thread(target=script.serve)
    thread.start()
    try:
        yield script.url, script.heard
    finally:
        script.answers.clear()
        script.listener.shutdown(socket.SHUT_RDWR)
        script.listener.close()
        thread.join(20)
