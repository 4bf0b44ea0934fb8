"""Lets work that takes long begin in a fair order, a few pieces at a time.

Theory of operation
-------------------
Each piece of work is asked for by somebody, who is known by keys, from the widest on: a team
and its token, or a token and the names that it asks for. Of each key only so many pieces are at
work at once. Whenever a place is free, the piece goes on whose first key was served longest
ago; between pieces of the same first key the next key decides, then who came first. So nobody
gets more turns by asking more often, nor by inventing names: a new name of a token comes behind
the token.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

KEYS_MAX = 10_000  # whose last turns are remembered


class Turn:
    """Is a place to work; ``end`` gives it back, once."""

    def __init__(self, turns: Turns, keys: tuple[str, ...]) -> None:
        self._turns, self._keys = turns, keys
        self._is_over = False

    def end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._turns.give_back(self._keys)


@dataclass(slots=True, eq=False)
class _Waiting:
    keys: tuple[str, ...]
    number: int
    granted: asyncio.Future[Turn]


class Turns:
    """Has so many places, of which each key may have some; all calls are of one event loop."""

    def __init__(self, places: int, each_max: int) -> None:
        self._free, self._each_max = places, each_max
        self._held: Counter[str] = Counter()
        self._last: dict[str, int] = {}  # when each key was served last, the oldest first
        self._waiting: dict[_Waiting, None] = {}
        self._numbers = count(1)

    @property
    def held(self) -> int:
        """Returns how many pieces of work are under way, counted by key."""
        return sum(self._held.values())

    async def begin(self, keys: Sequence[str]) -> Turn:
        """Waits until it is the turn of who has these keys; whoever gets a turn has to end
        it."""
        one = _Waiting(
            tuple(dict.fromkeys(keys)),
            next(self._numbers),
            asyncio.get_running_loop().create_future(),
        )
        self._waiting[one] = None
        self._go_on()
        try:
            return await one.granted
        except asyncio.CancelledError:
            if one.granted.done() and not one.granted.cancelled():
                one.granted.result().end()
            raise
        finally:
            self._waiting.pop(one, None)

    def give_back(self, keys: tuple[str, ...]) -> None:
        """Frees the place of a turn that is over."""
        self._free += 1
        self._held.subtract(keys)
        for key in keys:
            if not self._held[key]:
                del self._held[key]
        self._go_on()

    def _go_on(self) -> None:
        while self._free and (found := self._next()) is not None:
            del self._waiting[found]
            self._free -= 1
            self._held.update(found.keys)
            for key in found.keys:
                self._last.pop(key, None)
                self._last[key] = next(self._numbers)
            while len(self._last) > KEYS_MAX:
                del self._last[next(iter(self._last))]
            found.granted.set_result(Turn(self, found.keys))

    def _next(self) -> _Waiting | None:
        able = [
            one
            for one in self._waiting
            if not one.granted.done()
            and all(self._held[key] < self._each_max for key in one.keys)
        ]
        return min(able, key=self._rank, default=None)

    def _rank(self, one: _Waiting) -> tuple[list[int], int]:
        return [self._last.get(key, 0) for key in one.keys], one.number


def call_in(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *facts: object) -> None:
    """Calls a function in an event loop, from any thread; not if the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what, *facts)
