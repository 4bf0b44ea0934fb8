"""RELIABILITY 51: migrations go forward, each whole or not at all, after a copy was made."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from tests.conformance.door import Door
from tests.support.later_versions import LAST, LOCKS, OURS, later_versions, migrate
from tests.support.patience import eventually
from tests.support.volumes import folder_in_memory, mounted
from tidewheel.config import StoreSettings
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.errors import NewerSchema, OlderSchema, StoreFull
from tidewheel.store.migrate import load_migrations
from tidewheel.store.postgres import open_postgres_store
from tidewheel.store.postgres_schema import migrate as migrate_postgres
from tidewheel.store.postgres_schema import prepare as prepare_postgres
from tidewheel.store.sqlite import open_sqlite_store
from tidewheel.store.sqlite_file import migrate_sqlite
from tidewheel.store.sqlite_file import prepare as prepare_sqlite

ROOT = Path(__file__).parents[2]
TASKS, RUNNING = 200, 50
PALETTE = [("blue", TASKS + 1_000_000)]  # each migration has been applied once


class Sqlite:
    """A store in a file, and ways to look at it from behind."""

    dialect, schema = "sqlite", ""

    def __init__(self, folder):
        self.path = folder / "tidewheel.db"
        self.url = f"sqlite:///{self.path}"

    def open(self):
        return open_sqlite_store(StoreSettings(url=self.url))

    def open_later(self):
        """As a later tidewheel would."""
        migrations = later_versions("sqlite")
        prepare_sqlite(self.path, StoreSettings(url=self.url), migrations=migrations)

    def execute(self, query):
        connection = apsw.Connection(str(self.path))
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def backups(self):
        return sorted(self.path.parent.glob("*.backup-*"))

    def litter(self):
        """Files that nobody knows."""
        known = {self.path, *self.backups()}
        return [path.name for path in self.path.parent.iterdir() if path not in known]


class Postgres:
    """A store in a database, and ways to look at it from behind."""

    dialect, schema = "postgres", "tidewheel."

    def __init__(self, url):
        self.url = url

    def open(self):
        return open_postgres_store(StoreSettings(url=self.url))

    def open_later(self):
        with psycopg.connect(self.url, autocommit=True) as connection:
            prepare_postgres(connection, later_versions("postgres"))

    def execute(self, query):
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def opened(database):
    store = database.open()

    async def opening():
        return store

    door = Door(opening)
    try:
        yield door
    finally:
        door.leave()


def fill(database):
    """Tasks that wait, and some that run."""
    with opened(database) as door:
        door.put(*(f"t{n}" for n in range(TASKS)))
        assert len(door.take(RUNNING)) == RUNNING


@pytest.fixture
def sqlite():
    with folder_in_memory() as folder:
        database = Sqlite(folder)
        fill(database)
        yield database


@pytest.fixture
def postgres(postgres_url):
    database = Postgres(postgres_url)
    fill(database)
    return database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request):
    """Each test that asks for it runs on both."""
    return request.getfixturevalue(request.param)


def version_of(database):
    [[version]] = database.execute(f"SELECT max(version) FROM {database.schema}schema_version")
    return version


def palette_of(database):
    return database.execute(f"SELECT colour, tasks FROM {database.schema}palette")


def start_migration(database, *arguments):
    command = [sys.executable, "-m", "tests.support.later_versions", database.url, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_an_older_store_is_refused_until_it_is_migrated(database):
    with pytest.raises(
        OlderSchema, match=f"version {OURS}; this tidewheel needs version {LAST}"
    ) as seen:
        database.open_later()
    assert "run: tidewheel migrate" in str(seen.value)
    report = migrate(database.url)
    assert (report.from_version, report.to_version) == (OURS, LAST)
    database.open_later()
    assert palette_of(database) == PALETTE


def test_migrating_again_changes_nothing(database):
    migrate(database.url)
    report = migrate(database.url)
    assert (report.from_version, report.to_version, report.backup) == (LAST, LAST, None)
    assert palette_of(database) == PALETTE


def test_a_store_of_a_newer_program_is_refused_and_left_alone(database):
    migrate(database.url)
    known = len(load_migrations(database.dialect))
    with pytest.raises(
        NewerSchema, match=f"version {LAST}; this tidewheel supports versions up to {known}"
    ):
        database.open()
    assert version_of(database) == LAST


def test_a_newer_store_is_not_migrated_backwards(database):
    database.execute(
        f"INSERT INTO {database.schema}schema_version (version, applied_at)"
        f" VALUES (99, {'now()' if database.dialect == 'postgres' else '0'})"
    )
    with pytest.raises(NewerSchema, match="a store cannot be downgraded"):
        migrate(database.url)
    assert version_of(database) == 99


def test_the_command_line_says_so(sqlite, tidewheel):
    sqlite.execute("INSERT INTO schema_version (version, applied_at) VALUES (99, 0)")
    for command in ("tasks", "migrate", "worker"):
        answer = tidewheel(command, "--store", sqlite.url)
        assert answer.status == 3
        assert "schema version 99" in answer.err and "Upgrade tidewheel" in answer.err


def test_a_copy_of_the_old_store_is_beside_it_and_can_be_put_back(sqlite):
    with opened(sqlite) as door:
        before = door.list_tasks(TaskFilter(), KeysetPage(count=1000))
    report = migrate(sqlite.url)
    assert sqlite.backups() == [report.backup]
    assert report.backup.name == f"tidewheel.db.backup-v{OURS}"
    assert stat.S_IMODE(report.backup.stat().st_mode) == 0o600
    os.replace(report.backup, sqlite.path)
    with opened(sqlite) as door:
        assert door.verify() == []
        assert door.list_tasks(TaskFilter(), KeysetPage(count=1000)) == before
        assert door.signals("t0") == [None, "claim"]
    assert sqlite.litter() == []


def test_a_full_disk_stops_a_migration_before_it_begins(tmp_path):
    with mounted(tmp_path / "disk", 4 * 1024 * 1024) as volume:
        sqlite = Sqlite(volume.path)
        fill(sqlite)
        ballast = volume.fill(spare_bytes=100_000)  # for the file to be opened
        with pytest.raises(StoreFull):
            migrate(sqlite.url)
        assert (version_of(sqlite), sqlite.backups()) == (OURS, [])
        ballast.unlink()
        migrate(sqlite.url)
        assert palette_of(sqlite) == PALETTE


def test_killed_at_any_statement_the_next_run_succeeds(sqlite):
    """Every statement of the real run, from the opening of the file to the last commit."""
    whole = sqlite.path.read_bytes()
    nth, died = 0, True
    while died:
        nth += 1
        sqlite.path.write_bytes(whole)
        with start_migration(sqlite, str(nth)) as process:
            died = process.wait() == -signal.SIGKILL
        assert died or process.returncode == 0
        version = version_of(sqlite)
        assert OURS <= version <= LAST
        assert palette_of(sqlite) == PALETTE if version == LAST else died
        migrate(sqlite.url)
        assert (version_of(sqlite), palette_of(sqlite)) == (LAST, PALETTE)
        for backup in sqlite.backups():
            connection = apsw.Connection(str(backup))
            assert connection.pragma("integrity_check") == "ok"
            connection.close()
        for path in sqlite.path.parent.iterdir():
            path.unlink()
    assert nth > 20


@pytest.mark.parametrize("gate", LOCKS[::2])
def test_killed_on_postgresql_nothing_of_it_stays(postgres, gate):
    """It waits at a lock between two statements of the migration when it is killed."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"
    with psycopg.connect(postgres.url) as keeper:
        keeper.execute("SELECT pg_advisory_lock(%s)", (gate,))
        with start_migration(postgres) as process:
            eventually(lambda: postgres.execute(waits), "it waits at the gate")
            process.kill()
    # Its backend goes on with what it was told, and ends when it wants to answer.
    gone = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = {gate}"
    eventually(lambda: not postgres.execute(gone), "its transaction is over")
    assert version_of(postgres) == OURS
    assert postgres.execute("SELECT to_regclass('tidewheel.palette')") == [(None,)]
    migrate(postgres.url)
    assert palette_of(postgres) == PALETTE


def test_of_many_that_migrate_at_once_each_version_is_applied_once(database):
    processes = [start_migration(database) for _ in range(4)]
    answers = [(process.wait(), process.communicate()[0]) for process in processes]
    assert {status for status, _ in answers} == {0}
    assert all(said.endswith(f" {LAST}\n") for _, said in answers)
    assert palette_of(database) == PALETTE
    if database.dialect == "sqlite":
        assert len(database.backups()) == 1


ADD_TASK = (
    "INSERT INTO {schema}task (id, queue, command, priority, status, max_retries, retry,"
    " max_lapses, max_termination_seconds, cpu, memory_bytes, gpu, armed, executes,"
    " created_at, updated_at, digest) VALUES"
    " ('old', 'q', 'true', 50, 'ready', 0, '{{\"seconds\": []}}', 5, 10, 0, 0, 0, {yes}, {yes},"
    " 1, 1, 'd');"
    " INSERT INTO {schema}history (task_seq, at, to_status, attempt, progress)"
    " VALUES (1, 1, 'ready', 0, 0);"
    " INSERT INTO {schema}ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes,"
    " gpu, has_command) VALUES ('q', {no}, -50, 1, 1, 0, 0, 0, {yes});"
)


def test_tasks_of_the_first_version_live_on(tmp_path, postgres_url):
    """Version 2 brings runs; a task that was there before belongs to none."""
    first = {dialect: load_migrations(dialect)[:1] for dialect in ("sqlite", "postgres")}
    lite, elephant = Sqlite(tmp_path), Postgres(postgres_url)
    settings = StoreSettings(url=lite.url)
    prepare_sqlite(lite.path, settings, migrations=first["sqlite"])
    lite.execute(ADD_TASK.format(schema="", yes=1, no=0))
    migrate_sqlite(settings)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        prepare_postgres(connection, first["postgres"])
        connection.execute(ADD_TASK.format(schema="tidewheel.", yes="true", no="false"))
        migrate_postgres(connection)
    for database in (lite, elephant):
        with opened(database) as door:
            assert door.verify() == []
            [held] = door.take()
            assert (held.id, held.task.run) == ("old", None)
            door.finish(held)
            assert (door.status("old"), door.runs(), door.verify()) == ("succeeded", [], [])


ADD_KEYED = (
    "INSERT INTO {schema}queue (name) VALUES ('q');"
    " INSERT INTO {schema}queue_limit (queue, key, concurrency_max, rate_seconds)"
    " VALUES ('q', '*', 1, 1);"
) + "".join(
    " INSERT INTO {schema}task (id, queue, command, priority, status, max_retries, retry,"
    " max_lapses, max_termination_seconds, cpu, memory_bytes, gpu, armed, executes, limit_key,"
    " created_at, updated_at, digest) VALUES ('" + name + "', '" + queue + "', 'true', 50,"
    """ 'ready', 0, '{{"seconds":[0]}}', 5, 10, 0, 0, 0, {yes}, {yes}, 'k', 1, 1, 'd');"""
    " INSERT INTO {schema}history (task_seq, at, to_status, attempt, progress)"
    f" VALUES ({seq}, 1, 'ready', 0, 0);"
    " INSERT INTO {schema}ready (queue, delayed, rank, task_seq, ready_at, cpu, memory_bytes,"
    f" gpu, has_command, limit_key) VALUES ('{queue}', " + "{no}, -50, "
    f"{seq}, 1, 0, 0, 0, " + "{yes}, 'k');"
    for seq, (name, queue) in enumerate(
        [("first", "q"), ("second", "q"), ("one", "p"), ("two", "p")], start=1
    )
)


def test_ready_tasks_with_keys_are_claimed_under_the_limits_that_were_set_before(
    tmp_path, postgres_url
):
    """Version 18 brings lanes: those of `q` have one, those of `p`, without limits, none."""
    before = {dialect: load_migrations(dialect)[:17] for dialect in ("sqlite", "postgres")}
    lite, elephant = Sqlite(tmp_path), Postgres(postgres_url)
    settings = StoreSettings(url=lite.url)
    prepare_sqlite(lite.path, settings, migrations=before["sqlite"])
    lite.execute(ADD_KEYED.format(schema="", yes=1, no=0))
    migrate_sqlite(settings)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        prepare_postgres(connection, before["postgres"])
        connection.execute(ADD_KEYED.format(schema="tidewheel.", yes="true", no="false"))
        migrate_postgres(connection)
    for database in (lite, elephant):
        with opened(database) as door:
            assert door.verify() == []
            [held] = door.take(9)
            assert (held.id, door.taken(9)) == ("first", [])
            door.finish(held)
            assert (door.taken(9), door.taken(9, queue="p")) == (["second"], ["one", "two"])
            assert door.verify() == []


def test_of_many_that_make_the_same_store_all_get_it(tidewheel):
    """It is complete when it gets its name, and made once."""
    with ExitStack() as stack:
        commands = [
            stack.enter_context(tidewheel.started("submit", "--id", f"t{n}", "--", "true"))
            for n in range(4)
        ]
        answers = [command.wait() for command in commands]
    assert {answer.status for answer in answers} == {0}, answers
    listed = tidewheel("tasks", "--json").json["tasks"]
    assert sorted(task["id"] for task in listed) == ["t0", "t1", "t2", "t3"]
    assert not [path.name for path in tidewheel.state.iterdir() if ".new-" in path.name]


def test_a_new_file_has_the_schema_and_the_rows_that_all_migrations_make(tmp_path):
    made, migrated = Sqlite(tmp_path / "made"), Sqlite(tmp_path / "migrated")
    prepare_sqlite(made.path, StoreSettings(url=made.url))
    each = (*load_migrations("sqlite"),)
    prepare_sqlite(migrated.path, StoreSettings(url=migrated.url), migrations=each)
    assert contents(made) == contents(migrated)
    assert identity(made) != identity(migrated)  # two stores are never the same


def contents(store):
    """What is in a file, but for what differs from file to file."""
    things = store.execute(
        "SELECT type, name, tbl_name, trim(sql, char(10)) FROM sqlite_schema"
    )
    tables = {name for kind, name, *_ in things if kind == "table"} - {"store_identity"}
    rows = {name: store.execute(f"SELECT * FROM {name}") for name in tables}
    rows["schema_version"] = [version for version, _ in rows["schema_version"]]
    settings = ("user_version", "application_id", "auto_vacuum", "page_size", "journal_mode")
    return (
        sorted(things, key=str),
        rows,
        [store.execute(f"PRAGMA {name}") for name in settings],
        store.execute("PRAGMA integrity_check"),
    )


def identity(store):
    ((name,),) = store.execute("SELECT id FROM store_identity")
    return name
