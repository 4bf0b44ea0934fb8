"""Somebody who asks a store, or the server of one, as an application does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from tidewheel.client import AsyncClient


class Visitor:
    """Comes near (the URL of a store) or far (of a server); each name is asked of a part."""

    part: ClassVar[str]  # of the client

    def __init__(self, where: str, token: str | None = None) -> None:
        self._where, self._token = where, token

    def ask(self, question: Callable[[AsyncClient], Awaitable[Any]]) -> Any:
        async def session() -> Any:
            async with AsyncClient(self._where, token=self._token) as client:
                return await question(client)

        return asyncio.run(session())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **options: self.ask(
            lambda client: getattr(getattr(client, self.part), name)(*args, **options)
        )
