"""Runs scripts, which are functions of a transaction, on a SQLite file.

Theory of operation
-------------------
Scripts that write are run by the writer of the file, one transaction after the other
(``sqlite_writer``). Scripts that only read run beside it, on connections of their own: in
threads, or, if it is a few rows, in the thread of the caller.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import apsw

from tidewheel.api.tasks import Figure, Violation
from tidewheel.config import StoreSettings
from tidewheel.core.queue.requests import Wake
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.store.rows import ClaimedRow
from tidewheel.store.sql import LITERAL, load_queries
from tidewheel.store.sqlite_file import (
    connect,
    file_path,
    in_our_words,
    prepare,
)
from tidewheel.store.sqlite_writer import SqliteWriter, nothing
from tidewheel.store.store import Conclude, DatabaseStore
from tidewheel.store.transaction import (
    AS_THEY_ARE,
    News,
    Record,
    Result,
    Row,
    Script,
    Success,
    Transaction,
    as_columns,
    as_parameter,
    no_news,
)

READERS = 2
PLAIN = "claim_tasks"  # of tasks that stand in no lane
# What is done together: to tasks that are stored, claimed, or have succeeded. Where any order
# will do, the longest is first: what follows a statement is read by the driver along with it.
CREATE = ("add_ready", "add_creations")
TAKE_PLAIN = ("take_leases", "add_claims", "leave_ready")
TAKE = ("take_leases", "add_claims", "remove_ready")
SUCCEED = ("keep_successes", "add_successes", "drop_leases")
# The same of one task alone, without the tables in which SQLite would look for it.
TAKE_ONE = ("take_leases", "add_claims", "leave_ready_alone")
SUCCEED_ONE = ("keep_successes", "add_successes", "drop_lease")


class SqliteTransaction(Transaction):
    """Runs named queries on one connection."""

    readers: ClassVar = {}
    tells_known_ids: ClassVar = True

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self._queries = load_queries("sqlite")

    def ask(self, query: str, parameters: Mapping[str, object]) -> apsw.Cursor:
        # In the order of the statement's parameters: to find each by its name costs more.
        text = self._queries[query]
        given = [
            value
            if (kind := type(value := parameters[name])) in AS_THEY_ARE
            # Most texts are names: what can be printed, can be stored.
            or (kind is str and value.isprintable())  # type: ignore[attr-defined]
            else as_parameter(value)
            for name in parameter_names(text)
        ]
        self._found = self.connection.execute(text, given)
        return self._found

    def carry_out(self, queries: tuple[str, ...], **parameters: object) -> None:
        """Runs queries that find nothing, one after the other, each with those of the
        parameters that it names: so what Python takes to ask is paid once."""
        given = {
            name: value if type(value) in AS_THEY_ARE else as_parameter(value)
            for name, value in parameters.items()
        }
        text, names = _joined(queries)
        self.connection.execute(text, [given[name] for name in names]).fetchall()

    def each(
        self, query: str, name: str, rows: Sequence[Mapping[str, object]], **same: object
    ) -> None:
        del name
        # A list would have to be written as JSON and read again; and whatever is compared with
        # what a query finds is first put into a table of its own, which takes 5 to 10 µs.
        # Columns are looked at as a whole: to ask of each value what it is takes as long as
        # SQLite needs for the row.
        if rows:
            text = self._queries[query]
            columns = as_columns(rows, parameter_names(text), same)
            self.connection.executemany(text, zip(*columns, strict=True))

    def columns(self) -> list[str]:
        try:
            return [column[0] for column in self._found.getdescription()]
        except apsw.ExecutionCompleteError:
            return []

    def insert(self, tasks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        # Row by row: taking so many columns out of JSON would cost more than storing them; and
        # to have SQLite return what it stored costs a table of its own for each.
        connection, text = self.connection, self._queries["insert_tasks"]
        columns = itemgetter(*parameter_names(text))
        seqs: dict[str, int] = {}
        for task in tasks:
            connection.execute(text, columns(task))
            if connection.changes():  # else its id is stored already
                seqs[task["id"]] = connection.last_insert_rowid()
        self.carry_out(CREATE, seqs=list(seqs.values()))
        return seqs

    def insert_alike(
        self,
        said: Mapping[str, object],
        ids: Sequence[str],
        specs: Sequence[str] | None,
        digests: Sequence[str] | None,
    ) -> bool:
        rows = list(zip_longest(ids, specs or (), digests or ()))
        try:
            self.rows("insert_alike_tasks", tasks=rows, **said)
        except apsw.ConstraintError:  # which has undone this statement, and no more
            if not self.rows("find_task_digests", ids=ids):
                raise
            return False
        # Nobody else writes meanwhile: the seqs follow each other.
        last = self.connection.last_insert_rowid()
        seqs = list(range(last - len(ids) + 1, last + 1))
        self.carry_out(CREATE, seqs=seqs)
        return True

    def claim(self, query: str, lease_seconds: float, **parameters: object) -> list[ClaimedRow]:
        rows = self.records(query, ClaimedRow, **parameters)
        seqs = sorted([row.seq for row in rows])
        given: dict[str, object] = {"seqs": seqs, "lease_seconds": lease_seconds}
        if query != PLAIN:
            self.carry_out(TAKE, **given)
        elif len(rows) == 1:
            queue, rank = rows[0].queue, -rows[0].priority
            self.carry_out(TAKE_ONE, **given, queue=queue, rank=rank, seq=seqs[0])
        else:
            self.carry_out(TAKE_PLAIN, **given)
        return rows

    def fold_lanes(self, queue: str) -> None:
        keys = [key for (key,) in self.rows("take_news", queue=queue)]
        if keys:
            self.rows("refresh_lanes", queue=queue, keys=keys)
            self.rows("drop_lanes", queue=queue, keys=keys)
        self.rows("open_lanes", queue=queue)

    def candidates(self, of: type[Record], **parameters: object) -> list[Record]:
        if parameters["lanes"]:
            self.fold_lanes(str(parameters["queue"]))
        return self.records("list_candidates", of, **parameters)

    def succeed(self, worker: str, ends: Sequence[Success]) -> list[Row]:
        found = self.rows("succeed_tasks", worker=worker, ends=[end[:2] for end in ends])
        if not found:
            return []
        done = {task_id: seq for task_id, seq, _ in found}
        seqs = sorted(done.values())
        ended = [(done[end[0]], *end[2:]) for end in ends if end[0] in done]
        queries = SUCCEED_ONE if len(seqs) == 1 else SUCCEED
        self.carry_out(queries, ended=ended, seqs=seqs, seq=seqs[0])
        return found


class _AskedMore(Exception):
    """Says that a script asks more than one query; it is no failure."""


class OneQuery(SqliteTransaction):
    """Runs one query, on a connection that is in no transaction."""

    _is_asked = False

    def ask(self, query: str, parameters: Mapping[str, object]) -> apsw.Cursor:
        if self._is_asked:
            raise _AskedMore
        self._is_asked = True
        return super().ask(query, parameters)


@cache
def parameter_names(text: str) -> tuple[str, ...]:
    """Returns the parameters of a query in the order in which SQLite numbers them. That is the
    order of their first use."""
    return tuple(dict.fromkeys(re.findall(r":(\w+)", re.sub(LITERAL, "", text))))


@cache
def _joined(queries: tuple[str, ...]) -> tuple[str, list[str]]:
    """Returns queries as one text, and the parameters of one after the other."""
    texts = [*map(load_queries("sqlite").__getitem__, queries)]
    return "".join(texts), [name for text in texts for name in parameter_names(text)]


class SqliteStore(DatabaseStore):
    """Is a Store in one SQLite file."""

    def __init__(
        self,
        path: Path,
        settings: StoreSettings,
        *,
        clock: Callable[[], float],
        vfs: str | None,
        chance: Callable[[], float] = random.random,
        failpoint: Failpoint = go_on,
    ) -> None:
        super().__init__(settings.submit, chance, failpoint)
        self._path, self._settings, self._clock, self._vfs = path, settings, clock, vfs
        connection = connect(path, settings, clock=clock, vfs=vfs)
        self._writer = SqliteWriter(
            path,
            settings,
            connection,
            SqliteTransaction(connection),
            is_watched=lambda: bool(self._listeners),
            tell_others_wrote=partial(self.tell_listeners, Wake(everything=True)),
        )
        self._readers = ThreadPoolExecutor(READERS, "tidewheel-sqlite-reader")
        self._reader = threading.local()  # of each thread of the readers
        self._reader_connections: list[apsw.Connection] = []
        self._looking_now = threading.Lock()
        self._reader_now = SimpleNamespace()

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        return await self.carry_through(script, news, nothing)

    async def carry_through(
        self,
        script: Script[Result],
        news: News,
        conclude: Conclude,
        *,
        has_claims: bool = False,
    ) -> Result:
        del news, has_claims  # other processes watch the file; every write is concluded
        self._require_open()
        return await self._writer.write(script, conclude)

    async def look(self, script: Script[Result]) -> Result:
        self._require_open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._look, self._reader, script)

    async def glance(self, script: Script[Result]) -> Result:
        return self.look_now(script)

    async def look_up(self, script: Script[Result]) -> Result:
        self._require_open()
        try:
            # The writer's connection has what it wrote at hand; another one reads all anew that
            # it has seen before, once anything was written.
            try:  # Ctrl-C may raise an error at any line of this
                if (connection := self._writer.lend()) is not None:
                    return self._look_up(script, connection)
            finally:
                self._writer.take_back()
            with self._looking_now:
                if not hasattr(self._reader_now, "transaction"):
                    self._reader_now.transaction = self._connect_reader()
                return self._look_up(script, self._reader_now.transaction.connection)
        except _AskedMore:
            return self.look_now(script)

    def look_now(self, script: Script[Result]) -> Result:
        self._require_open()
        with self._looking_now:
            return self._look(self._reader_now, script)

    async def verify(self) -> list[Violation]:
        damage = await self.look(lambda tx: tx.rows("check_integrity"))
        found = [
            Violation(invariant="file", task_id="", seen=seen)
            for (seen,) in damage
            if seen != "ok"
        ]
        return found + await super().verify()

    async def figures(self) -> list[Figure]:
        log = Path(f"{self._path}-wal")
        size = float(log.stat().st_size) if log.exists() else 0.0
        return [*await super().figures(), Figure(name="wal_bytes", label="", value=size)]

    async def close(self) -> None:
        """Closes the store when every write that was accepted is answered.

        Writes that come meanwhile are refused.
        """
        if os.getpid() != self._process:
            return
        self._is_closed = True
        await self._writer.close()
        self._readers.shutdown(wait=True)
        for connection in self._reader_connections:
            self._writer.files.close(connection)

    # ---- reading ----

    def _connect_reader(self) -> SqliteTransaction:
        # Never a new file: whoever deleted the store has not asked for an empty one.
        flags = apsw.SQLITE_OPEN_READWRITE
        connection = connect(
            self._path, self._settings, clock=self._clock, vfs=self._vfs, flags=flags
        )
        connection.pragma("query_only", True)
        self._reader_connections.append(connection)
        return SqliteTransaction(connection)

    def _look_up(self, script: Script[Result], connection: apsw.Connection) -> Result:
        """Runs a script that asks one query, which is a snapshot by itself."""
        try:
            return script(OneQuery(connection))
        except apsw.Error as error:
            failure = in_our_words(self._path, error)
        raise failure

    def _look(
        self, reader: threading.local | SimpleNamespace, script: Script[Result]
    ) -> Result:
        try:
            if not hasattr(reader, "transaction"):
                reader.transaction = self._connect_reader()
            # One snapshot for all queries of the script.
            reader.transaction.connection.execute("BEGIN")
            try:
                return script(reader.transaction)
            finally:
                # After an I/O error SQLite may have ended the transaction by itself.
                if reader.transaction.connection.in_transaction:
                    reader.transaction.connection.execute("ROLLBACK")
        except apsw.Error as error:
            failure = in_our_words(self._path, error)
        raise failure

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        stop = super().listen(listener)
        self._writer.wake()
        return stop


def open_sqlite_store(
    settings: StoreSettings,
    *,
    clock: Callable[[], float] = time.time,  # noqa: TID251 - this host's clock is the database's
    vfs: str | None = None,
    failpoint: Failpoint = go_on,
) -> SqliteStore:
    """Opens the file that the URL names, and makes it if there is none."""
    path = file_path(settings.url)
    prepare(path, settings, vfs=vfs)
    return SqliteStore(path, settings, clock=clock, vfs=vfs, failpoint=failpoint)


class SharedWriter(DatabaseStore):
    """Writes through one store, and reads through another one of the same file.

    A file has one writer, and two in one process would only wait for each other; but a service
    that must not wait for others can have readers of its own. Both are the caller's to close.
    """

    def __init__(self, writer: DatabaseStore, reader: DatabaseStore) -> None:
        super().__init__(writer._limits, writer._chance, writer._failpoint)
        self._writer, self._reader = writer, reader
        self._standing, self._attendance = writer._standing, writer._attendance

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        return await self._writer.transact(script, news)

    async def carry_through(
        self, script: Script[Result], news: News, conclude: Conclude, *, has_claims: bool
    ) -> Result:
        return await self._writer.carry_through(script, news, conclude, has_claims=has_claims)

    async def look(self, script: Script[Result]) -> Result:
        return await self._reader.look(script)

    async def glance(self, script: Script[Result]) -> Result:
        return await self._reader.glance(script)

    async def look_up(self, script: Script[Result]) -> Result:
        return await self._reader.look_up(script)

    def look_now(self, script: Script[Result]) -> Result:
        return self._reader.look_now(script)

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        return self._writer.listen(listener)

    def tell_listeners(self, wake: Wake) -> None:
        self._writer.tell_listeners(wake)

    async def close(self) -> None:
        """Does nothing, because both stores belong to the caller."""
