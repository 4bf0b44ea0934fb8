"""Connections that are kept free, so that workers are heard whoever else is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from tidewheel.config import StoreSettings
from tidewheel.ports.store import Store
from tidewheel.wiring.stores import is_embedded, opened_store, store_settings, with_readers_of

CONNECTIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Where callers are looked up, and where workers report.

    A database server takes reports on connections that nobody else uses. A file has one writer,
    which takes all changes in the order in which they come; only its readers can be others.
    """

    asking: Store
    reporting: Store


@asynccontextmanager
async def kept_reserve(
    where: str | StoreSettings | None, store: Store
) -> AsyncIterator[Reserve]:
    """Connections beside those of a store that is open already."""
    few = replace(store_settings(where), connections_max=CONNECTIONS)
    async with opened_store(few) as second:
        own = with_readers_of(store, second) if is_embedded(where) else second
        yield Reserve(asking=second, reporting=own)
