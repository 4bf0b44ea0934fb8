"""Runs scripts, which are functions of a transaction, on a SQLite file.

Theory of operation
-------------------
All writes of a process go through one thread. It takes all scripts that are waiting, runs
them in one ``BEGIN IMMEDIATE`` transaction, each behind a savepoint so that a refused one
undoes only itself, and commits once: under load one fsync serves many operations, when idle
nothing waits. A script that is alone is undone with its transaction, and needs no savepoint.
An operation is answered after the commit, never before (promise D1): the answers for one
event loop are handed over together, and each is concluded there, whether or not its caller
still waits. Scripts that only read run beside it, in threads with connections of their own.

Other processes may use the same file. Their commits are noticed through ``data_version`` on
the writer's own connection, which changes for every commit but its own; it is looked at as
often as the settings say.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import queue
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import apsw

from tidewheel.api.tasks import Figure, Violation
from tidewheel.config import StoreSettings
from tidewheel.core.queue.requests import Wake
from tidewheel.errors import StoreUnreachable
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.rows import ClaimedRow
from tidewheel.store.sql import LITERAL, load_queries
from tidewheel.store.sqlite_file import (
    StoreFiles,
    connect,
    file_path,
    in_our_words,
    prepare,
)
from tidewheel.store.store import STORE_CLOSED, Conclude, DatabaseStore
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
_STOP = object()


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
            value if type(value := parameters[name]) in AS_THEY_ARE else as_parameter(value)
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


def _conclude_nothing(_is_written: bool) -> None:
    pass


class _Job(NamedTuple):
    """Is a write on its way to the writer's thread."""

    script: Script[Any]
    waiter: asyncio.Future[Any] | None = None  # of its caller; None: nobody waits
    conclude: Conclude = _conclude_nothing


class _Answer(NamedTuple):
    """Holds what became of a write, on its way back."""

    job: _Job
    result: Any
    failure: BaseException | None


def _settle(answers: Sequence[_Answer]) -> None:
    """Concludes writes in their order, and answers; in the loop of those who wait.

    What goes wrong with one is no matter of the others.
    """
    for job, result, failure in answers:
        waiter, error = job.waiter, failure
        assert waiter is not None
        try:
            job.conclude(failure is None)
        except BaseException as raised:
            error = raised
            if waiter.done():
                told = {"message": "a write was not concluded", "exception": raised}
                waiter.get_loop().call_exception_handler(told)
        if waiter.done():  # its caller has gone away
            continue
        if error is None:
            waiter.set_result(result)
        else:
            # No future takes a StopIteration, as it would end whoever awaits it.
            is_stop = isinstance(error, StopIteration)
            waiter.set_exception(RuntimeError(repr(error)) if is_stop else error)


def _hand_over(answers: Sequence[_Answer]) -> None:
    """Has writes answered in the loops of those who wait for them; from the writer's thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
    for answer in answers:
        if answer.job.waiter is not None:
            by_loop.setdefault(answer.job.waiter.get_loop(), []).append(answer)
    for loop, ours in by_loop.items():
        with contextlib.suppress(RuntimeError):  # it is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, ours)


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
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Held to put a job, and to close: so no job comes behind _STOP.
        self._entrance = threading.Lock()
        self._writer = connect(path, settings, clock=clock, vfs=vfs)
        self._writing = SqliteTransaction(self._writer)
        self._data_version: int = self._writer.pragma("data_version")
        self._files = StoreFiles(path)
        self._looked_at = -math.inf  # by the local clock: when it was looked at last
        self._readers = ThreadPoolExecutor(READERS, "tidewheel-sqlite-reader")
        self._reader = threading.local()  # of each thread of the readers
        self._reader_connections: list[apsw.Connection] = []
        self._looking_now = threading.Lock()
        self._reader_now = SimpleNamespace()
        self._thread = threading.Thread(target=self._write_loop, name="tidewheel-sqlite-writer")
        self._thread.daemon = True
        self._thread.start()

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        return await self.carry_through(script, news, _conclude_nothing)

    async def carry_through(
        self,
        script: Script[Result],
        news: News,
        conclude: Conclude,
        *,
        has_claims: bool = False,
    ) -> Result:
        del news, has_claims  # other processes watch the file; every write is concluded
        waiter: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._entrance:
            self._require_open()
            self._jobs.put(_Job(script, waiter, conclude))
        return await waiter

    async def look(self, script: Script[Result]) -> Result:
        self._require_open()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._look, self._reader, script)

    async def glance(self, script: Script[Result]) -> Result:
        return self.look_now(script)

    async def look_up(self, script: Script[Result]) -> Result:
        self._require_open()
        try:
            with self._looking_now:
                return self._look_up(script)
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
        with self._entrance:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(_STOP)
        await asyncio.to_thread(self._thread.join)
        self._readers.shutdown(wait=True)
        for connection in (*self._reader_connections, self._writer):
            connection.close()

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

    def _look_up(self, script: Script[Result]) -> Result:
        """Runs a script that asks one query, which is a snapshot by itself."""
        try:
            if not hasattr(self._reader_now, "transaction"):
                self._reader_now.transaction = self._connect_reader()
            return script(OneQuery(self._reader_now.transaction.connection))
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

    # ---- writing ----

    def _write_loop(self) -> None:
        try:
            while True:
                batch, stop = self._next_batch()
                if batch:
                    self._commit_batch(batch)
                if stop:
                    return
                self._notice_others()
        finally:
            self._refuse_what_is_left()

    def _refuse_what_is_left(self) -> None:
        """Refuses the writes that still wait, if the writer thread ended by its own fault."""
        with self._entrance:
            self._is_closed = True
            with contextlib.suppress(queue.Empty):
                while True:
                    job = self._jobs.get_nowait()
                    if job is not _STOP:
                        _hand_over([_Answer(job, None, StoreUnreachable(STORE_CLOSED))])

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Waits for a write; returns all that came meanwhile, and whether to stop then."""
        batch: list[_Job] = []
        # With listeners it wakes now and then, to see whether other processes have written.
        timeout = None
        if self._listeners:
            rest = self._looked_at + self._settings.poll_seconds - time.monotonic()
            timeout = max(0.0, rest)
        with contextlib.suppress(queue.Empty):
            job = self._jobs.get(timeout=timeout)
            while job is not _STOP:
                batch.append(job)
                if len(batch) >= self._settings.batch_operations_max:
                    return batch, False
                job = self._jobs.get_nowait()
            return batch, True
        return batch, False

    def _commit_batch(self, batch: list[_Job]) -> None:
        answers: list[_Answer] = []
        is_alone = len(batch) == 1
        try:
            self._files.require(self._writer)  # or what is written would be lost
            self._writer.execute("BEGIN IMMEDIATE")
            for job in batch:
                answers.append(self._run_job(job, is_alone=is_alone))
            is_refused = is_alone and answers[0].failure is not None
            self._writer.execute("ROLLBACK" if is_refused else "COMMIT")
        except BaseException as error:
            # Nothing of the batch is in the file; every caller of the batch must hear so.
            told = in_our_words(self._path, error)
            if self._writer.in_transaction:  # after a full disk SQLite has rolled back itself
                with contextlib.suppress(apsw.Error):
                    self._writer.execute("ROLLBACK")
            answers = [_Answer(job, None, refused or told) for job, _, refused in answers]
            answers += [_Answer(job, None, told) for job in batch[len(answers) :]]
        _hand_over(answers)

    def _run_job(self, job: _Job, *, is_alone: bool) -> _Answer:
        """Runs a script. One that is refused is undone, or will be with the transaction in
        which it is alone."""
        if not is_alone:
            self._writer.execute("SAVEPOINT job")
        try:
            answer = _Answer(job, job.script(self._writing), None)
        except Exception as error:
            # Whatever is wrong with this script, others of the batch have no part in it. A
            # promise of the schema that was about to be broken is a bug, not an outage.
            is_bug = isinstance(error, apsw.ConstraintError)
            if isinstance(error, apsw.Error) and not is_bug:
                raise
            answer = _Answer(job, None, AssertionError(str(error)) if is_bug else error)
            if not is_alone:
                self._writer.execute("ROLLBACK TO job; RELEASE job")
            return answer
        if not is_alone:
            self._writer.execute("RELEASE job")
        return answer

    # ---- noticing other processes ----

    def _notice_others(self) -> None:
        # A busy writer looks half a poll early, behind a commit: then it need not be woken.
        now = time.monotonic()
        if not self._listeners or now < self._looked_at + self._settings.poll_seconds / 2:
            return
        self._looked_at = now
        with contextlib.suppress(apsw.Error):
            version = self._writer.pragma("data_version")
            if version != self._data_version:
                self._data_version = version
                self.tell_listeners(Wake(everything=True))

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        stop = super().listen(listener)
        # Wakes the writer, which from now on looks whether other processes have written.
        with self._entrance:
            if not self._is_closed:
                self._jobs.put(_Job(lambda _: None))
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
