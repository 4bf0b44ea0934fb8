"""Builds the schema by migrations, forward only, each applied once and as a whole.

What has landed is never edited (tests/tidy has the digest of each file). Up to version 8 that
was not so: `0009_repair.sql` makes one schema of all that those versions led to. One thing
cannot wait for it: for some commits the notebooks, now 0008, were the sixth migration. Such a
store is known by its table `notebook`. Before anything else it is noted that it has applied 8
instead of 6; the rest follows in order.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path

from tidewheel.errors import NewerSchema, OlderSchema
from tidewheel.lazy_dataclasses import dataclass

MIGRATIONS = Path(__file__).with_name("migrations")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """Holds one step of the schema; its version is the one that it leads to."""

    version: int
    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """Says from which version to which a schema was brought, and where the backup is.

    ``backup`` is None if none was made.
    """

    from_version: int
    to_version: int
    backup: Path | None = None


@cache
def load_migrations(dialect: str) -> tuple[Migration, ...]:
    """Returns the migrations of a dialect in order, numbered 1, 2, 3 … without a gap."""
    folder = MIGRATIONS / dialect
    found = sorted(path.name for path in folder.glob("*.sql"))
    migrations = tuple(
        Migration(
            version=int(name.split("_")[0]),
            name=name,
            sql=(folder / name).read_text(encoding="utf-8"),
        )
        for name in found
    )
    assert [m.version for m in migrations] == list(range(1, len(migrations) + 1)), found
    return migrations


def known_version(migrations: tuple[Migration, ...]) -> int:
    """Returns the version of the schema that this program works with."""
    return migrations[-1].version


def pending(
    migrations: tuple[Migration, ...], applied: Collection[int]
) -> tuple[Migration, ...]:
    """Returns the migrations that are still to be applied.

    Raises NewerSchema for a schema of a later program, which is not touched.
    """
    newest = max(applied, default=0)
    if newest > known_version(migrations):
        raise NewerSchema(newest, known_version(migrations))
    return tuple(migration for migration in migrations if migration.version not in applied)


def check_version(migrations: tuple[Migration, ...], applied: Collection[int]) -> None:
    """Raises OlderSchema or NewerSchema if the schema is not of this program's version."""
    todo = pending(migrations, applied)
    if todo:
        raise OlderSchema(todo[0].version - 1, known_version(migrations))
