"""Where each kind of store lives in these tests, and the clock that stands still until told."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg

from tests.conformance.door import Door
from tests.kit.memory import MemoryStore
from tidewheel.config import StoreSettings
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres_schema import prepare as prepare_postgres
from tidewheel.store.sqlite import SqliteStore
from tidewheel.store.sqlite_file import prepare as prepare_sqlite
from tidewheel.store.transaction import as_parameter

START = 1_800_000_000.0

# The database's clock becomes a row that the test moves.
CLOCK_BY_HAND = f"""
CREATE TABLE tidewheel.test_clock (now double precision NOT NULL);
INSERT INTO tidewheel.test_clock VALUES ({START});
CREATE OR REPLACE FUNCTION tidewheel.now_seconds() RETURNS double precision
    LANGUAGE sql STABLE AS $$ SELECT now FROM tidewheel.test_clock $$;
"""
# Every table of ours but those that say what the database is; numbers start again. To cut a
# table off takes longer than to delete a few rows, but leaves no dead ones for the planner.
EMPTY = """
DO $$
DECLARE found record;
BEGIN
    IF EXISTS (SELECT FROM tidewheel.audit_head WHERE number > 0) THEN
        ALTER TABLE tidewheel.audit DISABLE TRIGGER USER;
        ALTER TABLE tidewheel.audit_head DISABLE TRIGGER USER;
        DELETE FROM tidewheel.audit;
        UPDATE tidewheel.audit_head SET begins = 0, number = 0, sha256 = repeat('0', 64);
        ALTER TABLE tidewheel.audit ENABLE TRIGGER USER;
        ALTER TABLE tidewheel.audit_head ENABLE TRIGGER USER;
    END IF;
    FOR found IN SELECT oid, relname FROM pg_class
                  WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'r'
                    AND relname NOT IN ('schema_version', 'store_identity', 'test_clock')
                    AND relname NOT LIKE 'audit%'
                  ORDER BY relname NOT IN ('lease', 'run', 'workflow')
    LOOP
        IF pg_relation_size(found.oid) > 1000000 THEN
            EXECUTE format('TRUNCATE tidewheel.%I CASCADE', found.relname);
        ELSE
            EXECUTE format('DELETE FROM tidewheel.%I', found.relname);
        END IF;
    END LOOP;
    FOR found IN SELECT oid FROM pg_class
                  WHERE relnamespace = 'tidewheel'::regnamespace AND relkind = 'S'
    LOOP
        PERFORM setval(found.oid::regclass, 1, false);
    END LOOP;
END $$
"""


def half() -> float:
    """Dice that always show the same side: a delay with jitter becomes a number."""
    return 0.5


class HandClock:
    """The database's clock, moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class World(ABC):
    """One empty database of one kind, and every process that uses it."""

    kind: str
    clock: HandClock

    def __init__(self) -> None:
        self._doors: list[Door] = []

    def open(
        self, limits: SubmitLimits | None = None, chance: Callable[[], float] = half
    ) -> Door:
        """Another process opens the store."""
        door = self._open(limits or SubmitLimits(), chance)
        self._doors.append(door)
        return door

    def close(self) -> None:
        for door in self._doors:
            door.leave()

    def agrees(self, ours: Any, theirs: Any) -> bool:
        """Whether this is what another store answers."""
        return bool(ours == theirs)

    @abstractmethod
    def execute(self, statement: str, given: dict[str, Any] | None = None) -> list[Any]:
        """Behind the store's back."""

    @abstractmethod
    def _open(self, limits: SubmitLimits, chance: Callable[[], float]) -> Door: ...


class MemoryWorld(World):
    """There is one process only: it holds the store."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.clock = HandClock()
        self.store: MemoryStore | None = None

    def _open(self, limits: SubmitLimits, chance: Callable[[], float]) -> Door:
        if self.store is None:
            self.store = MemoryStore(self.clock, chance=chance, limits=limits)
        return Door(_given(self.store))

    def execute(self, statement: str, given: dict[str, Any] | None = None) -> list[Any]:
        raise AssertionError(f"memory speaks no SQL: {statement} {given}")


class SqliteWorld(World):
    """A file in memory, where an fsync is cheap and no less called."""

    kind = "sqlite"

    def __init__(self, *, guarded: bool = True) -> None:
        super().__init__()
        self._guarded = guarded
        self.clock = HandClock()
        memory = Path("/dev/shm")
        self._folder = tempfile.mkdtemp(
            prefix="tidewheel-", dir=memory if memory.is_dir() else None
        )
        self.settings = StoreSettings(url=f"sqlite:///{self._folder}/tidewheel.db")
        self.path = Path(self._folder, "tidewheel.db")
        prepare_sqlite(self.path, self.settings)

    def _open(self, limits: SubmitLimits, chance: Callable[[], float]) -> Door:
        async def opening() -> SqliteStore:
            settings = replace(self.settings, submit=limits)
            return SqliteStore(self.path, settings, clock=self.clock, vfs=None, chance=chance)

        return Door(opening)

    def execute(self, statement: str, given: dict[str, Any] | None = None) -> list[Any]:
        rows = {name: as_parameter(value) for name, value in (given or {}).items()}
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(10_000)
        connection.pragma("foreign_keys", self._guarded)
        connection.pragma("ignore_check_constraints", not self._guarded)
        try:
            return connection.execute(statement, rows or None).fetchall()
        finally:
            connection.close()

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder)


class PostgresClock(HandClock):
    """The row that now_seconds() reads."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__()
        self._connection = connection

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._connection.execute("UPDATE tidewheel.test_clock SET now = %s", (self.now,))


class PostgresWorld(World):
    """A database with the schema and a clock by hand, emptied before each use.

    Emptying takes a few milliseconds, a database of its own for each test a tenth of a second.
    """

    kind = "postgres"

    def __init__(self, url: str, connections: int = 1) -> None:
        super().__init__()
        self.settings = StoreSettings(url=url, connections_max=connections)
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET search_path TO tidewheel")
        self._connection.execute(EMPTY)
        self.clock = PostgresClock(self._connection)
        self.clock.advance(0)

    def _open(self, limits: SubmitLimits, chance: Callable[[], float]) -> Door:
        async def opening() -> PostgresStore:
            return PostgresStore(replace(self.settings, submit=limits), chance=chance)

        return Door(opening)

    def execute(self, statement: str, given: dict[str, Any] | None = None) -> list[Any]:
        cursor = self._connection.execute(statement, given)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        super().close()
        self._connection.close()


def prepare_template(url: str) -> None:
    """What the database holds that every PostgresWorld is a copy of."""
    with psycopg.connect(url, autocommit=True) as connection:
        prepare_postgres(connection)
        connection.execute(CLOCK_BY_HAND)


def _given(store: MemoryStore) -> Callable[[], Any]:
    async def opening() -> MemoryStore:
        return store

    return opening
