"""A thread with an event loop of its own, for what takes long to work out.

A view of a run with thousands of tasks is seconds of computing. In the loop that answers
requests every heartbeat would wait for it, and leases would run out; here it only shares the
interpreter. One thread does all such work, one piece between two waits at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Apart:
    """The thread begins with the first work that it is given."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What comes of it; whoever is cancelled here ends it there, too."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            body = (self._loop,)
            threading.Thread(target=_serve, args=body, name="views", daemon=True).start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """Nothing is worked out any more."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        for left in asyncio.all_tasks(loop):
            left.cancel()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
