"""The server as a role: opens its store, may listen or not, serves until stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

import uvloop

from tidewheel.client.embedded import Embedded
from tidewheel.client.server_file import (
    remove_server_file,
    without_password,
    write_server_file,
)
from tidewheel.client.tokens import first_token, local_admin
from tidewheel.config import ServerSettings, StoreSettings
from tidewheel.ports.store import Store
from tidewheel.server.metrics import Metrics
from tidewheel.server.reserve import kept_reserve
from tidewheel.server.resources.sessions import login_path
from tidewheel.server.serving import Serving, make_room, require_safe
from tidewheel.wiring.stores import require_database, store_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """What whoever started a server wants to know once it answers."""

    url: str
    token_file: Path | None  # of a token that was made, or that is good here
    login: str | None = None  # a link that is good once


class Server(Embedded):
    """REST over one store; a ``local`` one greets the user of this machine: clients find it
    through the state directory, and a browser by a link that is good once."""

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        settings: ServerSettings,
        on_ready: Callable[[Welcome], None],
        local: bool = False,
        metrics: Metrics | None = None,
        wait_for_store_seconds: float = 0.0,
    ) -> None:
        require_database(store, "a server")
        super().__init__(store, None, wait_for_store_seconds)
        self.settings = settings
        self._on_ready = on_ready
        self._home = settings.state_directory
        self._is_local = local
        self._metrics = metrics

    async def serve(self, store: Store) -> None:
        await require_safe(store, self.settings)
        make_room(self.settings)
        login, token_file = None, None
        if self._is_local:
            address = without_password(store_settings(self._where).url)
            token, token_file = await local_admin(store, self._home, address)
            login = await login_path(store, token)
        else:
            token_file = await first_token(store, self._home)

        def ready(url: str) -> None:
            if self._is_local:
                write_server_file(self._home, url, store_settings(self._where).url)
            link = None if login is None else url + login
            self._on_ready(Welcome(url=url, token_file=token_file, login=link))

        # What workers report has connections of its own: it is heard whoever else is served.
        async with kept_reserve(self._where, store) as reserve:
            serving = Serving(
                store, self.settings, ready, reserve=reserve, metrics=self._metrics
            )
            try:
                await self.attend(serving)
            finally:
                if self._is_local:
                    remove_server_file(self._home)


def run_in_fast_loop(work: Coroutine[object, object, None]) -> None:
    """Until it ends, in an event loop that spends half as much on each request."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
