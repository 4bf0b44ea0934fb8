"""Defines the clock by which services wait."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells local time for waiting; never for leases, whose deadlines are times of the
    database's clock."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
