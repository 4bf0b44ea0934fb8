"""Defines the clock by which services wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Calls something later, unless it is cancelled."""

    def cancel(self) -> object: ...


class Clock(Protocol):
    """Tells local time for waiting; never for leases, whose deadlines are times of the
    database's clock."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Has a function called in the running loop; one that is cancelled may be called."""
