"""Defines what an operation sees of a database: named queries inside one transaction.

A script is a function that is given a transaction, asks queries and decides. It may be run
again from its start.

A query is known by the name of its file (``sql/<folder>/NAME.sql``); the memory store
has a function of the same name. Parameters are plain values or lists of rows (mappings or
dataclasses). ``records`` reads rows by the names of their columns into a type; ``rows`` gives
plain tuples, for a few columns that are unpacked where they are asked for.

A field of a value is the column of its name. Enumerations and truth values follow from the
types of the fields; a value inside of another is made of columns of the same row. What is kept
in other columns, or as text, is said once for its type, or for one field (``STORED``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from operator import itemgetter
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

import msgspec

from tidewheel.core.queue.requests import Wake
from tidewheel.errors import NotFound, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple, maker, pattern

if TYPE_CHECKING:
    from tidewheel.store.rows import ClaimedRow

Row = tuple[Any, ...]
Result = TypeVar("Result")
Record = TypeVar("Record")
Other = TypeVar("Other")
Function = TypeVar("Function", bound=Callable[..., Any])

# Rows of one statement: enough to make the round trip cheap, few enough to keep locks short.
ROWS_PER_STATEMENT_MAX = 1_000
READ_BY_NAME_MAX = 50  # rows of a query, before its reader is compiled


class Success(NamedTuple):
    """Holds what a worker says of an attempt that succeeded."""

    id: str
    attempt: int
    started_ago: float | None  # seconds; None: its start was told before
    exit_status: int | None
    metrics: str | None  # JSON text


class Transaction(ABC):
    """Runs the queries of one script in one transaction.

    The script's end commits the transaction, an exception undoes it.
    """

    # How the rows of a query are read into a type; known from its first use.
    readers: ClassVar[dict[tuple[str, type], Callable[[Row], Any]]]
    claims_at_once: ClassVar = False  # whether ``claim_at_once`` saves anything
    tells_known_ids: ClassVar = False  # whether ``insert_alike`` does, or one looks before

    @abstractmethod
    def ask(self, query: str, parameters: Mapping[str, object]) -> Iterable[Row]:
        """Runs the query of this name, and returns the rows that it finds."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Returns the names of the columns of the last query.

        They may be unknown, which is an empty list, if it found nothing.
        """

    def rows(self, query: str, **parameters: object) -> list[Row]:
        return list(self.ask(query, parameters))

    def tell(self, query: str, **parameters: object) -> None:
        """Runs a query that finds nothing, at the latest with the end of the transaction: a
        database elsewhere is told both at once. What is asked later sees what it did."""
        self.rows(query, **parameters)

    def each(
        self, query: str, name: str, rows: Sequence[Mapping[str, object]], **same: object
    ) -> None:
        """Runs a query that finds nothing for each of these rows: at once, as the list ``name``
        of it, or where that costs more for one after the other, whose columns it names."""
        for chunk in in_chunks(rows):
            self.rows(query, **{name: chunk}, **same)

    def records(self, query: str, of: type[Record], /, **parameters: object) -> list[Record]:
        """Returns the rows that a query finds as values of a type.

        Each of its fields is the column of that name, or is read as ``STORED`` says.
        """
        found = self.ask(query, parameters)
        read = self.readers.get((query, of)) or self._new_reader(query, of)
        rows = list(found)  # before one is read: a cursor left halfway would keep its snapshot
        return list(map(read, rows)) if read else []

    def pairs(
        self, query: str, one: type[Record], other: type[Other], /, **parameters: object
    ) -> list[tuple[Record, Other]]:
        """Returns two values for each row that a query finds, which joins two things."""
        found = self.ask(query, parameters)
        read = self.readers.get((query, one)) or self._new_reader(query, one)
        read_other = self.readers.get((query, other)) or self._new_reader(query, other)
        rows = list(found)
        return [(read(row), read_other(row)) for row in rows] if read and read_other else []

    def _new_reader(self, query: str, of: type[Record]) -> Callable[[Row], Record] | None:
        """Returns the reader of a query's rows, and keeps it; None if the columns are unknown.
        This is so if nothing was found."""
        columns = self.columns()
        if not columns:
            return None
        keep = partial(self.readers.__setitem__, (query, of))
        read = self.readers[query, of] = reader(columns, of, keep)
        return read

    # The hot paths. PostgreSQL does each in one statement, SQLite in a few short ones; both
    # write just what the scripts for rarer cases would write.

    @abstractmethod
    def insert(self, tasks: Sequence[Mapping[str, object]]) -> dict[str, int]:
        """Stores new tasks, each with the first entry of its history and, if it is ready, its
        row in the table of those that can be claimed. Returns their seqs by id; a task whose id
        is there already is not stored, and is left out."""

    @abstractmethod
    def insert_alike(
        self,
        said: Mapping[str, object],
        ids: Sequence[str],
        specs: Sequence[str] | None,
        digests: Sequence[str] | None,
    ) -> bool:
        """Stores tasks that are ready, as ``insert`` does. They say the same but for their ids,
        specs and digests: those without a list are as in ``said``. None of the ids is stored
        yet, or, where ``tells_known_ids`` says so, nothing is stored and False returned."""

    @abstractmethod
    def claim(self, query: str, lease_seconds: float, **parameters: object) -> list[ClaimedRow]:
        """Runs a claim query, and writes a lease and a history entry for each of its rows."""

    def claim_at_once(
        self, plan: type[Record], **parameters: object
    ) -> tuple[Record, list[ClaimedRow]] | None:
        """Plans a claim and, if no rule holds in the queue, makes it, all by one query. None if
        that was not to be; only where ``claims_at_once`` says so it is asked for."""
        del plan, parameters
        return None

    @abstractmethod
    def fold_lanes(self, queue: str) -> None:
        """Puts the lanes of a queue right of which something is new: their heads, and whether
        there is room. Opens those whose rates leave room again."""

    @abstractmethod
    def candidates(self, of: type[Record], **parameters: object) -> list[Record]:
        """Puts the lanes of a queue right, and returns the rows of list_candidates."""

    @abstractmethod
    def succeed(self, worker: str, ends: Sequence[Success]) -> list[Row]:
        """Ends attempts with success where no other task is concerned: those that are running,
        owned by the worker, and without dependencies. Returns (id, seq, run or None) of each of
        these; others are left alone."""


class Conflict(Unavailable):
    """Somebody else changed the same rows first; the script is run again from its start."""

    code = "conflict"


Script = Callable[[Transaction], Result]
News = Callable[[], Wake | None]  # what others should hear of a transaction, if anything


def no_news() -> None:
    """Returns None: nobody else need hear of the transaction."""


class Stored(NamedTuple):
    """Says how a value is read from columns of a row, and how it is written to them.

    Without ``columns`` it is kept in the one of its field's name; without ``write`` it is only
    read.
    """

    read: Callable[..., Any]
    write: Callable[[Any], Any] | None = None  # to a tuple, where columns are named
    columns: tuple[str, ...] = ()


# By type, or by (type, field) for one field of it; None: it lies in rows of its own.
STORED: dict[Any, Stored | None] = {}
TYPE_NAMES: dict[str, Any] = {}  # types that a module imports for the type checker only
AS_IT_IS = Stored(lambda value: value, lambda value: value)


def once(function: Function) -> Function:
    """Caches the results of a function, as ``functools.cache`` does.

    Unlike that it keeps the function's type, for functions that are called with types.
    """
    return cast("Function", cache(function))


class _StoredField(NamedTuple):
    name: str
    columns: tuple[str, ...]
    rule: Stored
    may_lack: bool  # it is None where the first of its columns is


@once
def _stored_fields(kind: Any) -> tuple[_StoredField, ...]:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(kind, localns=TYPE_NAMES)
    found = []
    for one in fields(kind):
        parts = get_args(hints[one.name])
        may_lack = NoneType in parts
        hint = parts[0] if may_lack else hints[one.name]
        rule = STORED[kind, one.name] if (kind, one.name) in STORED else _rule(hint)
        if rule is not None:
            columns = rule.columns or (one.name,)
            found.append(_StoredField(one.name, columns, rule, may_lack))
    return tuple(found)


def _rule(hint: Any) -> Stored | None:  # noqa: ANN401 - any type
    """Returns how values of a type are kept; None if they lie in rows of their own."""
    if hint in STORED:
        return STORED[hint]
    if hint is bool:
        return Stored(bool, bool)
    if isinstance(hint, type) and issubclass(hint, Enum):
        members = {one.value: one for one in hint}
        return Stored(members.__getitem__, lambda value: value.value)
    if isinstance(hint, type) and is_dataclass(hint):
        columns = columns_of(hint)
        make = reader(columns, hint)
        return Stored(
            lambda *row: make(row), lambda value: tuple(row_of(value).values()), columns
        )
    return None if any(map(is_dataclass, get_args(hint))) else AS_IT_IS


@once
def columns_of(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - any dataclass or NamedTuple
    """Returns the names of the columns that a value of this type is read from."""
    if issubclass(kind, tuple):
        return tuple(kind._fields)
    return tuple(dict.fromkeys(name for one in _stored_fields(kind) for name in one.columns))


def row_of(thing: object) -> dict[str, Any]:
    """Returns a value as a row: for each column that it is kept in, what is written there."""
    row: dict[str, Any] = {}
    for name, columns, rule, _ in _stored_fields(type(thing)):
        value = getattr(thing, name)
        assert rule.write is not None, name
        if value is None:
            row |= dict.fromkeys(columns)
        elif rule.columns:
            row |= zip(columns, rule.write(value), strict=True)
        else:
            row[name] = rule.write(value)
    return row


def reader(
    columns: Sequence[str],
    of: type[Record],
    keep: Callable[[Callable[[Row], Record]], object] = lambda _: None,
) -> Callable[[Row], Record]:
    """Returns a function that makes a value of this type from a row with these columns.

    After some rows a faster one is made, for which ``keep`` is called.
    """
    kind: Any = of
    wanted = columns_of(kind)
    strange = [name for name in wanted if columns.count(name) != 1]
    assert not strange, f"{of.__name__}: {', '.join(strange)}: not one of {', '.join(columns)}"
    if issubclass(kind, tuple):
        make: Callable[[Row], Record] = kind._make
        if tuple(columns) == wanted:
            return make
        pick = itemgetter(*map(columns.index, wanted))
        return lambda row: make(pick(row) if len(wanted) > 1 else (pick(row),))
    found = [
        (name, [columns.index(column) for column in own], rule, may_lack)
        for name, own, rule, may_lack in _stored_fields(kind)
    ]
    count = 0

    def by_name(row: Row) -> Record:
        nonlocal count
        count += 1
        if count == READ_BY_NAME_MAX:
            keep(_compiled_reader(kind, found))
        given = {}
        for name, places, rule, may_lack in found:
            first = row[places[0]]
            if rule is AS_IT_IS or (may_lack and first is None):
                given[name] = first
            elif len(places) == 1:
                given[name] = rule.read(first)
            else:
                given[name] = rule.read(*[row[place] for place in places])
        thing: Record = kind(**given)
        return thing

    return by_name


def _compiled_reader(
    kind: type[Record], found: Sequence[tuple[str, Sequence[int], Stored, bool]]
) -> Callable[[Row], Record]:
    """Returns what ``reader`` does, compiled: a server reads tasks all the time."""
    made = maker(
        kind,
        [
            (name, tuple(places), None if rule is AS_IT_IS else rule.read, not may_lack)
            for name, places, rule, may_lack in found
        ],
    )
    return cast("Callable[[Row], Record]", made)


def found_one(found: Sequence[Record], kind: str, name: str) -> Record:
    """Returns the first thing that was found; raises NotFound if there is none."""
    if not found:
        raise NotFound(kind, name)
    return found[0]


# No database takes these in a text. Nothing is stored with them, so a query for such a name is
# to find nothing: the name becomes one that nothing can have, for it cannot be printed.
_UNSPEAKABLE = pattern("[\0\ud800-\udfff]")
NUL_IN_JSON = "\\u0000"
AS_THEY_ARE = frozenset({int, float, bool, bytes, type(None)})  # every database takes these
_TEXT = {str}
_encoder = msgspec.json.Encoder()


def as_parameter(value: object) -> object:
    """Returns a value in the form in which it is given to a query.

    A list of rows becomes JSON text, which the query unfolds again. In a text, characters that
    no database can hold are replaced by one that no stored name has, so that nothing is found.
    """
    if isinstance(value, str):
        is_speakable = value.isascii() and "\0" not in value
        return value if is_speakable else _UNSPEAKABLE.sub("\x1a", value)
    if not isinstance(value, (list, tuple)):
        return value
    try:
        text = _encoder.encode(value).decode()
    except UnicodeEncodeError:
        text = NUL_IN_JSON
    # This is rare, so the text is searched for it; a spec that mentions it comes here in vain.
    if NUL_IN_JSON in text:
        text = _encoder.encode(_findable_rows(value)).decode()
    return text


def as_columns(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], same: Mapping[str, object]
) -> list[Iterable[object]]:
    """Returns the columns of rows, with values as `as_parameter` has them: in one look for each
    column in which it would change none. ``same`` has those that are the same in all rows."""
    columns: list[Iterable[object]] = []
    for name in names:
        is_same = name in same
        values = [same[name]] * len(rows) if is_same else [*map(itemgetter(name), rows)]
        kinds = set(map(type, values))
        is_plain = kinds <= AS_THEY_ARE
        if kinds == _TEXT:
            together = "".join(cast("list[str]", values))
            is_plain = together.isascii() and "\0" not in together
        columns.append(values if is_plain else map(as_parameter, values))
    return columns


def _findable_rows(value: object) -> object:
    match value:
        case dict():
            return {name: _findable_rows(one) for name, one in value.items()}
        case list() | tuple():
            return [_findable_rows(one) for one in value]
        case _:
            return as_parameter(value)


def in_chunks(rows: Sequence[Result]) -> list[Sequence[Result]]:
    """Returns rows in chunks, each of which one statement may carry."""
    if 0 < len(rows) <= ROWS_PER_STATEMENT_MAX:  # nearly always
        return [rows]
    return [
        rows[start : start + ROWS_PER_STATEMENT_MAX]
        for start in range(0, len(rows), ROWS_PER_STATEMENT_MAX)
    ]


def records_in_chunks(
    tx: Transaction, query: str, of: type[Record], name: str, rows: Sequence[object]
) -> list[Record]:
    """Returns what a query finds for any number of rows, as values of a type.

    The rows are given to it, as parameter ``name``, in chunks.
    """
    return [one for chunk in in_chunks(rows) for one in tx.records(query, of, **{name: chunk})]


def rows_in_chunks(
    tx: Transaction, query: str, name: str, rows: Sequence[object], **others: object
) -> list[Row]:
    """Returns what a query finds for any number of rows, given to it in chunks."""
    return [
        row for chunk in in_chunks(rows) for row in tx.rows(query, **{name: chunk}, **others)
    ]
