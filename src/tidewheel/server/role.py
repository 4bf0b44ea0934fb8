"""The server as a role: opens its store, may listen or not, serves until stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import uvloop

from tidewheel.client.embedded import Embedded
from tidewheel.client.tokens import first_token
from tidewheel.config import ServerSettings, StoreSettings, home_directory
from tidewheel.ports import Store
from tidewheel.server.serving import Serving, require_safe

OnReady = Callable[[str, Path | None], None]  # the URL, and the file of a token that was made


class Server(Embedded):
    """REST over one store."""

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        settings: ServerSettings,
        on_ready: OnReady,
        home: Path | None = None,
        wait_for_store_seconds: float = 0.0,
    ) -> None:
        super().__init__(store, None, wait_for_store_seconds)
        self.settings = settings
        self._on_ready = on_ready
        self._home = home or home_directory()

    async def serve(self, store: Store) -> None:
        await require_safe(store, self.settings)
        token_file = await first_token(store, self._home)
        await self.attend(
            Serving(store, self.settings, lambda url: self._on_ready(url, token_file))
        )


def run_in_fast_loop(work: Coroutine[object, object, None]) -> None:
    """Until it ends, in an event loop that spends half as much on each request."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
