"""Schema versions that do not exist yet, and a process that migrates to them and may die of it.

`python -m tests.support.later_versions URL [N]` migrates the store at URL. On SQLite it kills
itself before its N-th statement, whichever that is; on PostgreSQL a test makes it wait at one
of the advisory locks that the second version asks for.
"""

from __future__ import annotations

import os
import signal
import sys

import apsw

from tidewheel.config import StoreSettings
from tidewheel.store.migrate import Migration, MigrationReport, known_version, load_migrations
from tidewheel.store.sqlite_file import migrate_sqlite

# What a version may do to tables and rows; doing any of it twice shows.
SECOND = (
    "ALTER TABLE {schema}task ADD COLUMN colour TEXT",
    "UPDATE {schema}task SET colour = 'blue'",
    "CREATE INDEX task_colour ON {schema}task (colour)",
    "CREATE TABLE {schema}palette (colour TEXT PRIMARY KEY, tasks INTEGER NOT NULL)",
    "SELECT count(*) FROM {schema}palette",  # has rows, which must not end the script
    "INSERT INTO {schema}palette SELECT colour, count(*) FROM {schema}task GROUP BY colour",
)
THIRD = ("UPDATE {schema}palette SET tasks = tasks + 1000000",)
OURS = known_version(load_migrations("sqlite"))
LAST = OURS + 2
LOCKS = range(1, len(SECOND) + 1)


def later_versions(dialect: str) -> tuple[Migration, ...]:
    """Ours, and two more."""
    return (
        *load_migrations(dialect),
        Migration(version=OURS + 1, name="colours", sql=_script(dialect, SECOND)),
        Migration(version=LAST, name="counts", sql=_script(dialect, THIRD)),
    )


def migrate(url: str) -> MigrationReport:
    """To the last of them."""
    settings = StoreSettings(url=url)
    if url.startswith("sqlite:"):
        return migrate_sqlite(settings, later_versions("sqlite"))
    from tidewheel.store import postgres, postgres_schema  # noqa: PLC0415 - for one of two

    with postgres.translated(), postgres.connect(settings) as connection:
        return postgres_schema.migrate(connection, later_versions("postgres"))


def _script(dialect: str, statements: tuple[str, ...]) -> str:
    if dialect == "sqlite":
        return ";\n".join(statements).format(schema="")
    gates = (f"SELECT pg_advisory_xact_lock({number})" for number in LOCKS)
    gated = (part for pair in zip(gates, statements, strict=False) for part in pair)
    return ";\n".join(gated).format(schema="tidewheel.")


def _die_at(nth: int) -> None:
    """Be killed before the n-th statement of all connections together."""
    count = 0

    def step(*_: object) -> bool:
        nonlocal count
        count += 1
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = step

    apsw.connection_hooks.append(watch)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _die_at(int(sys.argv[2]))
    report = migrate(sys.argv[1])
    print(report.from_version, report.to_version)
