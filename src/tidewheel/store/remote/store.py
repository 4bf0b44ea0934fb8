"""The store of a server: what a store does, asked for over HTTP.

Clients, workers and people who look find everything here. What a server does for others with
its own store (to watch leases, to drive runs, to know tokens) is refused with a hint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from tidewheel.config import StoreSettings
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.store.remote.access import RemoteAccess
from tidewheel.store.remote.clients import RemoteClients
from tidewheel.store.remote.events import RemoteEvents
from tidewheel.store.remote.looking import RemoteLooking
from tidewheel.store.remote.notifications import RemoteNotifications
from tidewheel.store.remote.transport import Transport
from tidewheel.store.remote.workers import RemoteWorkers

if TYPE_CHECKING:
    from tidewheel.ports.blocks import BlockDoor
    from tidewheel.ports.registry import RegistryDoor
    from tidewheel.ports.runs import RunDoor

Listener = Callable[[Wake], None]


class NeedsStore(Refused):
    """This cannot be done through a server."""

    code = "needs_store"

    def __init__(self, operation: str) -> None:
        self.operation = operation
        super().__init__(
            f"{operation.replace('_', ' ')} is done where the database is, not through a "
            "server; give the store itself: --store postgresql://… (or sqlite:///PATH there)"
        )


class RemoteStore(
    RemoteClients,
    RemoteWorkers,
    RemoteLooking,
    RemoteAccess,
    RemoteEvents,
    RemoteNotifications,
):
    """A TaskStore, and the tokens of an AccessStore."""

    def __init__(self, transport: Transport, limits: SubmitLimits | None = None) -> None:
        super().__init__(transport, limits)
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Told of what a worker's channel brings; others ask again from time to time."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell_listeners(self, wake: Wake) -> None:
        """Call everybody in this process who waits; from any thread."""
        for listener in tuple(self._listeners):
            listener(wake)

    def run_door(self) -> RunDoor:
        """Its runs, which are looked at and commanded through the server as well."""
        from tidewheel.store.remote.run_door import RemoteRunDoor

        return RemoteRunDoor(self.transport)

    def registry_door(self) -> RegistryDoor:
        """Its registry, through the server as well."""
        from tidewheel.store.remote.registry_door import RemoteRegistryDoor

        return RemoteRegistryDoor(self.transport)

    def block_door(self) -> BlockDoor:
        """Its blocks and objects, through the server as well."""
        from tidewheel.store.remote.block_door import RemoteBlockDoor

        return RemoteBlockDoor(self.transport)

    async def close(self) -> None:
        await self.transport.close()

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        """What the ports promise and only the store itself can do."""
        if not any(name in vars(port) for port in Store.__mro__):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> NoReturn:
            raise NeedsStore(name)

        return refuse


def open_remote_store(settings: StoreSettings) -> RemoteStore:
    """The store of the server at an address; nothing is asked yet."""
    shown = settings.credentials
    transport = Transport(settings.url, shown.token, origin=shown.origin, ca=shown.ca)
    return RemoteStore(transport, settings.submit)
