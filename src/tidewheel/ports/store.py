"""Defines everything that can be asked of one database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidewheel.ports.blocks import BlockStore
from tidewheel.ports.registry import RegistryStore
from tidewheel.ports.runs import RunStore
from tidewheel.ports.server import AccessStore, EventStore
from tidewheel.ports.tasks import TaskStore

if TYPE_CHECKING:
    from tidewheel.core.queue.lease import Notebook


class NotebookStore(Protocol):
    """Texts by name, each held by one process at a time."""

    async def claim_notebook(
        self, name: str, owner: str, lease_seconds: float, *, dead_epoch: int | None = None
    ) -> Notebook | None:
        """Leases a record under its epoch + 1 and returns it; None while another holds it,
        unless that is the one with an epoch whose process is known to be dead."""
        ...

    async def write_notebook(
        self, name: str, epoch: int, body: str, lease_seconds: float
    ) -> bool:
        """Replaces the text and renews the lease; False: another holds it."""
        ...

    async def leave_notebook(self, name: str, epoch: int) -> None:
        """Ends the lease; nothing happens if another holds it."""
        ...

    async def notebook(self, name: str) -> Notebook | None:
        """Returns a record without a lease; None if nobody ever held one of this name."""
        ...


class Store(
    TaskStore,
    RunStore,
    AccessStore,
    EventStore,
    RegistryStore,
    BlockStore,
    NotebookStore,
    Protocol,
):
    """All of it: tasks, runs and who may use them, in one database."""
