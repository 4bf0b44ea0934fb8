"""Everything on one machine in one process: a server, and beside it those who do the work.

One store serves all of them, so that on SQLite one commit serves many. The server comes first:
where its port is taken, nothing else begins. Told to stop, workers go first, each as it is set,
then the schedulers and the monitor, and the server last, so that whoever looks or reports
is answered until the end. Told again, everything ends at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tidewheel.client.embedded import Embedded
from tidewheel.config import StoreSettings
from tidewheel.ports.store import Store
from tidewheel.server.role import Server
from tidewheel.services.service import OnReport


class Up(Embedded):
    """All roles of one store; ``groups`` stop one after the other, before the server does."""

    def __init__(
        self,
        store: str | StoreSettings | None,
        server: Server,
        groups: Sequence[Sequence[Embedded]],
        *,
        on_report: OnReport | None = None,
        wait_for_store_seconds: float = 0.0,
    ) -> None:
        super().__init__(store, on_report, wait_for_store_seconds)
        self._server, self._groups = server, groups

    async def serve(self, store: Store) -> None:
        await self.attend(_Together(store, self._server, self._groups))


class _Together:
    """The roles at work, until they are asked to stop or one of them fails."""

    def __init__(
        self, store: Store, server: Server, groups: Sequence[Sequence[Embedded]]
    ) -> None:
        self._store, self._server, self._groups = store, server, groups
        self._stop = asyncio.Event()
        self._asked = 0

    async def run(self) -> None:
        serving = asyncio.create_task(self._server.run_on(self._store))
        ready = asyncio.create_task(self._server.until_started())
        await asyncio.wait((serving, ready), return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        groups: list[list[asyncio.Task[None]]] = []
        if not serving.done():
            groups = [
                [asyncio.create_task(role.run_on(self._store)) for role in group]
                for group in self._groups
            ]
        everybody = [serving, *(task for group in groups for task in group)]
        await self._until_stop(everybody)
        for roles, tasks in zip(self._groups, groups, strict=False):
            await self._ended(roles, tasks)
        await self._ended([self._server], [serving])
        for task in everybody:
            await task  # raises what ended it

    async def _until_stop(self, everybody: Sequence[asyncio.Task[None]]) -> None:
        """One that ends by itself has failed, or was stopped by somebody else."""
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait((stop, *everybody), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()

    async def _ended(
        self, roles: Sequence[Embedded], tasks: Sequence[asyncio.Task[None]]
    ) -> None:
        for role in roles:
            if self._asked <= 1:  # else it has heard both
                role.ask_stop()
        await asyncio.gather(*tasks, return_exceptions=True)

    def ask_stop(self) -> None:
        """One after the other; asked again, all at once."""
        self._asked += 1
        self._stop.set()
        if self._asked > 1:
            for role in (self._server, *(role for group in self._groups for role in group)):
                role.ask_stop()
                role.ask_stop()
