"""Builds the application: the table of routes behind the pipeline, behind the middleware."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import field
from typing import Any

import uvicorn
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp

from tidewheel.config import ServerSettings, is_loopback
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.server import errors as problems
from tidewheel.server import static_page
from tidewheel.server.audit_log import AuditLog
from tidewheel.server.call import Request
from tidewheel.server.errors import random_id
from tidewheel.server.load_shedding import ConnectionLimit, ReservedConnections
from tidewheel.server.metrics import Metrics
from tidewheel.server.middleware import Middleware, guarded_protocol
from tidewheel.server.pipeline import Pipeline
from tidewheel.server.route_table import ROUTES
from tidewheel.server.routes import Route
from tidewheel.wiring.machine import listener_on, require_private_file

API = "/api/"


def build_app(pipeline: Pipeline, settings: ServerSettings) -> ASGIApp:
    """Returns the ASGI application of the pipeline's routes, behind the middleware."""
    table = RouteTable(pipeline.routes)

    def answer(request: Request) -> Coroutine[Any, Any, Response]:
        scope = request.scope
        path = scope["path"]
        found = table.find(scope["method"], path)
        if found is None:
            return _not_routed(settings, request, table.others(path))
        route, scope["path_params"] = found
        return pipeline.answer(route, request)

    return Middleware(answer, settings)


@dataclass(slots=True)
class _Fork:
    """Is a place in the tree of paths: the ways that go on, and the route that ends here."""

    words: dict[str, _Fork] = field(default_factory=dict)
    named: _Fork | None = None  # for whatever part there is: a parameter
    route: Route | None = None


class RouteTable:
    """Finds the route of a request by the parts of its path, one look-up for each.

    What a list of patterns would find is found, because in the table of routes a fixed word
    comes before a parameter in the same place.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._trees: dict[str, _Fork] = {}
        # Most paths are a row of words, and perhaps a parameter at the end: the fork before it.
        self._usual: dict[tuple[str, str], _Fork] = {}
        for route in routes:
            fork = self._trees.setdefault(route.method, _Fork())
            words: str | None = ""
            for part in route.path.split("/")[1:]:
                if words is not None:
                    self._usual[route.method, words] = fork
                if not part.startswith("{"):
                    words = None if words is None else f"{words}/{part}"
                    fork = fork.words.setdefault(part, _Fork())
                    continue
                words, fork.named = None, fork.named or _Fork()
                fork = fork.named
            fork.route = fork.route or route

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Returns a route and its parameters as they were sent; None if there is none."""
        words, slash, last = path.rpartition("/")
        usual = self._usual.get((method, words))
        if usual is not None and slash:
            fixed, named = usual.words.get(last), usual.named
            if fixed is not None:
                if fixed.route is not None:
                    return fixed.route, {}
            elif named is not None and named.route is not None and last:
                name = named.route.parts[-1]
                assert name is not None, "the last part is no parameter"
                return named.route, {name: last}
        parts = path.split("/")[1:]
        route = _at(self._trees.get(method), parts)
        if route is None:
            return None
        said = {}
        for name, text in zip(route.parts, parts, strict=True):
            if name is not None:
                said[name] = text
        return route, said

    def others(self, path: str) -> list[Route]:
        """Returns the routes that a path has with other methods, in the order of the table."""
        parts = path.split("/")[1:]
        found = [_at(tree, parts) for tree in self._trees.values()]
        return sorted(filter(None, found), key=self._routes.index)


def _at(fork: _Fork | None, parts: Sequence[str], place: int = 0) -> Route | None:
    """Returns the route at the end of a path, from a fork on: a fixed word goes first."""
    for at in range(place, len(parts)):
        if fork is None:
            return None
        part, named = parts[at], fork.named
        fork = fork.words.get(part)
        if named is not None and part:
            found = None if fork is None else _at(fork, parts, at + 1)
            if found is not None:
                return found
            fork = named
    return None if fork is None else fork.route


async def _not_routed(
    settings: ServerSettings, request: Request, others: Sequence[Route]
) -> Response:
    if others:
        allowed = ", ".join(dict.fromkeys(route.method for route in others))
        words = f"this path does not accept {request.method}; it accepts {allowed}"
        told = problems.plain(problems.METHOD_NOT_ALLOWED, "method", words, random_id())
        told.headers["Allow"] = allowed
        return told
    # A person sees the answer in a browser; programs want a problem in JSON.
    is_page = "text/html" in request.headers.get("accept", "")
    is_seen = request.method == "GET" and is_page
    if is_seen and not request.scope["path"].startswith(API):
        built = await asyncio.to_thread(static_page.index_page, settings.web)
        if built is not None:  # it says that there is no such page, and where to go
            return HTMLResponse(built, status_code=problems.NOT_FOUND)
    words = "there is nothing at this path"
    return problems.plain(problems.NOT_FOUND, "not_found", words, random_id())


# A server in this process: whether it may listen where it is asked to, and until when.

KEEP_ALIVE_SECONDS = 30
BACKLOG = 512
CROWD_FACTOR = 2
FILES_BESIDE = 500  # databases, logs, jobs


async def require_safe(store: Store, settings: ServerSettings) -> None:
    """Raises BadSetting for a server that other machines could reach without encryption or
    while there is no token (S1), and for a key that others can read (S31)."""
    if settings.key is not None:
        require_private_file("key", settings.key)
    if is_loopback(settings.host):
        return
    if settings.certificate is None and not settings.proxies:
        raise BadSetting(
            "host",
            settings.host,
            "a loopback address; to listen elsewhere, give --certificate and --key, "
            "or --behind-proxy ADDRESS for a proxy that speaks TLS",
        )
    now = await store.now()
    if not any(view.is_valid(now) for view in await store.tokens()):
        raise BadSetting(
            "host",
            settings.host,
            "a loopback address while there is no valid token; make one: "
            "tidewheel token create NAME --scope admin",
        )


def make_room(settings: ServerSettings) -> None:
    """Raises the limit of open files to what the permitted connections need.

    A login shell allows fewer. With its limit, no new connection could be accepted long before
    load shedding turns away the requests that can wait.
    """
    wanted = settings.connections_max * CROWD_FACTOR + FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class HttpServer:
    """Listens and answers requests; ``run`` ends when the server is told to stop."""

    def __init__(
        self,
        store: Store,
        settings: ServerSettings,
        on_ready: Callable[[str], None] = lambda _: None,
        routes: tuple[Route, ...] = ROUTES,
        *,
        reserve: ReservedConnections | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._settings, self._on_ready = settings, on_ready
        crowd = ConnectionLimit(settings)
        self._pipeline = Pipeline(
            store,
            settings,
            routes,
            reserve=reserve,
            metrics=metrics,
            connections=crowd.count,
        )
        app: ASGIApp = build_app(self._pipeline, settings)
        config = uvicorn.Config(
            app,
            http=guarded_protocol(settings, crowd),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=int(settings.stop_seconds_max),
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.key,
            backlog=BACKLOG,
            # Before that, those that can come again are turned away: load_shedding.py.
            limit_concurrency=settings.connections_max * CROWD_FACTOR,
        )
        self._server = uvicorn.Server(config)
        # Signals are handled by the program that runs this server.
        self._socket = listening_socket(settings)

    @property
    def audit(self) -> AuditLog:
        """Returns the writer of the audit, which can be told where to report."""
        return self._pipeline.audit

    @property
    def url(self) -> str:
        """Returns the address at which this machine reaches the server."""
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if self._settings.certificate else "http"
        return f"{scheme}://{shown}:{port}"

    async def run(self) -> None:
        """Answers requests until asked to stop."""
        try:
            await self._pipeline.begin()
        except BaseException:
            self._socket.close()
            self._pipeline.close()
            raise
        self._server.config.load()
        self._server.lifespan = self._server.config.lifespan_class(self._server.config)
        await self._server.startup(sockets=[self._socket])
        if self._server.should_exit:
            return
        self._on_ready(self.url)
        await self._pipeline.audit.begin()
        try:
            await self._server.main_loop()
            await self._server.shutdown(sockets=[self._socket])
            await self._pipeline.end()
        finally:
            self._pipeline.close()

    def ask_stop(self) -> None:
        """Finishes the requests that are under way, then ends the server; when asked again,
        ends it at once. It has to be called in the event loop of ``run``."""
        self._server.force_exit = self._server.should_exit
        self._pipeline.stopping.set()
        self._server.should_exit = True


def listening_socket(settings: ServerSettings) -> socket.socket:
    """Returns a bound socket; made first, so that a port that is taken is reported at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol by name: without it asyncio leaves small answers waiting for 40 ms (Nagle).
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except OSError as error:
        found.close()
        taken = error.errno == errno.EADDRINUSE
        who = listener_on(settings.port) if taken else ""
        why = f"in use by {who}" if who else error.strerror
        raise BadSetting(
            "port",
            settings.port,
            f"a port that is free on {settings.host} ({settings.port}: {why}), "
            "or 0 for any free port",
        ) from None
    return found
