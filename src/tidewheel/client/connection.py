"""Connects a client to its store: opens it when first needed, closes only what it opened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from tidewheel.config import StoreSettings, home_directory
from tidewheel.errors import BadSetting
from tidewheel.ports.store import Store
from tidewheel.wiring.stores import is_remote, open_store, store_settings

Where = str | StoreSettings | Store | None
P = ParamSpec("P")
R = TypeVar("R")
Door = TypeVar("Door")


class Connection:
    """Holds the store of a client, which all of its parts share.

    ``token`` is for a server; it takes the place of the user's own token.
    """

    def __init__(self, store: Where = None, *, token: str | None = None) -> None:
        if token is not None:
            store = _with_token(store, token)
        self._given = store
        self._opened: Store | None = None

    @property
    def store(self) -> Store:
        """Returns the store, opened now if it was not before."""
        if self._opened is None:
            if self._given is None or isinstance(self._given, str | StoreSettings):
                self._opened = open_store(self._given)
            else:
                self._opened = self._given
        return self._opened

    @property
    def opened(self) -> Store | None:
        """Returns the store if it is open already."""
        return self._opened

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the store if this client opened it; a second time does nothing."""
        opened, self._opened = self._opened, None
        if opened is not None and opened is not self._given:
            await opened.close()


def _with_token(store: Where, token: str) -> StoreSettings:
    if (store is None or isinstance(store, str | StoreSettings)) and is_remote(store):
        settings = store_settings(store)
        shown = replace(settings.credentials, token=token, origin="the argument token")
        return replace(settings, credentials=shown)
    fault = "a token is given, but no server; give the address of the server, https://HOST"
    raise BadSetting("token", "…", fault=fault)


class ServicePart(Generic[Door]):
    """Is a part of a client, such as ``client.runs``, that passes requests on to a service.

    The service works on the store in this process, or is that of a server.
    """

    _open: Callable[[Store, Path], Door]

    def __init__(self, connection: Connection, home: Path | None = None) -> None:
        self._connection, self._home = connection, home
        self._door: Door | None = None

    @property
    def door(self) -> Door:
        """Returns the service that this part asks; it is made at the first use."""
        if self._door is None:
            home = home_directory() if self._home is None else self._home
            self._door = type(self)._open(self._connection.store, home)
        return self._door


def of_door(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[ServicePart[Any], P], Coroutine[Any, Any, R]]:
    """Returns a method of a part, which calls the method of the same name of its service."""

    @wraps(method)
    async def ask(self: ServicePart[Any], /, *args: P.args, **given: P.kwargs) -> R:
        answer: R = await getattr(self.door, method.__name__)(*args, **given)
        return answer

    return ask
