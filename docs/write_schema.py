"""Writes the schema that all migrations of SQLite make, by which a new file is made at once; a
test compares the two."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw

from tidewheel.config import StoreSettings
from tidewheel.store.migrate import MIGRATIONS, load_migrations
from tidewheel.store.sqlite_file import SQLITE_SCHEMA, migrate_sqlite

FOLDER = MIGRATIONS
HEAD = "-- What all migrations of SQLite make of nothing: written by docs/write_schema.py."
# In the order in which they were made; what SQLite makes itself has no text or such a name.
MADE = (
    "SELECT sql FROM sqlite_schema WHERE sql <> '' AND name NOT GLOB 'sqlite_*' ORDER BY rowid"
)
# What differs from file to file.
ROWS = {
    "schema_version": "SELECT value, unixepoch('subsec') FROM json_each('{versions}')",
    "store_identity": "VALUES (lower(hex(randomblob(16))))",
}


def files() -> dict[str, str]:
    """The text of the file by its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tidewheel.db"
        migrations = (*load_migrations("sqlite"),)  # not ours, so it is made step by step
        migrate_sqlite(StoreSettings(url=f"sqlite:///{path}"), migrations)
        connection = apsw.Connection(str(path))
        made = [HEAD, *(text.strip() + ";" for (text,) in connection.execute(MADE))]
        made += _rows(connection)
        connection.close()
    return {SQLITE_SCHEMA.name: "\n\n".join(made) + "\n"}


def _rows(connection: apsw.Connection) -> list[str]:
    versions = [
        version for (version,) in connection.execute("SELECT version FROM schema_version")
    ]
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence'"
    found = []
    for (table,) in connection.execute(tables).fetchall():
        for row in connection.execute(f'SELECT * FROM "{table}"').fetchall():
            values = f"VALUES ({', '.join(map(apsw.format_sql_value, row))})"
            said = ROWS.get(table, values).replace("{versions}", str(versions))
            if (line := f"INSERT INTO {table} {said};") not in found:
                found.append(line)
    return found


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text)
