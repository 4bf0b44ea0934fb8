"""Stands before the store of a server: what a store does is asked for over HTTP.

Clients, workers and people who look find everything here. What a server does for others with
its own store (to watch leases, to drive runs, to know tokens) is refused with a hint.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NoReturn

from tidewheel.api.operations import Service
from tidewheel.api.wire import Fields, instant, read, read_all
from tidewheel.config import StoreSettings
from tidewheel.core.queue.access import AuditEntry, NewToken, TokenView
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound, Refused, Unavailable
from tidewheel.ports.runs import BringsNotifications
from tidewheel.ports.server import AccessStore
from tidewheel.ports.store import Store
from tidewheel.store.remote.connection import Query
from tidewheel.store.remote.operations import ServerPart, asks
from tidewheel.store.remote.tasks import RemoteReads, RemoteWrites
from tidewheel.store.remote.transport import Transport
from tidewheel.store.remote.workers import RemoteWorkers

if TYPE_CHECKING:
    from tidewheel.core.operator.stream import EventFilter, FollowedEvent
    from tidewheel.ports.blocks import BlockDoor
    from tidewheel.ports.registry import RegistryDoor
    from tidewheel.ports.runs import RunDoor


class RemoteAccess(ServerPart):
    """The part of an AccessStore that is not a server's own business."""

    async def create_token(self, new: NewToken) -> TokenView:
        body = {
            "name": new.name,
            "scopes": sorted(new.grant.scopes),
            "queues": new.grant.queues,
            "workflows": new.grant.workflows,
            "lasts": new.lasts_seconds,
            "digest": new.digest,
        }
        response = await self.transport.call("POST", "/tokens", body=body)
        return read(TokenView, response.part("stored", Fields))

    async def token(self, number: int) -> tuple[TokenView, Instant]:
        store = await self.transport.call("GET", "/store")
        for view in await self.tokens():
            if view.number == number:
                return view, instant(store.json["now"])
        raise NotFound("token", str(number))

    tokens = asks(AccessStore.tokens)
    revoke_token = asks(AccessStore.revoke_token)

    async def login_link(self) -> str:
        """Returns a link with which a browser logs in, once, with this token's rights."""
        response = await self.transport.call("POST", "/login-links")
        return self.transport.url + response.part("path", str)

    async def audit(self, before: int | None = None, count: int = 100) -> list[AuditEntry]:
        query: Query = {"before": before, "limit": count}
        response = await self.transport.call("GET", "/audit", query=query)
        return read_all(AuditEntry, response.part("entries", list[Fields]))


# Events.


PAUSE_SECONDS = 0.2
PAUSE_SECONDS_MAX = 5.0


class RemoteEvents(ServerPart):
    """Follows along; a connection that is lost costs nothing but time."""

    async def follow_events(
        self, since: str | None, which: EventFilter
    ) -> AsyncIterator[FollowedEvent]:
        """Yields events until the caller ends it; Unavailable only if never connected."""
        failures, last, is_begun = 0, since, False
        while True:
            try:
                async with aclosing(self._stream(last, which)) as stream:
                    async for event in stream:
                        failures, last = 0, event.id
                        if event.kind != "start" or not is_begun:
                            yield event
                        is_begun = True
            except Unavailable:
                if not is_begun:
                    raise
            failures += 1
            # Anything up to the bound: a herd that lost its server comes back spread.
            longest = min(PAUSE_SECONDS * 2.0 ** min(failures, 10), PAUSE_SECONDS_MAX)
            await asyncio.sleep(random.uniform(0.0, longest))

    async def _stream(
        self, last: str | None, which: EventFilter
    ) -> AsyncGenerator[FollowedEvent, None]:
        from tidewheel.core.operator.stream import FollowedEvent

        query = {"run": which.run, "queue": which.queue, "kind": which.kind}
        events = self.transport.events("/events", query=query, last_event_id=last)
        async with aclosing(events) as told:  # type: ignore[type-var]
            async for event in told:
                yield FollowedEvent(event.event, event.id or "", event.json)


# Notifications.


class RemoteNotifications(ServerPart):
    """``ports.runs.BringsNotifications`` through a server."""

    notifications = asks(BringsNotifications.notifications, Service.NOTIFICATIONS)
    try_notifications = asks(BringsNotifications.try_notifications, Service.NOTIFICATIONS)


# The whole store.


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
    RemoteWrites,
    RemoteWorkers,
    RemoteReads,
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
        """Returns the service for runs, which asks the server as well."""
        from tidewheel.store.remote.runs import RemoteRunDoor

        return RemoteRunDoor(self.transport)

    def registry_door(self) -> RegistryDoor:
        """Returns the registry, which asks the server as well."""
        from tidewheel.store.remote.workflows import RemoteRegistryDoor

        return RemoteRegistryDoor(self.transport)

    def block_door(self) -> BlockDoor:
        """Returns the service for blocks and objects, which asks the server as well."""
        from tidewheel.store.remote.workflows import RemoteBlockDoor

        return RemoteBlockDoor(self.transport)

    async def close(self) -> None:
        await self.transport.close()

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        """Refuses what the ports promise and only the store itself can do."""
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
