"""Repositories of git, and a server of files, that tests make of folders."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

OWN = {
    **{name: os.environ[name] for name in ("PATH",) if name in os.environ},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_NAME": "a test" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "test@example.org" for who in ("AUTHOR", "COMMITTER")},
}


class Repository:
    """A working tree with its repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ("git", *words), cwd=self.folder, env=OWN, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, tag: str = "") -> str:
        """Commits all that lies there; returns which commit it is."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=a state")
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")

    def archive(self, file: Path, *words: str) -> Path:
        """Writes what is committed as servers of repositories do, in one folder."""
        self.git("archive", f"--output={file}", "--prefix=imaging-1.2/", *words, "HEAD")
        return file


Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """Yields the address of a server that answers every request so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps what it does to itself."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sending(content: bytes, status: int = 200, **headers: str) -> Answer:
    """Returns the answer that sends this."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, text in ({"Content-Length": str(len(content))} | headers).items():
            request.send_header(name, text)
        request.end_headers()
        request.wfile.write(content)

    return answer
