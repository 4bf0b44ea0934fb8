"""Defines a clock that can be waited for."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Tells local time for waiting; never for leases, which live on the database's clock."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
