"""Commits the writes of a process to its SQLite file.

Theory of operation
-------------------
All writes of a process go through one connection, in turns. A thread takes all scripts that
are waiting, runs them in one ``BEGIN IMMEDIATE`` transaction, each behind a savepoint so that
a refused one undoes only itself, and commits once: under load one fsync serves many
operations, when idle nothing waits. A script that is alone is undone with its transaction, and
needs no savepoint. An operation is answered after the commit, never before (promise D1): the
answers for one event loop are handed over together, and each is concluded there, whether or
not its caller still waits.

To wake a thread and to be woken by it takes longer than most transactions. So a write that
comes while no other is under way is carried out by its caller, in the caller's thread, which
stands still meanwhile. Three rules keep that short:

- It waits for nobody. If another process has locked the file, the thread does the waiting.
- A loop writes once a turn. What else it writes in this turn goes to the thread, together; and
  nobody keeps the others of a loop waiting by writing again and again.
- After two in a row that took long, on a slow disk or with many rows, or one that took very
  long, the thread has all of them for twenty times as long.

Other processes may use the same file. Their commits are noticed through ``data_version`` on
this connection, which changes for every commit but its own; it is looked at as often as the
settings say.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from tidewheel.config import StoreSettings
from tidewheel.errors import StoreUnreachable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.sqlite_file import StoreFiles, in_our_words, patience
from tidewheel.store.store import STORE_CLOSED, Conclude
from tidewheel.store.transaction import Result, Script, Transaction

LONG_SECONDS = 0.005  # after two of the caller's that took longer, or one that took …
VERY_LONG_SECONDS = 0.05  # … so long, the next ones are left to the thread …
LEFT_TIMES = 20  # … for so many times as long
_STOP = object()


class _Job(NamedTuple):
    """Is a write on its way to the thread."""

    script: Script[Any]
    waiter: asyncio.Future[Any] | None  # of its caller; None: nobody waits
    conclude: Conclude


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


def nothing(_: object) -> None:
    """Does nothing, as the end of a write that concerns nobody."""


class SqliteWriter:
    """Runs scripts that write, one transaction after the other, on a connection of its own."""

    def __init__(
        self,
        path: Path,
        settings: StoreSettings,
        connection: apsw.Connection,
        transaction: Transaction,  # on this connection
        *,
        is_watched: Callable[[], bool],
        tell_others_wrote: Callable[[], None],
    ) -> None:
        self._path, self._settings = path, settings
        self._connection, self._transaction = connection, transaction
        self._patience = patience(settings.busy_seconds_max)
        self.files = StoreFiles(path)
        # Held by whoever uses the connection. It knows its thread, so that no error leaves it
        # held, whichever line it interrupts.
        self._turn = threading.RLock()
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Held to put a job, and to close: so no job comes behind _STOP.
        self._entrance = threading.Lock()
        self._is_closed = False
        self._under_way = 0  # writes that are neither refused nor settled
        self._was_long = False  # the last write in the thread of its caller
        self._left_until = -math.inf  # by the local clock: the thread has all writes
        self._is_watched, self._tell_others_wrote = is_watched, tell_others_wrote
        self._data_version: int = self._connection.pragma("data_version")
        self._looked_at = -math.inf  # by the local clock: when it was looked at last
        self._thread = threading.Thread(target=self._write_loop, name="tidewheel-sqlite-writer")
        self._thread.daemon = True
        self._thread.start()

    async def write(self, script: Script[Result], conclude: Conclude) -> Result:
        """Runs a script in a transaction, and concludes it in this loop when it is over."""
        loop = asyncio.get_running_loop()
        with self._entrance:
            self._require_open()
            self._under_way += 1
            waiter: asyncio.Future[Result] | None = None
            if self._under_way > 1 or time.monotonic() < self._left_until:
                waiter = self._put(script, conclude, loop)
        if waiter is not None:
            return await waiter
        loop.call_soon(self._are_settled, 1)
        try:
            answer = self._write_here(_Job(script, None, conclude))
        except BaseException:  # Ctrl-C: nobody knows whether it is written
            conclude(False)
            raise
        if answer is None:
            with self._entrance:
                self._require_open()
                self._under_way += 1
                waiter = self._put(script, conclude, loop)
            return await waiter
        conclude(answer.failure is None)
        if answer.failure is not None:
            raise answer.failure
        result: Result = answer.result
        return result

    def _require_open(self) -> None:
        if self._is_closed:
            raise StoreUnreachable(STORE_CLOSED)

    def _put(
        self, script: Script[Result], conclude: Conclude, loop: asyncio.AbstractEventLoop
    ) -> asyncio.Future[Result]:
        waiter: asyncio.Future[Result] = loop.create_future()
        self._jobs.put(_Job(script, waiter, conclude))
        return waiter

    def wake(self) -> None:
        """Has the thread look whether other processes have written, and from now on again."""
        with self._entrance:
            if not self._is_closed:
                self._jobs.put(_Job(nothing, None, nothing))

    async def close(self) -> None:
        """Ends when every write that was accepted is answered; those that come are refused."""
        with self._entrance:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(_STOP)
        await asyncio.to_thread(self._thread.join)
        with self._turn:
            self.files.close(self._connection)

    # ---- in the thread of the caller ----

    def lend(self) -> apsw.Connection | None:
        """Lends the connection, for one query that is read to its end, until it is taken back;
        None if somebody else has it, for whom a look does not wait."""
        if self._is_closed or not self._turn.acquire(blocking=False):
            return None
        return self._connection

    def take_back(self) -> None:
        """Gives the turn back if this thread has it."""
        try:  # noqa: SIM105 - `suppress` is three calls more in each write
            self._turn.release()
        except RuntimeError:
            pass

    def _write_here(self, job: _Job) -> _Answer | None:
        """Carries out a write, unless something is in the way: then it returns None, and it is
        for the thread to wait for that, or to tell of it.

        Ctrl-C may raise an error at any line of this: nothing stays locked behind it.
        """
        try:
            if not self._turn.acquire(blocking=False) or self._is_closed:
                return None
            try:
                if not self._begins_here():
                    return None
                began_at = time.monotonic()
                [answer] = self._commit([job], is_begun=True)
                ended_at = time.monotonic()
            finally:
                if self._connection.in_transaction:
                    self._roll_back()
            took = ended_at - began_at
            was_long, self._was_long = self._was_long, took > LONG_SECONDS
            if (was_long and self._was_long) or took > VERY_LONG_SECONDS:
                self._left_until = ended_at + took * LEFT_TIMES
            return answer
        finally:
            self.take_back()

    def _begins_here(self) -> bool:
        try:
            self._connection.set_busy_handler(None)
            self._begin()
        except (apsw.Error, StoreUnreachable):
            return False
        else:
            return True
        finally:
            self._connection.set_busy_handler(self._patience)

    # ---- in the thread of the writer ----

    def _write_loop(self) -> None:
        try:
            while True:
                batch, stop = self._next_batch()
                with self._turn:
                    answers = self._commit(batch) if batch else []
                self._hand_over(answers)
                if stop:
                    return
                if self._others_wrote():
                    self._tell_others_wrote()
        finally:
            self._refuse_what_is_left()

    def _refuse_what_is_left(self) -> None:
        """Refuses the writes that still wait, if the thread ended by its own fault."""
        with self._entrance:
            self._is_closed = True
            left = []
            with contextlib.suppress(queue.Empty):
                while True:
                    job = self._jobs.get_nowait()
                    if job is not _STOP:
                        left.append(_Answer(job, None, StoreUnreachable(STORE_CLOSED)))
        self._hand_over(left)

    def _next_batch(self) -> tuple[list[_Job], bool]:
        """Waits for a write; returns all that came meanwhile, and whether to stop then."""
        batch: list[_Job] = []
        # With listeners it wakes now and then, to see whether other processes have written.
        timeout = None
        if self._is_watched():
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

    def _others_wrote(self) -> bool:
        # A busy writer looks half a poll early, behind a commit: then it need not be woken.
        now = time.monotonic()
        if not self._is_watched() or now < self._looked_at + self._settings.poll_seconds / 2:
            return False
        self._looked_at, seen = now, self._data_version
        with self._turn, contextlib.suppress(apsw.Error):
            self._data_version = self._connection.pragma("data_version")
        return self._data_version != seen

    def _hand_over(self, answers: Sequence[_Answer]) -> None:
        """Has writes answered in the loops of those who wait for them."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Answer]] = {}
        for answer in answers:
            if answer.job.waiter is not None:
                by_loop.setdefault(answer.job.waiter.get_loop(), []).append(answer)
        for loop, ours in by_loop.items():
            try:
                loop.call_soon_threadsafe(self._settle, ours)
            except RuntimeError:  # it is closed: nobody waits any more
                self._are_settled(len(ours))

    # ---- in either ----

    def _settle(self, answers: Sequence[_Answer]) -> None:
        self._are_settled(len(answers))
        _settle(answers)

    def _are_settled(self, count: int) -> None:
        with self._entrance:
            self._under_way -= count

    def _roll_back(self) -> None:
        """Ends a transaction that was not committed, if there is one: after an error, such as a
        full disk, SQLite may have done that by itself."""
        with contextlib.suppress(apsw.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _begin(self) -> None:
        self.files.require()  # or what is written would be lost
        self._connection.execute("BEGIN IMMEDIATE")

    def _commit(self, batch: Sequence[_Job], *, is_begun: bool = False) -> list[_Answer]:
        answers: list[_Answer] = []
        is_alone = len(batch) == 1
        try:
            if not is_begun:
                self._begin()
            for job in batch:
                answers.append(self._run(job, is_alone=is_alone))
            is_refused = is_alone and answers[0].failure is not None
            self._connection.execute("ROLLBACK" if is_refused else "COMMIT")
        except BaseException as error:
            # Nothing of the batch is in the file; every caller of the batch must hear so.
            told = in_our_words(self._path, error)
            self._roll_back()
            answers = [_Answer(job, None, refused or told) for job, _, refused in answers]
            answers += [_Answer(job, None, told) for job in batch[len(answers) :]]
        return answers

    def _run(self, job: _Job, *, is_alone: bool) -> _Answer:
        """Runs a script. One that is refused is undone, or will be with the transaction in
        which it is alone."""
        if not is_alone:
            self._connection.execute("SAVEPOINT job")
        try:
            answer = _Answer(job, job.script(self._transaction), None)
        except Exception as error:
            # Whatever is wrong with this script, others of the batch have no part in it. A
            # promise of the schema that was about to be broken is a bug, not an outage.
            is_bug = isinstance(error, apsw.ConstraintError)
            if isinstance(error, apsw.Error) and not is_bug:
                raise
            answer = _Answer(job, None, AssertionError(str(error)) if is_bug else error)
            if not is_alone:
                self._connection.execute("ROLLBACK TO job; RELEASE job")
            return answer
        if not is_alone:
            self._connection.execute("RELEASE job")
        return answer
