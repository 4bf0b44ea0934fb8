"""What the heartbeat bench needs from a store, so that any store can stand behind it."""

from __future__ import annotations

from typing import Protocol


class LeaseStore(Protocol):
    """A store that holds leases of many workers; one object per bench run."""

    async def open(self, url: str) -> None:
        """Connect, and make an empty schema."""
        ...

    async def lease(self, worker: int, leases: int, lease_seconds: float) -> None:
        """Submit and claim so many tasks for the worker."""
        ...

    async def heartbeat(self, worker: int) -> int:
        """Extend all leases of the worker; how many it still holds."""
        ...

    async def take_back_lapsed(self) -> int:
        """What the monitor does each second; how many leases it took back."""
        ...

    def cpu_seconds(self) -> float:
        """Spent so far by whoever answers the workers, the database apart."""
        ...

    async def close(self) -> None: ...
