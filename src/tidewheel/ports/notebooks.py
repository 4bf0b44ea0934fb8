"""What services need to remember something over their own death, as a Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidewheel.core.queue.lease import Notebook


class NotebookStore(Protocol):
    """Texts by name, each held by one process at a time."""

    async def claim_notebook(
        self, name: str, owner: str, lease_seconds: float, *, dead_epoch: int | None = None
    ) -> Notebook | None:
        """Epoch + 1, and what is written there; None while another holds it, unless that is
        one with an epoch of which is known that its process is dead."""
        ...

    async def write_notebook(
        self, name: str, epoch: int, body: str, lease_seconds: float
    ) -> bool:
        """Instead of what was there; the lease runs from now on. False: another holds it."""
        ...

    async def leave_notebook(self, name: str, epoch: int) -> None:
        """Let go of it; nothing happens if another holds it."""
        ...

    async def notebook(self, name: str) -> Notebook | None:
        """To look at; None if nobody ever held one of this name."""
        ...
