"""A store that changes things through one store and looks through another of the same file.

A file has one writer, and two in one process would only wait for each other; but whoever must
not wait for those who look can have readers of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from tidewheel.core.queue.requests import Wake
from tidewheel.store.store import ScriptedStore
from tidewheel.store.transaction import News, Result, Script, no_news


class SharedWriter(ScriptedStore):
    """Both belong to somebody else, who closes them."""

    def __init__(self, writer: ScriptedStore, reader: ScriptedStore) -> None:
        super().__init__(writer._limits, writer._chance, writer._failpoint)
        self._writer, self._reader = writer, reader

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        return await self._writer.transact(script, news)

    async def look(self, script: Script[Result]) -> Result:
        return await self._reader.look(script)

    def look_now(self, script: Script[Result]) -> Result:
        return self._reader.look_now(script)

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        return self._writer.listen(listener)

    def tell_listeners(self, wake: Wake) -> None:
        self._writer.tell_listeners(wake)

    async def close(self) -> None:
        """Nothing here is its own."""
