"""Makes the schema of a PostgreSQL database, checks its version, and migrates it."""

from __future__ import annotations

from typing import Any

import psycopg

from tidewheel.errors import UnsafeStore
from tidewheel.store.migrate import (
    Migration,
    MigrationReport,
    check_version,
    known_version,
    load_migrations,
    pending,
)

# Two programs that start at once must not both build the schema.
_LOCK = b"SELECT pg_advisory_xact_lock(hashtextextended('tidewheel.schema', 0))"
_EXISTS = b"SELECT to_regclass('tidewheel.schema_version') IS NOT NULL"
_VERSIONS = b"SELECT version FROM tidewheel.schema_version"
_NOTEBOOKS_WERE_SIXTH = b"""
UPDATE tidewheel.schema_version SET version = 8
 WHERE version = 6
   AND NOT EXISTS (SELECT 1 FROM tidewheel.schema_version WHERE version > 6)
   AND to_regclass('tidewheel.notebook') IS NOT NULL
"""
_VERSION_TABLE = b"""
CREATE SCHEMA IF NOT EXISTS tidewheel;
CREATE TABLE IF NOT EXISTS tidewheel.schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_APPLIED = b"INSERT INTO tidewheel.schema_version (version) VALUES (%s)"


def prepare(
    connection: psycopg.Connection[Any], migrations: tuple[Migration, ...] | None = None
) -> None:
    """Makes the schema if there is none; refuses another version than this program's."""
    known = migrations or load_migrations("postgres")
    _refuse_unsafe_settings(connection)
    applied = _applied(connection)
    if not applied:
        # One transaction: a process that starts now must not meet a schema that is half made.
        with connection.transaction():
            connection.execute(_LOCK)
            migrate(connection, known)
    else:
        check_version(known, applied)


def migrate(
    connection: psycopg.Connection[Any], migrations: tuple[Migration, ...] | None = None
) -> MigrationReport:
    """Brings the schema to this program's version; each migration is one transaction."""
    known = migrations or load_migrations("postgres")
    applied = _applied(connection)
    pending(known, applied)
    for migration in known:
        with connection.transaction():
            connection.execute(_LOCK)
            connection.execute(_VERSION_TABLE)
            connection.execute(_NOTEBOOKS_WERE_SIXTH)
            if migration in pending(known, _applied(connection)):
                connection.execute(migration.sql.encode())
                connection.execute(_APPLIED, (migration.version,))
    first = max(applied, default=0)
    return MigrationReport(from_version=first, to_version=known_version(known))


def _applied(connection: psycopg.Connection[Any]) -> set[int]:
    """Returns the versions that were applied; none if the database has no such tables."""
    if not _value(connection, _EXISTS):
        return set()
    return {version for (version,) in connection.execute(_VERSIONS)}


def _refuse_unsafe_settings(connection: psycopg.Connection[Any]) -> None:
    for setting, event, advice in (
        ("fsync", "power cut", "Set fsync = on in postgresql.conf"),
        ("full_page_writes", "power cut", "Set full_page_writes = on in postgresql.conf"),
        ("synchronous_commit", "crash", "Set it to on for this database or user"),
    ):
        if _value(connection, b"SHOW " + setting.encode()) == "off":
            raise UnsafeStore(
                f"PostgreSQL runs with {setting} = off: a {event} would lose tasks that were "
                f"acknowledged. {advice}"
            )


def _value(connection: psycopg.Connection[Any], sql: bytes) -> Any:  # noqa: ANN401 - any column
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]
