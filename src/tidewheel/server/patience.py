"""Waiting for others in a request, and not longer than the server means to live."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from tidewheel.server.call import Call

Result = TypeVar("Result")


async def unless_stopping(call: Call, work: Coroutine[Any, Any, Result]) -> Result | None:
    """What comes of it; None if the server was told to stop before. It takes nobody's place."""
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
