"""Requests with the same idempotency key come one after the other.

Whoever got no answer in time sends the same again while the first is still at work. It waits,
and gets the answer of the first, instead of being done beside it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidewheel.server.admission import Place


class KeysUnderWay:
    """Of one server; what another one does at the same moment it does not know."""

    def __init__(self) -> None:
        self._locks: dict[tuple[int, str], asyncio.Lock] = {}
        self._users: Counter[tuple[int, str]] = Counter()

    @asynccontextmanager
    async def alone(self, token: int, key: str, place: Place) -> AsyncIterator[None]:
        """Until nobody else is at work with this key; waiting takes nobody's place."""
        name = (token, key)
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] += 1
        try:
            with place.resting():
                await lock.acquire()
            try:
                yield
            finally:
                lock.release()
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]
