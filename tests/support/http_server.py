"""A real server on a socket, in a thread of its own, and a plain client for it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from tests.support.answer_types import checked
from tests.support.patience import allowed
from tidewheel.client.tokens import make_token
from tidewheel.config import ServerSettings
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope, names_for
from tidewheel.server.app import HttpServer
from tidewheel.server.load_shedding import kept_reserve
from tidewheel.server.route_table import ROUTES
from tidewheel.wiring.stores import opened_store

API = "/api/v1"


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["code"]


@dataclass
class Caller:
    """Somebody with a token; paths are below /api/v1 unless they begin with two slashes."""

    address: str
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        where = path[1:] if path.startswith("//") else API + path
        given = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.token is not None:
            given.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.address, timeout=allowed(20))
        try:
            connection.request(method, where, raw, given)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            if cookies := answer.msg.get_all("set-cookie"):  # a line for each
                names["set-cookie"] = "\n".join(cookies)
            return Reply(answer.status, names, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.ask("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.ask("PATCH", path, body, **headers)


class RunningServer:
    """One server over one store; a test makes tokens and callers as it likes."""

    def __init__(self, url: str, settings: ServerSettings, routes: Any = ROUTES) -> None:
        self._where, self._settings, self._routes = url, settings, routes
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="server under test")
        self._thread.start()
        assert self._started.wait(60), "the server does not start"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with (
            self.opened_store() as store,
            self.kept_reserve(store) as reserve,
        ):
            self.store = store
            ready = lambda _: self._started.set()  # noqa: E731 - a name for one line
            self._serving = HttpServer(
                store, self._settings, ready, checked(self._routes), reserve=reserve
            )
            await self._serving.run()

    def opened_store(self) -> Any:
        """The store that it stands before."""
        return opened_store(self._where)

    def kept_reserve(self, store: Any) -> Any:
        """Connections that are kept free; none for a store that has no address."""
        return kept_reserve(self._where, store) if self._where else nullcontext()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.ask_stop)
        self._thread.join(30)
        assert not self._thread.is_alive()

    @property
    def address(self) -> str:
        return urlsplit(self._serving.url).netloc

    def do(self, work: Any) -> Any:
        """Something with the store, in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def caller(
        self, *scopes: str, names: Any = (), queues: Any = None, lasts: Any = None
    ) -> Caller:
        """Somebody with a new token of these scopes, for everything if nothing is said."""
        of_queues = () if queues is None else names_for(tuple(queues), None)
        grant = Grant(
            scopes=frozenset(map(Scope, scopes)),
            names=(*names, *of_queues) or EVERYTHING,
        )
        text, _ = self.do(make_token(self.store, "a test", grant, lasts))
        return Caller(self.address, text)

    def stranger(self) -> Caller:
        return Caller(self.address)


@contextmanager
def running_server(url: str, routes: Any = ROUTES, **settings: Any) -> Any:
    """A server that is stopped at the end of the block."""
    server = RunningServer(url, ServerSettings(**({"port": 0} | settings)), routes)
    try:
        yield server
    finally:
        server.stop()


def in_path(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")
