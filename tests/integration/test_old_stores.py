"""A store that any commit made is migrated to exactly the schema that a new store has.

What the commits had lies in `old_migrations/`, collected by the script there.
"""

import asyncio
import json
import re
from pathlib import Path

import apsw
import psycopg
import pytest

from tidewheel.config import StoreSettings
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.queue.access import AuditEntry
from tidewheel.services.definitions.snapshot import sealed
from tidewheel.store.migrate import MIGRATIONS, Migration, load_migrations
from tidewheel.store.postgres import open_postgres_store
from tidewheel.store.postgres_schema import migrate as migrate_postgres
from tidewheel.store.sqlite import open_sqlite_store
from tidewheel.store.sqlite_file import migrate_sqlite
from tidewheel.store.sqlite_file import prepare as prepare_sqlite

OLD = Path(__file__).with_name("old_migrations")
COMMITS = json.loads((OLD / "commits.json").read_text())
# Everything that a schema of PostgreSQL has; the order of columns means nothing to it.
CATALOG = """
SELECT 'column', c.relname || '.' || a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
                 pg_get_expr(d.adbin, d.adrelid))
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
 WHERE c.relnamespace = 'tidewheel'::regnamespace AND c.relkind IN ('r', 'v', 'S')
   AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'tidewheel'::regnamespace
UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'tidewheel'
UNION ALL SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid)
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = 'tidewheel'::regnamespace AND NOT t.tgisinternal
UNION ALL SELECT 'function', proname, prosrc
  FROM pg_proc WHERE pronamespace = 'tidewheel'::regnamespace
"""
# One row of each table that the repair makes anew, as far as the old table has the columns.
ROWS = {
    "worker": {
        "number": 7,
        "name": "w7",
        "host": "tern",
        "boot_id": "b",
        "pid": 1,
        "process_started": 1.0,
        "queues": '["q"]',
        "slots": 1,
        "cpu": 0.0,
        "memory_bytes": 0,
        "gpu": 0,
        "labels": None,
        "abilities": '{"commands": false, "handlers": [], "bare": true}',
        "registered_at": 1.0,
        "seen_at": 1.0,
        "stopped_at": 2.0,
        "trouble": "its disk is full",
    },
    "token": {
        "number": 5,
        "kind": "login",
        "name": "ann",
        "digest": "0" * 64,
        "scopes": '["read"]',
        "queues": '["qa", "run:wfa*"]',
        "workflows": '["*"]',
        "created_at": 1.0,
    },
    "worker_token": {"worker": 7, "token": 5},
    "definition": {
        "digest": "d",
        "workflow": "w",
        "kind": "flow.cylc",
        "text": "",
        "variables": "[]",
        "files": "[]",
        "saved_at": 1.0,
    },
    "run": {
        "number": 3,
        "name": "w/run1",
        "workflow": "w",
        "definition": "d",
        "options": "{}",
        "folder": "",
        "queue": "q",
        "status": "stopped",
        "created_at": 1.0,
        "updated_at": 1.0,
    },
    "broadcast": {
        "run": 3,
        "point": "*",
        "namespace": "root",
        "setting": "script",
        "value": "true",
        "place": 4,
    },
    "notebook": {"name": "n", "body": "noted", "updated_at": 1.0},
}
# What a column has in a store that was made without it.
MISSING = {
    "abilities": '{"commands": true, "handlers": null, "bare": true}',
    "trouble": None,
    "kind": "bearer",
    "place": 1,
}


class Sqlite:
    dialect, prefix = "sqlite", ""

    def __init__(self, folder):
        self.path = folder / "old.db"
        self.settings = StoreSettings(url=f"sqlite:///{self.path}")

    def make(self, migrations):
        prepare_sqlite(self.path, self.settings, migrations=migrations)

    def migrate(self):
        return migrate_sqlite(self.settings)

    def open(self):
        return open_sqlite_store(self.settings)

    def execute(self, statement, given=()):
        connection = apsw.Connection(str(self.path))
        try:
            return connection.execute(statement.replace("%s", "?"), given).fetchall()
        finally:
            connection.close()

    def columns(self, table):
        return {row[1] for row in self.execute(f"PRAGMA table_info({table})")}

    def schema(self):
        found = self.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
        return {
            (kind, name, table): " ".join(re.sub(r"--[^\n]*", "", sql or "").split())
            for kind, name, table, sql in found
        }


class Postgres:
    dialect, prefix = "postgres", "tidewheel."

    def __init__(self, url):
        self.settings = StoreSettings(url=url)

    def make(self, migrations):
        with psycopg.connect(self.settings.url, autocommit=True) as connection:
            migrate_postgres(connection, migrations)

    def migrate(self):
        with psycopg.connect(self.settings.url, autocommit=True) as connection:
            return migrate_postgres(connection)

    def open(self):
        return open_postgres_store(self.settings)

    def execute(self, statement, given=()):
        with psycopg.connect(self.settings.url, autocommit=True) as connection:
            cursor = connection.execute(statement, given)
            return cursor.fetchall() if cursor.description else []

    def columns(self, table):
        asked = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'tidewheel' AND table_name = %s"
        )
        return {name for (name,) in self.execute(asked, (table,))}

    def schema(self):
        return {(kind, name): what for kind, name, what in self.execute(CATALOG)}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    if request.param == "sqlite":
        return Sqlite(request.getfixturevalue("tmp_path"))
    return Postgres(request.getfixturevalue("postgres_url"))


@pytest.fixture(scope="module")
def fresh_schemas():
    return {}


def fresh_schema(database, known, request):
    """Of a store that is made today, once for each dialect."""
    if database.dialect not in known:
        if database.dialect == "sqlite":
            new = Sqlite(request.getfixturevalue("tmp_path_factory").mktemp("fresh"))
        else:
            new = Postgres(request.getfixturevalue("another_postgres_url"))
        asyncio.run(new.open().close())
        known[database.dialect] = new.schema()
    return known[database.dialect]


@pytest.fixture
def another_postgres_url(postgres_server):
    yield postgres_server.create_database("made_today")
    postgres_server.drop_database("made_today")


def migrations_of(commit, dialect):
    """What a store of this commit was made with."""

    def text(name):
        old = OLD / dialect / name
        return (old if old.exists() else MIGRATIONS / dialect / name).read_text()

    names = COMMITS[commit][dialect]
    return tuple(
        Migration(version=number, name=name, sql=text(name))
        for number, name in enumerate(names, start=1)
    )


def fill(database):
    """Rows in whatever of the tables there is; answers what must be found afterwards."""
    expected = {}
    for table, row in ROWS.items():
        columns = [name for name in row if name in database.columns(table)]
        if not columns:
            continue
        places = ", ".join(["%s"] * len(columns))
        database.execute(
            f"INSERT INTO {database.prefix}{table} ({', '.join(columns)})"
            + (" OVERRIDING SYSTEM VALUE" if database.dialect == "postgres" else "")
            + f" VALUES ({places})",
            tuple(row[name] for name in columns),
        )
        expected[table] = {
            name: row[name] if name in columns else MISSING[name] for name in row
        }
    return expected


@pytest.mark.parametrize("commit", COMMITS)
def test_a_store_of_every_landed_schema_becomes_a_new_one_and_keeps_its_rows(
    commit, database, fresh_schemas, request
):
    database.make(migrations_of(commit, database.dialect))
    expected = fill(database)
    assert database.migrate().to_version == len(list((MIGRATIONS / "sqlite").iterdir()))
    assert database.schema() == fresh_schema(database, fresh_schemas, request)
    for gone in ("queues", "workflows"):  # one list of names now, see `works`
        expected.get("token", {}).pop(gone, None)
    for table, row in expected.items():
        names = ", ".join(row)
        [found] = database.execute(f"SELECT {names} FROM {database.prefix}{table}")
        assert dict(zip(row, found, strict=True)) == row
    asyncio.run(works(database.open()))


async def works(store):
    """The numbers of those that are gone are not given again, and the store is sound."""
    try:
        definition = sealed(StoredDefinition(digest="", workflow="x"))
        await store.save_definition(definition)
        run = await store.create_run(NewRun(workflow="x", definition=definition.digest))
        assert (await store.find_run(run.name)).number == run.number
        assert await store.verify() == []
        assert [one.number for one in await store.workers()] in ([], [7])
        assert [one.grant.names for one in await store.tokens()] in (
            [],
            [("queue:qa", "run:wfa*")],
        )
    finally:
        await store.close()


def test_the_chain_of_the_audit_begins_behind_the_entries_that_were_there(database):
    """Old entries have no hash and gaps between their numbers; they are shown as they are."""
    before_it = load_migrations(database.dialect)[:12]
    database.make(before_it)
    for number in (3, 7):
        database.execute(
            f"INSERT INTO {database.prefix}audit (number, at, who, client, verb, target, "
            "status, correlation)"
            + (" OVERRIDING SYSTEM VALUE" if database.dialect == "postgres" else "")
            + f" VALUES ({number}, 1.0, 'ann', '', 'POST /x', '', 200, 'c')"
        )
    database.migrate()

    async def go_on(store):
        given = {"token": None, "who": "bob", "client": "", "verb": "POST /x", "target": ""}
        await store.add_audit([AuditEntry(status=200, correlation="c", **given)] * 2)
        found = await store.audit()
        violations = await store.verify()
        await store.close()
        return found, violations

    found, violations = asyncio.run(go_on(database.open()))
    assert [(one.number, one.sha256 is None) for one in found] == [
        *((9, False), (8, False)),
        *((7, True), (3, True)),
    ]
    assert violations == []


@pytest.mark.parametrize("names", ['["*"]', '["team-a"]'])
def test_registered_versions_of_unknown_origin_see_what_is_named_under_them(database, names):
    """H4: unless all tokens were for everything, or they were of the store's owner."""
    database.make(load_migrations(database.dialect)[:16])
    prefix = database.prefix
    database.execute(
        f"INSERT INTO {prefix}token (kind, name, digest, scopes, names, created_at)"
        " VALUES ('bearer', 'ann', %s, '[]', %s, 1.0)",
        ("0" * 64, names),
    )
    for digest, kind in (("a", "sip"), ("b-local", "flow.cylc"), ("c", "python")):
        database.execute(
            f"INSERT INTO {prefix}definition (digest, workflow, kind, text, variables, files,"
            " saved_at) VALUES (%s, 'team-a/w', %s, '', '[]', '[]', 1.0)",
            (digest, kind),
        )
        database.execute(
            f"INSERT INTO {prefix}workflow (name, version, definition, runnable, findings,"
            " parameters, registered_at, registered_by)"
            " VALUES ('team-a/w', %s, %s, %s, '[]', '[]', 1.0, 'ann')",
            (digest, digest, True if database.dialect == "postgres" else 1),
        )
    database.migrate()

    async def look(store):
        found = await store.workflows("team-a/w")
        await store.close()
        return {one.version: one.sees for one in found}

    told = asyncio.run(look(database.open()))
    of_unknown = None if "*" in names else ("team-a/w",)
    assert told == {"a": of_unknown, "b-local": None, "c": None}
