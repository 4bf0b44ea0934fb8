"""Connections to one server that are kept open between requests."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidewheel.store.remote.address import Address
from tidewheel.store.remote.connection import Connection

CONNECTIONS_MAX = 64
IDLE_MAX = 8
IDLE_SECONDS_MAX = 15.0  # servers close what was silent for 30


class Pool:
    """Of one event loop."""

    def __init__(
        self, address: Address, context: ssl.SSLContext | None, seconds_max: float
    ) -> None:
        self._address, self._context = address, context
        self._seconds_max = seconds_max  # for a connection
        self._idle: list[Connection] = []
        self._is_closed = False
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        self.loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def connection(self, *, fresh: bool) -> AsyncIterator[tuple[Connection, bool]]:
        """One for a request, and whether it was kept open from an earlier one."""
        async with self._places:
            kept = None if fresh else self._kept()
            connection = kept or await self.connect()
            try:
                yield connection, kept is not None
            finally:
                may_rest = not self._is_closed and len(self._idle) < IDLE_MAX
                if connection.rest(self.loop.time()) and may_rest:
                    self._idle.append(connection)
                else:
                    connection.drop()

    async def connect(self) -> Connection:
        """A new one; OSError or TimeoutError if there is none to be had."""
        async with asyncio.timeout(self._seconds_max):
            _, connection = await self.loop.create_connection(
                Connection,
                self._address.host,
                self._address.port,
                ssl=self._context,
                server_hostname=self._address.host if self._context else None,
            )
        return connection

    def close(self) -> None:
        """All that rest; one that is in use goes when it is given back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().drop()

    def _kept(self) -> Connection | None:
        """The last one that was used, unless the server may be about to close it."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and self._is_recent(connection):
                return connection
            connection.drop()
        return None

    def _is_recent(self, connection: Connection) -> bool:
        return self.loop.time() - connection.idle_since < IDLE_SECONDS_MAX
