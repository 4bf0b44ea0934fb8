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
    failpoint,
    found_server,
    home_directory,
    own_store_url,
    store_url,
    submit_limits,
)
from tidewheel.credentials import credentials
from tidewheel.errors import BadSetting, NoStore, StoreUnreachable, UnsafeStore
from tidewheel.failpoints import Failpoint
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive

if TYPE_CHECKING:
    from pathlib import Path

    from tidewheel.store.migrate import MigrationReport

STORES_ACCEPTED = (
    "sqlite:///PATH, postgresql://USER@HOST/DATABASE, or the URL of a server, https://HOST"
)
SERVERS = ("http:", "https:")


def store_settings(where: Where = None) -> StoreSettings:
    """Returns the settings of a store: the one given, else the environment's, else this user's
    running server, else the file in the state directory."""
    if isinstance(where, StoreSettings):
        return where
    url = where or store_url() or _served_url() or own_store_url()
    if not url.startswith(SERVERS):
        return StoreSettings(url=url, submit=submit_limits())
    return StoreSettings(url=url, submit=submit_limits(), credentials=credentials(url))


def _served_url() -> str | None:
    """Returns the address of this user's running server; None if none runs, or if it serves the
    user's own file, which can be opened without it."""
    found = found_server(home_directory())
    if found is None or found.store == own_store_url():
        return None
    return found.url if is_process_alive(found.process) else None


def is_remote(where: Where = None) -> bool:
    """Says whether the store is behind a server, which is asked over HTTP."""
    return store_settings(where).url.startswith(SERVERS)


def require_database(where: Where, role: str) -> None:
    """Raises BadSetting if the store is behind a server: the role needs the database itself."""
    if is_remote(where):
        fault = (
            f"{role} needs the database itself, not a server; for your own store leave out "
            "--server and unset TIDEWHEEL_SERVER, or name the database: --store "
            "sqlite:///PATH (on the machine of the server) or --store "
            "postgresql://USER@HOST/DATABASE"
        )
        raise BadSetting("store", store_settings(where).url, fault=fault)


def is_embedded(where: Where = None) -> bool:
    """Says whether the store is a SQLite file of this machine, which nobody else watches
    over."""
    return store_settings(where).url.startswith("sqlite:")


def store_exists(where: Where = None) -> bool:
    """Says whether the store exists; only a file can be missing, and opening it would make
    it."""
    return _missing_file(where) is None


def _missing_file(where: Where) -> str | None:
    """Returns the file that opening the store would make; None if it exists, or the store is no
    file."""
    url = store_settings(where).url
    if not url.startswith("sqlite:"):
        return None
    from tidewheel.store.sqlite_file import file_path

    return None if file_path(url).exists() else str(file_path(url))


def require_store(where: Where = None) -> None:
    """Raises NoStore if the store's file is missing: a command that only reads makes none."""
    if (path := _missing_file(where)) is not None:
        origin = "" if where or store_url() is None else " (TIDEWHEEL_STORE)"
        raise NoStore(store_settings(where).url + origin, path)


def require_if_named(where: Where = None) -> None:
    """Raises NoStore if a store was named whose file is missing.

    More likely than not its name is a mistake. This user's own store, which nobody names, may
    still be made.
    """
    if where or store_url():
        require_store(where)


def named_store_to_make(where: Where = None) -> str | None:
    """Returns the file that opening the store would make; None if it exists, or if no store was
    named."""
    return _missing_file(where) if where or store_url() else None


@contextmanager
def store_to_read(where: str | None = None) -> Iterator[Where]:
    """Yields the store for a command that only reads.

    Where this user has none yet, it is an empty one, so that reading makes no file.
    """
    if store_exists(where):
        yield where
        return
    require_if_named(where)
    with empty_store() as empty:
        yield empty


@contextmanager
def empty_store() -> Iterator[StoreSettings]:
    """Yields the settings of an empty temporary store, whose file is deleted afterwards."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="tidewheel-") as folder:
        yield StoreSettings(url=f"sqlite:///{folder}/empty.db", submit=submit_limits())


def open_store(where: Where = None) -> Store:
    """Opens the store at an address; without one, the store that ``store_settings`` finds."""
    settings = store_settings(where)
    match settings.url.partition(":")[0]:
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
            raise _unknown_store(settings.url)


def with_readers_of(store: Store, second: Store) -> Store:
    """Returns a store on one SQLite file that writes through the first store and reads through
    the second."""
    from tidewheel.store.sqlite import SharedWriter

    return SharedWriter(store, second)


@cache
def this_failpoint() -> Failpoint:
    """Returns the failpoint of this process; there is one, so that all parts count their passes
    together."""
    return failpoint()


@asynccontextmanager
async def opened_store(where: Where = None) -> AsyncIterator[Store]:
    """Yields an open store, and closes it at the end of the block."""
    store = open_store(where)
    try:
        yield store
    finally:
        await store.close()


def migrate_store(where: Where = None) -> MigrationReport:
    """Migrates a store to the schema of this program, and returns what was done."""
    require_database(where, "a migration")
    require_store(where)
    settings = store_settings(where)
    match settings.url.partition(":")[0]:
        case "sqlite":
            from tidewheel.store.sqlite_file import migrate_sqlite

            return migrate_sqlite(settings)
        case "postgresql" | "postgres":
            _require_psycopg()
            from tidewheel.store.postgres import connect, translated
            from tidewheel.store.postgres_schema import migrate

            with translated(), connect(settings) as connection:
                return migrate(connection)
        case _:
            raise _unknown_store(settings.url)


def back_up_store(where: Where, target: Path) -> None:
    """Copies a store that is a file to a new file."""
    from tidewheel.store.sqlite_file import copy_sqlite

    require_database(where, "a backup")
    require_store(where)
    copy_sqlite(store_settings(where), target)


def _unknown_store(url: str) -> BadSetting:
    """Returns the refusal of an address; an address may hold a password, which is left out."""
    scheme, colon, _ = url.partition(":")
    if colon:
        return BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)
    return BadSetting(
        "store", url, f"{STORES_ACCEPTED}; if {url} is a file, write sqlite:///{url}"
    )


def _require_psycopg() -> None:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UnsafeStore(
            "PostgreSQL needs the driver psycopg, which is not installed. "
            "Install it: pip install 'tidewheel[postgres]'"
        )
