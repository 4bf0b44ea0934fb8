"""Runs scripts, which are functions of a transaction, on a few connections to PostgreSQL.

Theory of operation
-------------------
A script runs in one READ COMMITTED transaction on a connection of its thread. All that it
decides on it has locked first (``FOR UPDATE`` in the order of seq, after the lock of the task
graph), and every write is guarded by (status, attempt), so what a decision has read is what
it writes: no lost update and no write skew (docs/decisions/0003). Deadlocks, serialisation
failures and our own Conflict run the script again.

Other processes are told by NOTIFY and heard by LISTEN. NOTIFY inside a writing transaction
takes a database-wide lock at its commit; so it follows the COMMIT as a statement of its own, in
the same round trip. Behind a transaction pooler LISTEN hears nothing: then workers find tasks
by polling.

The thread that hears of tasks for which a worker of this process has left a standing claim
carries it out, and hands the tasks to the worker's loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar, cast

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from tidewheel.config import StoreSettings
from tidewheel.core.queue.requests import Report, Submitted, Wake
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import StoreBusy, StoreFull, StoreUnreachable
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.store.operations import submit as submit_operations
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.postgres_schema import prepare
from tidewheel.store.postgres_wire import (
    FoundRows,
    LastQuery,
    NoticeListener,
    QueryLookups,
    Wire,
    Wires,
    as_given,
    notice,
    settings_query,
)
from tidewheel.store.rows import ClaimedRow
from tidewheel.store.sql import load_queries
from tidewheel.store.store import CarriedOut, DatabaseStore
from tidewheel.store.transaction import (
    Conflict,
    News,
    Record,
    Result,
    Row,
    Script,
    Success,
    Transaction,
    in_chunks,
    no_news,
)

ARRAYS_OF_SUCCESSES = ("ids", "attempts", "started_ago", "exit_status", "metrics")
TELL_OTHERS = "SELECT pg_notify('tidewheel', %(notice)s)"
TRIES_MAX = 8
AT_ONCE = "claim_plainly"
MOVED_MAX = 1_000  # ready tasks whose old places may stay where they are
FORGET_PLACES = b"VACUUM (SKIP_LOCKED, TRUNCATE off, INDEX_CLEANUP on) tidewheel.ready"
# A network that vanished says nothing, and TCP alone would believe in it for hours.
NOTICE_DEAD_NETWORK = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
# Everything a script writes it finds by key, a few rows at a time. Statistics of tables that
# fill and empty within minutes are always wrong, and a planner that believes them sorts the
# whole backlog for each claim: it is told not to. A plan with what is switched off counts as
# very costly, and costly plans are compiled, which takes a tenth of a second: jit is off, too.
BY_KEY_ONLY = {"jit": "off"} | {
    f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
}
# There is one good way to execute the queries of the hot paths, whatever the tables hold: their
# plan is made once per connection. To make it anew takes a third of a millisecond, as long as
# the claim of one task. All others are planned for what is there and what is asked.
ONE_PLAN = frozenset(
    (
        "add_audit",
        AT_ONCE,
        "claim_chosen_tasks",
        "claim_tasks",
        "close_lanes",
        "count_leases",
        "count_turns",
        "extend_leases",
        "find_task_digests",
        "insert_alike_tasks",
        "insert_tasks",
        "list_buckets",
        "list_candidates",
        "list_ranks",
        "lock_audit_head",
        "lock_plan",
        "move_audit_head",
        "plan_claim",
        "refresh_lanes",
        "save_buckets",
        "save_turns",
        "start_attempts",
        "succeed_tasks",
        "touch_workers",
    )
)
KEEP_PLANS = {"plan_cache_mode": "force_generic_plan"}
PLAN_ANEW = b"SET LOCAL plan_cache_mode = auto"
# We stood still for too long; the server has become a standby and will store nothing.
_ALSO_UNREACHABLE = (pg.IdleInTransactionSessionTimeout, pg.ReadOnlySqlTransaction)
_AGAIN = (pg.DeadlockDetected, pg.SerializationFailure, pg.UniqueViolation, Conflict)


class PostgresTransaction(Transaction):
    """Runs named queries in a transaction, which begins with the first of them.

    ``wire`` returns a connection, or a new one if that broke, ``begin`` the statements with
    which a transaction begins. If it ``writes``, a query of the hot paths is sent together with
    them. With a ``last`` query it is over with that, in the same round trip; what is asked
    behind it has a transaction of its own.
    """

    readers: ClassVar = {}
    claims_at_once = True

    def __init__(
        self,
        wire: Callable[[], Wire],
        begin: bytes,
        *,
        writes: bool,
        last: LastQuery | None = None,
    ) -> None:
        self._get_wire, self._begin, self._writes, self._last = wire, begin, writes, last
        self._wire: Wire | None = None  # None: it is not begun
        self.is_over = False  # by the last query
        self._keeps_plans = False  # a query is planned once per connection
        self._queries = load_queries("postgres")
        self._columns: list[str] = []
        self._told: list[tuple[str, Mapping[str, object]]] = []  # and not sent yet

    def columns(self) -> list[str]:
        return self._columns

    def ask(self, query: str, parameters: Mapping[str, object]) -> list[Row]:
        self.send_told()
        query_text = self._queries[query]
        given = as_given(query_text, parameters)
        if query in ONE_PLAN and self._writes:
            if self._last is not None and self._last.query == query:
                return self._ask_last(query_text, given, self._last)
            return self._ask_hot(query_text, given)
        wire = self._begun()
        cursor = wire.connection.cursor()
        if self._keeps_plans:
            cursor.execute(PLAN_ANEW)
            self._keeps_plans = False
        # The text is one of our own files: nothing from outside ever becomes SQL.
        cursor.execute(query_text.encode(), given)
        self._columns = [column.name for column in cursor.description or ()]
        return cursor.fetchall() if cursor.description else []

    def _ask_last(
        self, query_text: str, given: Mapping[str, object], last: LastQuery
    ) -> list[Row]:
        last.before()
        begins, wire = self._wire is None, self._wire or self._get_wire()
        if begins and not wire.is_quiet():  # it may have broken while nobody used it
            return self._ask_hot(query_text, given)
        self._wire = wire
        # Not again if the connection breaks: nobody knows what was committed.
        told = None if last.wake is None else (TELL_OTHERS, notice(last.wake))
        found = wire.ask(query_text, given, begins=begins, commits=True, notice=told)
        self._wire, self.is_over = None, True
        self._columns = found.columns
        return found.rows

    def _ask_hot(self, query_text: str, given: Mapping[str, object]) -> list[Row]:
        if self._wire is None:
            found = self._first(lambda wire: wire.ask(query_text, given, begins=True))
            self._keeps_plans = True
        else:
            found = self._wire.ask(query_text, given)
        self._columns = found.columns
        return found.rows

    def _begun(self) -> Wire:
        if self._wire is None:
            self._first(lambda wire: wire.connection.execute(self._begin))
        assert self._wire is not None
        return self._wire

    def _first(self, send: Callable[[Wire], Result]) -> Result:
        """Begins the transaction with what is sent first."""
        self._wire = self._get_wire()
        try:
            return send(self._wire)
        except psycopg.OperationalError:
            if not self._wire.connection.closed:
                raise
            # It broke while nobody used it. Nothing has been written by it yet, so this is not
            # worth a failure: after a restart of the database each thread has such a one.
            self._wire = self._get_wire()
            return send(self._wire)

    def tell(self, query: str, **parameters: object) -> None:
        query_text = self._queries[query]
        self._told.append((query_text, as_given(query_text, parameters)))

    def send_told(self) -> None:
        """Sends what was told and is not sent yet."""
        told, self._told = self._told, []
        for query_text, given in told:
            self._ask_hot(query_text, given)

    def commit(self, wake: Wake | None) -> None:
        """Commits, and in the same round trip sends what was told before, and tells other
        processes what to look at. None: there is nothing to tell them."""
        is_told = wake is None or self.is_over
        if self._wire is None and is_told and not self._told:
            return  # nothing was asked
        wire, told = self._begun(), self._told
        try:
            wire.commit(told, None if wake is None else (TELL_OTHERS, notice(wake)))
        except pg.ProgramLimitExceeded:
            # The queue of notices has such a limit. What was to be committed is, by then, and
            # others find out when they look.
            if wire.connection.info.transaction_status is not TransactionStatus.IDLE:
                raise

    def roll_back(self) -> None:
        # A lost connection cannot be rolled back, and need not be.
        if self._wire is not None:
            with contextlib.suppress(psycopg.Error):
                self._wire.roll_back()

    def insert(self, tasks: Sequence[Mapping[str, object]]) -> dict[str, int]:
        return dict(self.rows("insert_tasks", tasks=tasks))

    def insert_alike(
        self,
        said: Mapping[str, object],
        ids: Sequence[str],
        specs: Sequence[str] | None,
        digests: Sequence[str] | None,
    ) -> bool:
        self.rows("insert_alike_tasks", said=[said], ids=ids, specs=specs, digests=digests)
        return True

    def claim(self, query: str, lease_seconds: float, **parameters: object) -> list[ClaimedRow]:
        return self.records(query, ClaimedRow, lease_seconds=lease_seconds, **parameters)

    def claim_at_once(
        self, plan: type[Record], **parameters: object
    ) -> tuple[Record, list[ClaimedRow]]:
        found = self.pairs(AT_ONCE, plan, ClaimedRow, **parameters)
        is_empty = cast("int | None", found[0][1].seq) is None
        return found[0][0], [] if is_empty else [row for _, row in found]

    def fold_lanes(self, queue: str) -> None:
        self.rows("refresh_lanes", queue=queue)

    def candidates(self, of: type[Record], **parameters: object) -> list[Record]:
        return self.records("list_candidates", of, **parameters)

    def succeed(self, worker: str, ends: Sequence[Success]) -> list[Row]:
        # Arrays: to read a row from JSON takes the server as long as to find its task.
        ended: list[Row] = []
        for chunk in in_chunks(ends):
            columns = dict(zip(ARRAYS_OF_SUCCESSES, zip(*chunk, strict=True), strict=True))
            ended += self.rows("succeed_tasks", worker=worker, **columns)
        return ended


class _Question(Exception):
    """Says which query a script asks; it is no failure."""

    def __init__(self, query_text: str, given: Mapping[str, object]) -> None:
        super().__init__(query_text)
        self.query_text, self.given = query_text, given


class OneQueryTransaction(PostgresTransaction):
    """Runs a script that asks one query: first to hear the question, then, from the start, with
    the answer. Whatever it asks besides is a question again."""

    def __init__(self, answer: FoundRows | None = None) -> None:
        self._queries = load_queries("postgres")
        self._answer, self._columns = answer, [] if answer is None else answer.columns

    def ask(self, query: str, parameters: Mapping[str, object]) -> list[Row]:
        answer, self._answer = self._answer, None
        if answer is None:
            query_text = self._queries[query]
            raise _Question(query_text, as_given(query_text, parameters))
        return answer.rows


class PostgresStore(DatabaseStore):
    """Is a Store in a PostgreSQL database, which several machines can share."""

    def __init__(
        self,
        settings: StoreSettings,
        *,
        chance: Callable[[], float] = random.random,
        failpoint: Failpoint = go_on,
    ) -> None:
        super().__init__(settings.submit, chance, failpoint)
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.connections_max, "tidewheel-postgres")
        self._listener: NoticeListener | None = None
        self._lookups = QueryLookups(partial(connect, settings), settings.statement_seconds_max)
        statement, busy = settings.statement_seconds_max, settings.busy_seconds_max
        # A process that stands still in a transaction must not keep its locks for ever.
        limits = {
            "statement_timeout": str(int(statement * 1000)),
            "lock_timeout": str(int(busy * 1000)),
            "idle_in_transaction_session_timeout": str(int(busy * 1000)),
        }
        self._wires = Wires(partial(connect, settings), limits | BY_KEY_ONLY | KEEP_PLANS)
        self._is_at_hand = threading.Lock()  # held by a caller whose own thread asks
        self._begin = b"BEGIN; " + settings_query(limits | BY_KEY_ONLY)
        look = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        self._begin_look = look + settings_query(limits)

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        return await self._in_thread(partial(self._transact, script, news))

    async def submit(
        self, tasks: Sequence[NewTask], *, atomic: bool = True
    ) -> Sequence[Submitted]:
        if (asked := self._at_once(tasks, atomic=atomic)) is None:
            return await super().submit(tasks, atomic=atomic)
        run, conclude = asked
        answers = await self._in_thread(run)
        conclude()
        return answers

    def submit_here(self, task: NewTask) -> Submitted | None:
        asked = self._at_once([task], atomic=True)
        # One at a time, so there is no connection for each thread of an application.
        if asked is None or not self._is_at_hand.acquire(blocking=False):
            return None
        run, conclude = asked
        try:
            self._require_open()
            [answer] = run()
        finally:
            self._is_at_hand.release()
        conclude()
        return answer

    def _at_once(
        self, tasks: Sequence[NewTask], *, atomic: bool
    ) -> tuple[Callable[[], Sequence[Submitted]], Callable[[], None]] | None:
        """Returns what stores a task by one message, and what is to be done after that; None if
        it takes more than one."""
        # A worker of this process that waits for a task has it with the same transaction.
        if self._standing or not submit_operations.is_stored_by_one_query(tasks):
            return None
        store = submit_operations.submission(tasks, self._limits, atomic=atomic)
        effects = Effects()

        def script(tx: Transaction) -> Sequence[Submitted]:
            nonlocal effects
            effects = Effects()
            return store(tx, effects)

        def conclude() -> None:
            self._failpoint("submit_after_commit")
            if wake := effects.wake():
                self.tell_listeners(wake)

        # If the id is known already, others look in vain.
        expected = Wake(queues=frozenset((tasks[0].queue,)))
        before = partial(self._failpoint, "submit_before_commit")
        last = LastQuery("insert_tasks", before, expected)
        run = partial(self._transact, script, lambda: effects.wake(), last)  # noqa: PLW0108 - of its last run
        return run, conclude

    async def look(self, script: Script[Result]) -> Result:
        return await self._in_thread(partial(self._attempt, script, self._begin_look))

    async def look_up(self, script: Script[Result]) -> Result:
        self._require_open()
        try:
            return script(OneQueryTransaction())
        except _Question as question:
            asked = question
        found = await self._lookups.find(asked.query_text, asked.given)
        if found is not None:
            with contextlib.suppress(_Question):
                return script(OneQueryTransaction(found))
        return await self.look(script)

    def look_now(self, script: Script[Result]) -> Result:
        self._require_open()
        # There are no more connections than threads.
        return self._threads.submit(self._attempt, script, self._begin_look).result()

    async def forget_places(self, moved: int) -> None:
        # A row that was moved leaves an entry at its old place in the index, and every claim
        # would read past all of them until autovacuum has come by.
        if moved > MOVED_MAX:
            await self._in_thread(self._vacuum_ready)

    def _vacuum_ready(self) -> None:
        with contextlib.suppress(psycopg.Error), self._wires.lent() as wire:  # it saves time
            wire().connection.execute(FORGET_PLACES)

    async def close(self) -> None:
        if os.getpid() != self._process:
            return
        self._is_closed = True
        if self._listener is not None:
            await asyncio.to_thread(self._listener.stop)  # it may be at a claim
        await self._lookups.close()
        await asyncio.to_thread(self._threads.shutdown)
        # Whoever was interrupted may have left it held; nobody needs it again.
        patience = self._settings.statement_seconds_max
        await asyncio.to_thread(self._is_at_hand.acquire, timeout=patience)
        self._wires.close()

    def offer_reports(self, reports: Sequence[Report]) -> None:
        """Returns None: whoever reports ends locks tasks before runs, a batch its run first."""
        del reports

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        stop = super().listen(listener)
        if self._listener is None:
            self._listener = NoticeListener(partial(connect, self._settings), self._hear)
        return stop

    def _hear(self, wake: Wake) -> None:
        """Tells listeners what others say, and carries out standing claims that it is for; in
        the listener's thread.

        To wake a claimer, which would have another thread ask for the same, takes half as long
        as the claim itself.
        """
        loop = self._standing.loop_of(wake.queues) if wake.queues else None
        if loop is None:
            self.tell_listeners(wake)
            return
        claims, is_written = CarriedOut(self._standing), False

        def script(tx: Transaction) -> None:
            claims.carry_out(tx, Effects(queues=set(wake.queues)))

        last = LastQuery(AT_ONCE, partial(self._failpoint, "claim_before_commit"))
        # Whatever went wrong: the claimers are told, and meet it by themselves. It is not tried
        # again, since one of several claims may be committed.
        with contextlib.suppress(Exception):
            self._attempt(script, self._begin, last=last)
            is_written = True

        def conclude() -> None:
            if is_written:
                self._failpoint("claim_after_commit")
                claims.settle()
            else:
                claims.fail()
            self.tell_listeners(wake)

        try:
            # In this order and there: a worker has its tasks before it is woken for them.
            loop.call_soon_threadsafe(conclude)
        except RuntimeError:  # it is closed: that worker is gone
            conclude()

    async def _in_thread(self, run: Callable[[], Result]) -> Result:
        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _transact(
        self, script: Script[Result], news: News, last: LastQuery | None = None
    ) -> Result:
        for tries in range(TRIES_MAX):
            try:
                return self._attempt(script, self._begin, news, last)
            except _AGAIN as conflict:
                if tries == TRIES_MAX - 1:
                    raise StoreBusy(
                        f"other transactions changed the same tasks {TRIES_MAX} times in a row "
                        f"({type(conflict).__name__}); try again"
                    ) from conflict
            # A growing, random pause lets one of the rivals win.
            time.sleep(self._chance() * 0.005 * 2**tries)
        raise AssertionError("unreachable")

    def _attempt(
        self,
        script: Script[Result],
        begin: bytes,
        news: News = no_news,
        last: LastQuery | None = None,
    ) -> Result:
        with translated(), self._wires.lent() as wire:
            writes = begin is self._begin
            tx = PostgresTransaction(wire, begin, writes=writes, last=last)
            try:
                result = script(tx)
                tx.commit(news())
                return result
            except BaseException:
                tx.roll_back()
                raise


def connect(settings: StoreSettings) -> psycopg.Connection[Row]:
    """Opens a connection in autocommit mode: a transaction lasts from a BEGIN to a COMMIT."""
    standard: dict[str, str | int] = {
        "connect_timeout": max(1, int(settings.busy_seconds_max)),
        "application_name": "tidewheel",
        **NOTICE_DEAD_NETWORK,
    }
    given = conninfo_to_dict(settings.url)
    missing = {name: value for name, value in standard.items() if name not in given}
    return psycopg.connect(make_conninfo(settings.url, **missing), autocommit=True)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises PostgreSQL's errors in the block as errors of tidewheel.

    Those after which the script is run again stay as they are.
    """
    try:
        yield
    except _AGAIN:
        raise
    except (pg.LockNotAvailable, pg.QueryCanceled, pg.TooManyConnections) as error:
        raise StoreBusy(f"the database is too busy ({error}); try again") from error
    except (pg.DiskFull, pg.OutOfMemory) as error:
        raise StoreFull(StoreFull.__doc__) from error
    except pg.IntegrityError as error:
        # A promise of the schema was about to be broken: that is a bug, not an outage.
        raise AssertionError(str(error)) from error
    except (psycopg.OperationalError, *_ALSO_UNREACHABLE) as error:
        seen = " ".join(str(error).split())  # the driver's words fill several lines
        raise StoreUnreachable(
            f"the database does not answer ({seen}); check that it runs and "
            "that the address is right"
        ) from error


def open_postgres_store(
    settings: StoreSettings, *, failpoint: Failpoint = go_on
) -> PostgresStore:
    """Opens the store, and makes the tables in schema ``tidewheel`` if there are none."""
    with translated(), connect(settings) as connection:
        prepare(connection)
    return PostgresStore(settings, failpoint=failpoint)
