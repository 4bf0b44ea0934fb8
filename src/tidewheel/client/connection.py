"""Connects a client to its store: opens one when it is first needed, and closes only that."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

from tidewheel.config import StoreSettings
from tidewheel.errors import BadSetting
from tidewheel.ports.tasks import TaskStore
from tidewheel.wiring.stores import is_remote, open_store, store_settings

Where = str | StoreSettings | TaskStore | None


class Connection:
    """Is the connection to a store that all parts of a client share.

    A token is for a server; it takes the place of the user's own.
    """

    def __init__(self, store: Where = None, *, token: str | None = None) -> None:
        if token is not None:
            store = _with_token(store, token)
        self._given = store
        self._opened: TaskStore | None = None

    @property
    def store(self) -> TaskStore:
        """Returns the store, opened now if it was not before."""
        if self._opened is None:
            if self._given is None or isinstance(self._given, str | StoreSettings):
                self._opened = open_store(self._given)
            else:
                self._opened = self._given
        return self._opened

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    raise BadSetting("token", "…", "together with the address of a server, https://HOST")
