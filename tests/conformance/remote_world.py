"""A store that is asked over HTTP: a real server on a socket, before a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tests.conformance.door import Door
from tests.conformance.worlds import HandClock, World
from tests.kit.memory import MemoryStore
from tests.support.http_server import RunningServer
from tidewheel.client.tokens import make_token
from tidewheel.config import Credentials, ServerSettings, StoreSettings
from tidewheel.core.queue.access import EVERYTHING, Grant, Scope
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.store.remote import RemoteStore, open_remote_store

ADMIN = Grant(scopes=frozenset({Scope.ADMIN}), names=EVERYTHING)
# What a server does for others with its own store.
OF_MONITORS = frozenset(
    {"take_back_lapsed_leases", "expired_tasks", "delete_tasks", "delete_workers"}
)


class Changeable:
    """One server serves many tests, each with a store of its own."""

    def __init__(self) -> None:
        self.store = MemoryStore(HandClock())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class ServerBefore(RunningServer):
    """A server before a store that a test puts there."""

    def __init__(self) -> None:
        self.behind = Changeable()
        settings = ServerSettings(port=0, failures_max=1_000)
        super().__init__("", settings)

    def opened_store(self) -> Any:
        return nullcontext(self.behind)


class RemoteWorld(World):
    """Every process that uses the store asks the server; monitors stand behind it."""

    kind = "remote"

    def __init__(self, server: ServerBefore) -> None:
        super().__init__()
        self.clock = HandClock()
        self._server, self._token = server, ""

    def _open(self, limits: SubmitLimits, chance: Callable[[], float]) -> Door:
        if not self._token:
            self._server.behind.store = MemoryStore(self.clock, chance=chance, limits=limits)
            self._token, _ = self._server.do(
                make_token(self._server.behind.store, "a test", ADMIN)
            )
        settings = StoreSettings(
            url=f"http://{self._server.address}",
            credentials=Credentials(token=self._token),
            submit=limits,
        )

        async def opening() -> RemoteStore:
            return open_remote_store(settings)

        return RemoteDoor(opening, self._server)

    def agrees(self, ours: Any, theirs: Any) -> bool:
        """Of several reasons to refuse, a server sees first who speaks; and it names a field as
        its caller did."""
        if ours == theirs or not (_is_refusal(ours) and _is_refusal(theirs)):
            return bool(ours == theirs)
        return "there is no worker" in ours[2] or ours[:2] == theirs[:2] == INVALID

    def execute(self, statement: str, given: dict[str, Any] | None = None) -> list[Any]:
        raise AssertionError(f"a server speaks no SQL: {statement} {given}")


class RemoteDoor(Door):
    """What monitors do, they do with the store behind the server."""

    def __init__(self, opening: Callable[[], Any], server: ServerBefore) -> None:
        super().__init__(opening)
        self._server = server

    def __getattr__(self, name: str) -> Any:
        if name not in OF_MONITORS:
            return super().__getattr__(name)
        operation = getattr(self._server.behind.store, name)
        return lambda *given, **options: self._server.do(_awaited(operation(*given, **options)))


INVALID = ("InvalidTask", "invalid")


def _is_refusal(answer: Any) -> bool:
    return isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[0], str)


async def _awaited(answer: Any) -> Any:
    return await answer if asyncio.iscoroutine(answer) else answer
