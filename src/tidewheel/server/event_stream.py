"""An answer that stays open: sent as it comes, ended when nobody reads any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tidewheel.errors import Unavailable
from tidewheel.server.metrics import Metrics
from tidewheel.server.protocol import ABORT

SEND_SECONDS_MAX = 30.0  # then nobody reads at the other end
HEADERS = {"x-accel-buffering": "no"}  # a proxy shall pass on each event at once


class EventStream(Response):
    """Server-sent events from an iterator, which is closed with the connection."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], metrics: Metrics) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events, self._metrics = events, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        abort: Callable[[], None] = scope["extensions"][ABORT]["call"]
        sending = asyncio.ensure_future(self._send_all(send))
        gone = asyncio.ensure_future(_gone(receive))
        self._metrics.streams += 1
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except TimeoutError:
            abort()  # a close would wait for a reader that does not read
            await gone
        finally:
            self._metrics.streams -= 1
            gone.cancel()
            sending.cancel()
            with suppress(asyncio.CancelledError, TimeoutError):
                await sending

    async def _send_all(self, send: Send) -> None:
        status, headers = self.status_code, self.raw_headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        # Where the store does not answer, whoever reads comes again and is told then.
        with suppress(Unavailable):
            async with aclosing(self._events) as events:  # type: ignore[type-var]
                async for text in events:
                    await self._send(send, text, more=True)
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, text: bytes, *, more: bool) -> None:
        async with asyncio.timeout(SEND_SECONDS_MAX):
            await send({"type": "http.response.body", "body": text, "more_body": more})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
