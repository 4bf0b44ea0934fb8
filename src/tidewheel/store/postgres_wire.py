"""Puts several statements on the wire to PostgreSQL at once, and waits for their answers once.

Theory of operation
-------------------
**Transactions** (``Wire``): BEGIN and its settings travel with the first query, what is told
last and a notice with the COMMIT. The driver's own pipelines take longer to set up than the
round trips last that they save; here libpq is told directly, with queries that were prepared
once. A thread waits in ``poll``, so others go on. After an error the answers are read up to the
end of the message, so the connection can be used for the ROLLBACK; if a wait is interrupted,
nobody knows where it stands, and it is closed.

**Looks** (``QueryLookups``) are made within the event loop, where no thread has to be woken.
A server looks up tasks and tokens all the time, each by one short query. In a thread such a
look costs two changes of thread and three round trips; here the query is put on the wire with
its time limit, both in one message, and the loop goes on until the answer can be read. The two
are one transaction, which ends with the message: the limit counts for this query alone, also
behind a pooler. Several looks may be under way on the connection; their answers come in order.

Nothing is explained here. If anything goes wrong with a look, the connection is given up, and
whoever asked asks again in a thread: to read twice harms nobody, and there every error has its
words. So it is while there is no connection yet, or none any more. Most programs look up a few
rows at most, and need none.
"""

from __future__ import annotations

import asyncio
import re
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache

import msgspec
import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import ProgramLimitExceeded, error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidewheel.core.queue.requests import Wake
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.transaction import Row, as_parameter

FEW = 20  # looks, for which no connection is made
RECONNECT_SECONDS = 1.0  # of a listener
LISTEN_SECONDS = 0.2  # after so long a listener looks whether it is to end
REST_SECONDS = 1.0  # from one connection that is made, or could not be, to the next
ASKED_MAX = 100  # looks under way
NOTICE_BYTES_MAX = 7_900  # NOTIFY takes 8000; a longer one says only that something changed
_LIMIT = b"tidewheel_limit"
_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)


class FoundRows(NamedTuple):
    """Holds the rows that a query found, and the names of their columns."""

    columns: list[str]
    rows: list[Row]


class LastQuery(NamedTuple):
    """Is the query with which a transaction is over, and what others are told then."""

    query: str
    before: Callable[[], object]  # is called before it is sent
    wake: Wake | None = None


def settings_query(settings: Mapping[str, str]) -> bytes:
    """Returns the query that makes settings for one transaction."""
    made = (f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    return f"SELECT {', '.join(made)}".encode()


class Wire:
    """Is a connection of one thread, on which the statements of a transaction are sent."""

    def __init__(self, connection: psycopg.Connection[Row], settings: bytes) -> None:
        """``settings`` is the query that makes the settings of a transaction."""
        self.connection, self._pg = connection, connection.pgconn
        self._settings = settings.decode()
        self._rows = Transformer(connection)
        self._statements: dict[str, _Statement] = {}
        self._made = 0  # so that no name is used again
        self._new: list[str] = []  # queries that are prepared by what is sent now
        self._sent = 0  # statements of this message, those that prepare others as well
        self._socket = select.poll()
        self._number = self._pg.socket

    def ask(
        self,
        query_text: str,
        given: Mapping[str, object],
        *,
        begins: bool = False,
        commits: bool = False,
        notice: tuple[str, str] | None = None,
    ) -> FoundRows:
        """Asks a query, in a transaction that is begun with it or was begun before, and that
        may be over with it; then others may be told, as by ``commit``."""
        with self._message():
            if begins:
                self._send_plain(b"BEGIN")
                self._send(self._settings, {})
            statement = self._send(query_text, given)
            place = self._sent - 1
            if commits:
                self._send_plain(b"COMMIT")
            if notice is not None:
                self._send(notice[0], {"notice": notice[1]})
        result = self._answer(place, is_over_by=place + 1 if commits else None)
        if not statement.columns:
            statement.columns = _names(result)
        if not result.nfields:
            return FoundRows([], [])
        self._rows.set_pgresult(result)
        return FoundRows(statement.columns, self._rows.load_rows(0, result.ntuples, tuple))

    def commit(
        self, told: Iterable[tuple[str, Mapping[str, object]]], notice: tuple[str, str] | None
    ) -> None:
        """Sends the last queries, commits, and has others told: by which query, and what."""
        with self._message():
            for query_text, given in told:
                self._send(query_text, given)
            self._send_plain(b"COMMIT")
            if notice is not None:
                self._send(notice[0], {"notice": notice[1]})
        self._answer()

    def roll_back(self) -> None:
        """Undoes the transaction. The driver, told to, would forget all prepared queries."""
        with self._message():
            self._send_plain(b"ROLLBACK")
        self._answer()

    def is_quiet(self) -> bool:
        """Says whether nothing came while nobody asked: the end of a connection would have."""
        self._socket.register(self._number, select.POLLIN)
        return not self._socket.poll(0)

    @contextmanager
    def _message(self) -> Iterator[None]:
        """Sends what the block sends as one message, or closes the connection."""
        self._pg.enter_pipeline_mode()
        self._sent = 0
        try:
            yield
            self._pg.pipeline_sync()
        except BaseException:
            self.connection.close()
            raise

    def _send_plain(self, statement: bytes) -> None:
        self._pg.send_query_params(statement, None)
        self._sent += 1

    def _send(self, query_text: str, given: Mapping[str, object]) -> _Statement:
        statement = self._statements.get(query_text)
        if statement is None:
            text, parameters = _numbered(query_text)
            self._made += 1
            statement = _Statement(b"tidewheel_%d" % self._made, parameters)
            self._statements[query_text] = statement
            self._new.append(query_text)
            self._pg.send_prepare(statement.name, text)
            self._sent += 1
        values = [_in_bytes(given[name]) for name in statement.parameters]
        self._pg.send_query_prepared(statement.name, values)
        self._sent += 1
        return statement

    def _answer(self, place: int = -1, *, is_over_by: int | None = None) -> PGresult:
        """Returns the answer to what was sent in this place; raises what the first error says.

        If the transaction ``is_over_by`` a place that was answered, a limit that the notice
        behind it meets is no failure.
        """
        try:
            good, failed = self._results()
            self._pg.exit_pipeline_mode()
        except BaseException:
            self.connection.close()
            raise
        new, self._new = self._new, []
        if failed is not None:
            for query_text in new:  # it may not have come to that
                del self._statements[query_text]
            error = error_from_result(failed, "utf-8")
            is_over = is_over_by is not None and len(good) > is_over_by
            if not (is_over and isinstance(error, ProgramLimitExceeded)):
                raise error
        return good[place]

    def _results(self) -> tuple[list[PGresult], PGresult | None]:
        """Waits for all answers; returns them, and the first error."""
        pg, failed = self._pg, None
        good: list[PGresult] = []
        is_unsent, ends = bool(pg.flush()), 0
        while True:
            if pg.is_busy() or ends > 1:
                ends = 0
                wanted = select.POLLIN | (select.POLLOUT if is_unsent else 0)
                self._socket.register(self._number, wanted)
                self._socket.poll()
                pg.consume_input()
                is_unsent = is_unsent and bool(pg.flush())
                continue
            result = pg.get_result()
            if result is None:
                ends += 1  # of what one command was answered; twice: there is no more for now
                continue
            ends = 0
            if result.status == ExecStatus.PIPELINE_SYNC:
                return good, failed
            if result.status in _GOOD:
                good.append(result)
            elif failed is None:
                failed = result


class Wires:
    """Lends connections, each to one user at a time; there are as many as were lent at once."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], settings: Mapping[str, str]
    ) -> None:
        """``settings`` are those of a transaction."""
        self._connect, self._settings = connect, settings_query(settings)
        self._all: set[Wire] = set()
        self._free: list[Wire] = []  # the one that was used last is last

    @contextmanager
    def lent(self) -> Iterator[Callable[[], Wire]]:
        """Lends a connection for a block. The function returns it; or, if it broke, a new one,
        since others that nobody uses may have broken as well."""
        wire: Wire | None = None

        def own() -> Wire:
            nonlocal wire
            if wire is None:
                with suppress(IndexError):
                    wire = self._free.pop()
            if wire is not None and wire.connection.closed:
                self._all.remove(wire)
                wire = None
            if wire is None:
                wire = Wire(self._connect(), self._settings)
                self._all.add(wire)
            return wire

        try:
            yield own
        except Exception:
            raise
        except BaseException:
            # Whoever is interrupted does not know what the connection has still to answer.
            if wire is not None:
                wire.connection.close()
            raise
        finally:
            if wire is not None:
                self._free.append(wire)

    def close(self) -> None:
        """Closes all connections, none of which may be lent."""
        for wire in self._all:
            wire.connection.close()


class QueryLookups:
    """Looks up rows in the event loop that asks, on a connection of its own."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], seconds_max: float
    ) -> None:
        self._connect, self._seconds_max = connect, seconds_max
        self._line: _Line | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._asked_count = 0  # without one
        self._rests_until = 0.0  # by the loop's clock

    async def find(self, query_text: str, given: Mapping[str, object]) -> FoundRows | None:
        """Returns what a query finds; None if it has to be asked in another way."""
        loop, line = asyncio.get_running_loop(), self._line
        if line is None or line.loop is not loop or not line.is_open:
            self._begin_connecting(loop)
            return None
        return await line.find(query_text, given)

    async def close(self) -> None:
        """Closes the connection, also one that is being made."""
        if self._connecting is not None and not self._connecting.get_loop().is_closed():
            await asyncio.wait((self._connecting,))
        if self._line is not None:
            self._line.give_up()

    def _begin_connecting(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asked_count += 1
        if self._asked_count <= FEW or loop.time() < self._rests_until:
            return
        self._rests_until = loop.time() + REST_SECONDS
        if self._connecting is None or self._connecting.get_loop() is not loop:
            self._connecting = loop.create_task(self._connected(loop))

    async def _connected(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            made = await asyncio.to_thread(self._connect)
        except (psycopg.Error, OSError):
            return  # whoever asks in a thread is told
        finally:
            self._connecting = None
        if self._line is not None:
            self._line.give_up()
        self._line = _Line(made, loop, self._seconds_max)


class _Statement:
    """Is a query that was prepared on a connection."""

    __slots__ = ("columns", "name", "parameters")

    def __init__(self, name: bytes, parameters: tuple[str, ...]) -> None:
        self.name, self.parameters = name, parameters
        self.columns: list[str] = []  # once it was answered


class _Line:
    """Is a connection on which one loop sends queries before earlier ones are answered."""

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        loop: asyncio.AbstractEventLoop,
        seconds_max: float,
    ) -> None:
        self.loop, self.is_open = loop, True
        self._connection, self._pg = connection, connection.pgconn
        self._socket = self._pg.socket
        self._rows = Transformer(connection)
        self._statements: dict[str, _Statement] = {}
        self._asked: deque[asyncio.Future[PGresult | None]] = deque()
        self._latest: PGresult | None = None
        self._pg.nonblocking = 1
        self._pg.enter_pipeline_mode()
        limit = b"SELECT set_config('statement_timeout', '%d', true)" % int(seconds_max * 1000)
        self._pg.send_prepare(_LIMIT, limit)
        loop.add_reader(self._socket, self._read)

    async def find(self, query_text: str, given: Mapping[str, object]) -> FoundRows | None:
        if len(self._asked) >= ASKED_MAX:
            return None
        try:
            statement = self._statements.get(query_text) or self._prepared(query_text)
            self._pg.send_query_prepared(_LIMIT, None)
            values = [_in_bytes(given[name]) for name in statement.parameters]
            self._pg.send_query_prepared(statement.name, values)
            self._pg.pipeline_sync()
            self._flush()
        except psycopg.Error:
            self.give_up()
            return None
        done: asyncio.Future[PGresult | None] = self.loop.create_future()
        self._asked.append(done)
        result = await done
        if result is None:
            return None
        if not statement.columns:
            statement.columns = _names(result)
        self._rows.set_pgresult(result)
        return FoundRows(statement.columns, self._rows.load_rows(0, result.ntuples, tuple))

    def give_up(self) -> None:
        """Closes the connection, and tells all who wait that they have to ask otherwise."""
        if not self.is_open:
            return
        self.is_open = False
        if not self.loop.is_closed():
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
            for done in self._asked:
                if not done.done():
                    done.set_result(None)
        self._connection.close()

    def _prepared(self, query_text: str) -> _Statement:
        text, parameters = _numbered(query_text)
        name = b"tidewheel_look_%d" % len(self._statements)
        self._pg.send_prepare(name, text)
        statement = self._statements[query_text] = _Statement(name, parameters)
        return statement

    def _flush(self) -> None:
        if self._pg.flush():  # the socket takes no more for now
            self.loop.add_writer(self._socket, self._flush_rest)

    def _flush_rest(self) -> None:
        try:
            if not self._pg.flush():
                self.loop.remove_writer(self._socket)
        except psycopg.Error:
            self.give_up()

    def _read(self) -> None:
        try:
            self._pg.consume_input()
            self._take_results()
        except psycopg.Error:
            self.give_up()

    def _take_results(self) -> None:
        is_end = False  # of what one command was answered; twice: there is no more for now
        while not self._pg.is_busy():
            result = self._pg.get_result()
            if result is None:
                if is_end:
                    return
                is_end = True
                continue
            is_end = False
            status = result.status
            if status == ExecStatus.PIPELINE_SYNC:
                done, latest = self._asked.popleft(), self._latest
                self._latest = None
                if not done.done():
                    done.set_result(latest)
            elif status in _GOOD:
                self._latest = result  # that of the query comes last
            else:
                self.give_up()
                return


@cache
def _numbered(query_text: str) -> tuple[bytes, tuple[str, ...]]:
    """Returns a query with numbers for its parameters, as the protocol has them, and the names
    of the parameters in that order."""
    names = tuple(dict.fromkeys(re.findall(r"%\((\w+)\)s", query_text)))
    for number, name in enumerate(names, start=1):
        query_text = query_text.replace(f"%({name})s", f"${number}")
    return query_text.replace("%%", "%").encode(), names


def _names(result: PGresult) -> list[str]:
    names = map(result.fname, range(result.nfields))
    return [name.decode() for name in names if name is not None]


def _in_bytes(value: object) -> bytes | None:
    return None if value is None else str(value).encode()


@cache
def _json_parameters(query_text: str) -> frozenset[str]:
    """Returns the names of the parameters of a query that are lists of rows, sent as JSON. All
    other lists are sent as arrays."""
    return frozenset(re.findall(r"%\((\w+)\)s::json\b", query_text))


def as_given(query_text: str, parameters: Mapping[str, object]) -> dict[str, object]:
    """Returns the parameters of a query as they are sent."""
    as_json = _json_parameters(query_text)
    return {
        name: as_parameter(value) if name in as_json else _as_array(value)
        for name, value in parameters.items()
    }


def _as_array(value: object) -> object:
    """Returns a list as the text of an array, which every query casts to its type.

    The driver can do this, too, at ten times the price: it looks at the type of each element.
    What is no list is made a parameter by ``as_parameter``.
    """
    if not isinstance(value, list | tuple):
        return as_parameter(value)
    if None in value:
        if value.count(None) == len(value):
            return None  # beside other arrays, which say how many rows there are
        return as_parameter("{" + ",".join(map(_as_element, value)) + "}")
    if value and isinstance(value[0], str):
        whole = "".join(value)
        if "\\" in whole or '"' in whole:
            value = [text.replace("\\", r"\\").replace('"', r"\"") for text in value]
        return as_parameter('{"' + '","'.join(value) + '"}')
    return "{" + ",".join(map(str, value)) + "}"


def _as_element(value: object) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return str(value)
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


# What processes tell each other.


def notice(wake: Wake) -> str:
    """Returns the text that tells other processes what to look at; "{}" if it is too long."""
    text = msgspec.json.encode(wake, order="deterministic")
    return text.decode() if len(text) < NOTICE_BYTES_MAX else "{}"


def together(wakes: Sequence[Wake]) -> Wake:
    """Returns several notices as one."""
    if len(wakes) == 1:
        return wakes[0]
    return Wake(
        queues=frozenset().union(*(one.queues for one in wakes)),
        workers=frozenset().union(*(one.workers for one in wakes)),
        runs=frozenset().union(*(one.runs for one in wakes)),
        everything=any(one.everything for one in wakes),
    )


def heard(payload: str) -> Wake:
    """Returns what the text of a notice says."""
    told = Wake()
    with suppress(msgspec.DecodeError):
        told = msgspec.json.decode(payload, type=Wake)
    # It was too long to be sent, or is no notice of ours.
    return Wake(everything=True) if told == Wake() else told


class NoticeListener:
    """Listens, in a thread with a connection of its own, to the notices of other processes."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Row]], tell: Callable[[Wake], None]
    ) -> None:
        self._connect, self._tell = connect, tell
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidewheel-postgres-listener")
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(psycopg.Error):
                self._listen()
            self._stopping.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        with self._connect() as connection:
            connection.execute(b"LISTEN tidewheel")
            # Whatever was said before this moment was not heard.
            self._tell(Wake(everything=True))
            # libpq is asked directly: psycopg takes twice as long, and a worker waits for it.
            asked, poll = connection.pgconn, select.poll()
            poll.register(asked.socket, select.POLLIN)
            while not self._stopping.is_set():
                if not poll.poll(LISTEN_SECONDS * 1_000):
                    continue
                asked.consume_input()
                # All that came while the last were being told are told as one.
                if wakes := [heard(one.extra.decode()) for one in iter(asked.notifies, None)]:
                    self._tell(together(wakes))
