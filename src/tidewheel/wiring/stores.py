"""Finds the store behind an address, and opens it.

Imports are made when something is asked for: a command that only looks must not load what
runs jobs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, cast

from tidewheel.config import (
    StoreSettings,
    Where,
    credentials,
    failpoint,
    found_server,
    home_directory,
    own_store_url,
    store_url,
    submit_limits,
)
from tidewheel.errors import BadSetting, NoStore, StoreUnreachable, UnsafeStore
from tidewheel.failpoints import Failpoint
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive

if TYPE_CHECKING:
    from tidewheel.store.migrate import MigrationReport

STORES_ACCEPTED = (
    "sqlite:///PATH, postgresql://USER@HOST/DATABASE, or the URL of a server, https://HOST"
)
SERVERS = ("http:", "https:")


def store_settings(where: Where = None) -> StoreSettings:
    """Returns settings for an address; without one, for what the environment names, the store
    that this user's server stands before, or for the file in the state directory."""
    if isinstance(where, StoreSettings):
        return where
    url = where or store_url() or _served_url() or own_store_url()
    if not url.startswith(SERVERS):
        return StoreSettings(url=url, submit=submit_limits())
    return StoreSettings(url=url, submit=submit_limits(), credentials=credentials(url))


def _served_url() -> str | None:
    """Returns this user's running server, if it stands before another store than this file."""
    found = found_server(home_directory())
    if found is None or found.store == own_store_url():
        return None
    return found.url if is_process_alive(found.process) else None


def is_remote(where: Where = None) -> bool:
    """Returns whether the store is a server's, to be asked over HTTP."""
    return store_settings(where).url.startswith(SERVERS)


def require_database(where: Where, role: str) -> None:
    """Raises BadSetting for a server: the role is done where the database is."""
    if is_remote(where):
        raise BadSetting(
            "store",
            store_settings(where).url,
            f"the store itself for {role}: sqlite:///PATH or postgresql://USER@HOST/DATABASE "
            "(--store URL); what a server stands before, its own machine can reach",
        )


def is_embedded(where: Where = None) -> bool:
    """Returns whether the store is a file of this machine, which nobody else watches over."""
    return store_settings(where).url.startswith("sqlite:")


def store_exists(where: Where = None) -> bool:
    """Returns whether there is anything to look at: opening a file would make it."""
    return _missing_file(where) is None


def _missing_file(where: Where) -> str | None:
    """Returns the file that opening the store would make."""
    url = store_settings(where).url
    if not url.startswith("sqlite:"):
        return None
    from tidewheel.store.sqlite_file import file_path

    return None if file_path(url).exists() else str(file_path(url))


def require_store(where: Where = None) -> None:
    """Raises NoStore if there is no store: what only looks makes none."""
    if (path := _missing_file(where)) is not None:
        origin = "" if where or store_url() is None else " (TIDEWHEEL_STORE)"
        raise NoStore(store_settings(where).url + origin, path)


def require_if_named(where: Where = None) -> None:
    """Raises NoStore if a store was named that is not there: more likely than not its name is
    a mistake. The store of this user may still be made."""
    if where or store_url():
        require_store(where)


def named_store_to_make(where: Where = None) -> str | None:
    """Returns the file that opening the store would make, if it was named."""
    return _missing_file(where) if where or store_url() else None


@contextmanager
def store_to_read(where: str | None = None) -> Iterator[Where]:
    """Yields the store for a command that only looks: an empty one where this user has none
    yet, so that looking makes no file."""
    if store_exists(where):
        yield where
        return
    require_if_named(where)
    with empty_store() as empty:
        yield empty


@contextmanager
def empty_store() -> Iterator[StoreSettings]:
    """Yields a store with nothing in it, which is gone afterwards."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="tidewheel-") as folder:
        yield StoreSettings(url=f"sqlite:///{folder}/empty.db", submit=submit_limits())


def open_store(where: Where = None) -> Store:
    """Opens the store at an address; without one, that of this user."""
    settings = store_settings(where)
    match scheme := settings.url.partition(":")[0]:
        case "sqlite":
            from tidewheel.store.sqlite import open_sqlite_store

            try:
                return open_sqlite_store(settings, failpoint=this_failpoint())
            except OSError as error:
                raise StoreUnreachable(
                    f"the store {settings.url} cannot be opened ({error.strerror}); "
                    "check that its folder is there and can be written"
                ) from error
        case "postgresql" | "postgres":
            _require_psycopg()
            from tidewheel.store.postgres import open_postgres_store

            return open_postgres_store(settings, failpoint=this_failpoint())
        case "http" | "https":
            from tidewheel.store.remote import open_remote_store

            # It has the parts of a Store that can be asked of a server, and refuses the rest.
            return cast("Store", open_remote_store(settings))
        case _:
            # The scheme alone: an address may hold a password.
            raise BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)


def with_readers_of(store: Store, second: Store) -> Store:
    """Returns a store on one file that writes through the first and reads by the second."""
    from tidewheel.store.store import SharedWriter

    return SharedWriter(store, second)


@cache
def this_failpoint() -> Failpoint:
    """Returns the failpoint of this process, all of whose parts count their passes together."""
    return failpoint()


@asynccontextmanager
async def opened_store(where: Where = None) -> AsyncIterator[Store]:
    """Opens a store, and closes it at the end of the block."""
    store = open_store(where)
    try:
        yield store
    finally:
        await store.close()


def migrate_store(where: Where = None) -> MigrationReport:
    """Brings a store to the schema of this program."""
    require_database(where, "a migration")
    require_store(where)
    settings = store_settings(where)
    match scheme := settings.url.partition(":")[0]:
        case "sqlite":
            from tidewheel.store.sqlite_file import migrate_sqlite

            return migrate_sqlite(settings)
        case "postgresql" | "postgres":
            _require_psycopg()
            from tidewheel.store.postgres import connect, migrate, translated

            with translated(), connect(settings) as connection:
                return migrate(connection)
        case _:
            # The scheme alone: an address may hold a password.
            raise BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)


def _require_psycopg() -> None:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UnsafeStore(
            "PostgreSQL needs the driver psycopg, which is not installed. "
            "Install it: pip install 'tidewheel[postgres]'"
        )
