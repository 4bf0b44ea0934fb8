"""Waiting for news of the store, for as long as the server goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from tidewheel.core.queue.requests import Wake
from tidewheel.server.call import Call


class NewsListener:
    """``with NewsListener(call, concerns) as ears: await ears.heard(seconds)``."""

    def __init__(self, call: Call, concerns: Callable[[Wake], bool]) -> None:
        self._call, self._concerns = call, concerns
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._stop_listening: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        self._stop_listening = self._call.store.listen(self._ring)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_listening()

    def _ring(self, wake: Wake) -> None:
        if self._concerns(wake):
            self._loop.call_soon_threadsafe(self._woken.set)

    async def heard(self, seconds: float) -> bool:
        """Waits for news; False if the time is over, or the server ends, before any comes."""
        news = asyncio.create_task(self._woken.wait())
        end = asyncio.create_task(self._call.stopping.wait())
        try:
            with suppress(TimeoutError), self._call.place.resting():
                await asyncio.wait(
                    (news, end), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            news.cancel()
            end.cancel()
        was_heard = self._woken.is_set()
        self._woken.clear()
        return was_heard


# Waiting for others in a request, and not longer than the server means to live.


Result = TypeVar("Result")


async def unless_stopping(call: Call, work: Coroutine[Any, Any, Result]) -> Result | None:
    """Returns the result of the work; None if the server was told to stop before.

    While it waits, the request takes no place of another one.
    """
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(call.stopping.wait())
    try:
        with call.place.resting():
            await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        for one in (doing, stopping):
            one.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await one
