"""Runs the server as a role: opens its store, checks where it may listen, and serves."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import uvloop

from tidewheel.client import tokens
from tidewheel.client.embedded import Role
from tidewheel.config import ServerSettings, StoreSettings
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.server.app import HttpServer, make_room, require_safe
from tidewheel.server.load_shedding import kept_reserve
from tidewheel.server.metrics import Metrics
from tidewheel.server.resources.tokens import login_path
from tidewheel.services.service import OnReport, tell_nobody
from tidewheel.wiring.stores import store_settings

# After so long a thread that computes lets another go on. While definitions are read, half as
# long as with Python's 5 ms passes until a request is answered (p99, four readers).
SWITCH_SECONDS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Holds what the program that started a server is told: its address, and how to log in."""

    url: str
    token_file: Path | None  # of a token that was made, or that is good here
    login: str | None = None  # a link that is good once, if one was asked for


class Server(Role):
    """Serves REST over one store.

    A ``local`` server is for the user of this machine: clients find it through the state
    directory. With ``makes_link`` it tells a link with which a browser logs in, once.
    """

    at_database = "a server"

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        settings: ServerSettings,
        on_ready: Callable[[Welcome], None],
        local: bool = False,
        makes_link: bool = False,
        metrics: Metrics | None = None,
        **role: Any,  # noqa: ANN401 - options of a Role
    ) -> None:
        super().__init__(store, **role)
        self.settings = settings
        self._on_ready = on_ready
        self._home = settings.state_directory
        self._is_local, self._makes_link = local, makes_link
        self._metrics = metrics

    async def serve(self, store: Store) -> None:
        await require_safe(store, self.settings)
        make_room(self.settings)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.collect()  # what was left of a server before would stay as well
        gc.freeze()  # modules and routes stay: no need to look through them again and again
        login, token_file = None, None
        address = tokens.without_password(store_settings(self._where).url)
        if self._is_local:
            token, token_file = await tokens.local_admin(store, self._home, address)
            login = await login_path(store, token) if self._makes_link else None
        else:
            token_file = await tokens.first_token(store, self._home, address)

        def ready(url: str) -> None:
            if self._is_local:
                tokens.write_server_file(self._home, url, store_settings(self._where).url)
            link = None if login is None else url + login
            self._on_ready(Welcome(url=url, token_file=token_file, login=link))

        # Reports of workers have connections of their own, however many others are served.
        async with kept_reserve(self._where, store) as reserve:
            serving = HttpServer(
                store, self.settings, ready, reserve=reserve, metrics=self._metrics
            )
            serving.audit.on_report = self._on_report or tell_nobody
            try:
                await self.attend(serving)
            finally:
                if self._is_local:
                    tokens.remove_server_file(self._home)

    async def run_apart(self, store: Store) -> None:
        """Runs on an open store in a thread with an event loop of its own, until it ends."""
        outcome: Future[None] = Future()
        outcome.set_running_or_notify_cancel()

        def body() -> None:
            try:
                run_in_fast_loop(self.run_on(store))
                outcome.set_result(None)
            except BaseException as failure:
                outcome.set_exception(failure)

        threading.Thread(target=body, name="server", daemon=True).start()
        await asyncio.wrap_future(outcome)


def run_in_fast_loop(work: Coroutine[object, object, object]) -> None:
    """Runs a coroutine to its end in uvloop, which spends half as much time on each request."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


# Everything on one machine in one process: a server, and beside it those who do the work.
#
# One store serves all of them, so that on SQLite one commit serves many. The server has a
# thread and an event loop of its own: it answers however long a scheduler thinks about a large
# run, or a worker takes to start its jobs. It comes first: where its port is taken, nothing
# else begins. Told to stop, workers go first, each as it is set, then the schedulers and the
# monitor, and the server last, so that people who look and workers that report are answered
# until the end. Told again, everything ends at once.


class Up(Role):
    """Runs all roles of one store; ``groups`` stop one after the other, before the server."""

    def __init__(
        self,
        store: str | StoreSettings | None,
        server: Server,
        groups: Sequence[Sequence[Role]],
        *,
        on_report: OnReport | None = None,
        wait_for_store_seconds: float = 0.0,
    ) -> None:
        super().__init__(
            store, on_report=on_report, wait_for_store_seconds=wait_for_store_seconds
        )
        self._server, self._groups = server, groups

    async def serve(self, store: Store) -> None:
        await self.attend(_Together(store, self._server, self._groups))


class _Together:
    """Runs the roles until they are asked to stop or one of them fails."""

    def __init__(self, store: Store, server: Server, groups: Sequence[Sequence[Role]]) -> None:
        self._store, self._server, self._groups = store, server, groups
        self._stop = asyncio.Event()
        self._asked = 0

    async def run(self) -> None:
        ready = asyncio.create_task(self._server.until_started())
        serving = asyncio.create_task(self._server.run_apart(self._store))
        await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        groups: list[list[asyncio.Task[None]]] = []
        if not serving.done():
            groups = [
                [asyncio.create_task(role.run_on(self._store)) for role in group]
                for group in self._groups
            ]
        everybody = [serving, *(task for group in groups for task in group)]
        # A role that ends by itself has failed, or was stopped by somebody else.
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait((stop, *everybody), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        for roles, tasks in zip(self._groups, groups, strict=False):
            await self._ended(roles, tasks)
        await self._ended([self._server], [serving])
        for task in everybody:
            await task  # raises what ended it

    async def _ended(self, roles: Sequence[Role], tasks: Sequence[asyncio.Task[None]]) -> None:
        for role in roles:
            if self._asked <= 1:  # else it has heard both
                role.ask_stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def ask_stop(self) -> None:
        """Stops the roles one after the other; when asked again, all at once."""
        self._asked += 1
        self._stop.set()
        if self._asked > 1:
            for role in (self._server, *(role for group in self._groups for role in group)):
                role.ask_stop()
                role.ask_stop()
