"""A store whose calls can be made to fail, to take effect unheard, to hang, or to be counted.

It stands between a service and any Store, as the network does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from tidewheel.core.queue.requests import Report, Reported
from tidewheel.errors import Refused, StoreUnreachable
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import StandingClaim, Store

# Answered without a call to the database.
_LOCAL = frozenset({"attend", "listen", "close", "past"})


class FaultyStore:
    """Passes every operation on, unless told otherwise.

    ``near``: it is in the same process as the store, so that a worker may leave claims with it.
    """

    def __init__(self, store: Store, clock: Clock, *, near: bool = False) -> None:
        self._store, self._near = store, near
        self._clock = clock
        self._deaf: Counter[str] = Counter()
        self._mute: Counter[str] = Counter()
        self._delays: dict[str, tuple[float, float]] = {}
        self._refusals: dict[str, Refused | None] = {}
        self._bugs: dict[str, Exception] = {}
        self.calls: Counter[str] = Counter()  # that reached the store, by operation
        self.under_way: Counter[str] = Counter()  # begun and not answered yet
        self.out_of_reach = False

    def loses_requests(self, operation: str, count: int = 1) -> None:
        """The next calls fail before they took effect."""
        self._deaf[operation] += count

    def loses_answers(self, operation: str, count: int = 1) -> None:
        """The next calls take effect, and fail."""
        self._mute[operation] += count

    def delays(self, operation: str, *, before: float = 0.0, after: float = 0.0) -> None:
        """Calls take this long to reach the store, and their answers to come back."""
        self._delays[operation] = (before, after)

    def breaks(self, operation: str, bug: Exception) -> None:
        """Calls raise what no caller expects."""
        self._bugs[operation] = bug

    def refuses_messages(self, task_id: str, refused: Refused | None) -> None:
        """Reports of this task that carry messages are refused; None: no longer."""
        self._refusals[task_id] = refused

    async def report(self, reports: Sequence[Report]) -> list[Reported]:
        """As the store, but for refused messages."""
        bad = {
            position: refused
            for position, one in enumerate(reports)
            if (refused := self._refusals.get(one.holder.task_id)) and one.messages
        }
        good = [one for position, one in enumerate(reports) if position not in bad]
        accepted = await self._pass_on("report", lambda: self._store.report(good))
        answers = iter(cast("list[Reported]", accepted))
        return [
            Reported(task_id=one.holder.task_id, refused=bad[position])
            if position in bad
            else next(answers)
            for position, one in enumerate(reports)
        ]

    def post_claim(self, claim: StandingClaim) -> bool:
        """As the store, if that is near."""
        return self._near and self._store.post_claim(claim)

    def offer_ends(self, reports: Sequence[Report]) -> Awaitable[bool] | None:
        """As the store, if that is near."""
        return self._store.offer_ends(reports) if self._near else None

    def as_store(self) -> Store:
        """The same, as a type checker wants it."""
        return cast("Store", self)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        call = getattr(self._store, operation)
        if operation in _LOCAL:
            return cast("Callable[..., Any]", call)

        async def through(*args: object, **kwargs: object) -> object:
            return await self._pass_on(operation, lambda: call(*args, **kwargs))

        return through

    async def _pass_on(self, operation: str, call: Callable[[], Awaitable[object]]) -> object:
        before, after = self._delays.get(operation, (0.0, 0.0))
        self.under_way[operation] += 1
        try:
            if before:
                await self._clock.sleep(before)
            self._check(operation, self._deaf)
            self.calls[operation] += 1
            if operation in self._bugs:
                raise self._bugs[operation]
            answer = await call()
            if after:
                await self._clock.sleep(after)
            self._check(operation, self._mute)
            return answer
        finally:
            self.under_way[operation] -= 1

    def _check(self, operation: str, losses: Counter[str]) -> None:
        if self.out_of_reach:
            raise StoreUnreachable(f"{operation}: the store is out of reach")
        if losses[operation] > 0:
            losses[operation] -= 1
            raise StoreUnreachable(f"{operation}: lost on the way")
