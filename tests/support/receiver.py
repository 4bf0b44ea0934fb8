"""A real HTTP server that keeps what is posted to it, and answers as it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Post:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Receiver:
    """`answers` are used up one by one; after that everything is taken."""

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    certificate: tuple[Path, Path] | None = None  # TLS, with its key

    @property
    def url(self) -> str:
        return f"http{'' if self.certificate is None else 's'}://127.0.0.1:{self.port}/hook"

    @property
    def events(self) -> list[str]:
        return [post.json["event"] for post in self.posts]

    def of(self, event: str) -> list[Any]:
        return [post.json for post in self.posts if post.json["event"] == event]

    @contextmanager
    def listening(self) -> Iterator[Receiver]:
        """On its port until the end of the block; without one, on any."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): text for name, text in self.headers.items()}
                receiver.posts.append(Post(self.path, headers, body))
                status, more = receiver.answers.pop(0) if receiver.answers else (204, {})
                self.send_response(status)
                for name, text in more.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # whoever does not believe it hangs up
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@contextmanager
def receiver() -> Iterator[Receiver]:
    """One that listens until the end of the block."""
    with Receiver().listening() as found:
        yield found
