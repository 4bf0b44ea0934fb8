"""Defines what an operation sees of a database: named queries inside one transaction.

A query is known by the name of its file (``queries/<dialect>/NAME.sql``); the memory store
has a function of the same name. Parameters are plain values or lists of rows (mappings or
dataclasses). ``records`` reads rows by the names of their columns into a type; ``rows`` gives
plain tuples, for a few columns that are unpacked where they are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from tidewheel.core.queue.requests import Wake
from tidewheel.errors import Unavailable

if TYPE_CHECKING:
    from tidewheel.store.rows import ClaimedRow

Row = tuple[Any, ...]
Result = TypeVar("Result")
Record = TypeVar("Record")
Other = TypeVar("Other")

# Rows of one statement: enough to make the round trip cheap, few enough to keep locks short.
ROWS_PER_STATEMENT_MAX = 1_000


class PlainEnd(NamedTuple):
    """Is a success without messages, usage, exit status or metrics."""

    task_id: str
    attempt: int
    started: bool  # the job's start is reported together with its end


class Transaction(Protocol):
    """Is one transaction of a script; the script's end commits it, an exception undoes it."""

    def rows(self, query: str, **parameters: object) -> list[Row]: ...

    def records(self, query: str, of: type[Record], /, **parameters: object) -> list[Record]:
        """Returns the rows as values of a type: a column for each of its fields, by name."""
        ...

    def pairs(
        self, query: str, one: type[Record], other: type[Other], /, **parameters: object
    ) -> list[tuple[Record, Other]]:
        """Returns two values for each row, where a query joins two things."""
        ...

    # The hot paths. PostgreSQL does each in one statement, SQLite in a few short ones; both
    # write just what the scripts for rarer cases would write.

    def insert(self, tasks: Sequence[Mapping[str, object]]) -> dict[str, int]:
        """Stores new tasks, each with the first entry of its history and, if it is ready, its
        place among those that are. Returns their seqs by id; an id that is there is left
        out."""
        ...

    def claim(self, query: str, lease_seconds: float, **parameters: object) -> list[ClaimedRow]:
        """Runs a claim query, and writes a lease and a history entry for each of its rows."""
        ...

    def succeed(self, worker: str, ends: Sequence[PlainEnd]) -> dict[str, int | None]:
        """Ends attempts with success where nothing else is to be done: running, owned by the
        worker, without dependencies. Returns the ids of those that were, each with the run that
        it belongs to, if any; others are left alone."""
        ...


class Conflict(Unavailable):
    """Somebody else changed the same rows first; the script is run again from its start."""

    code = "conflict"


Script = Callable[[Transaction], Result]
News = Callable[[], Wake | None]  # what others should hear of a transaction, if anything


def no_news() -> None:
    """Does nothing: it is the news of a transaction that concerns nobody else."""


def reader(columns: Sequence[str], of: type[Record]) -> Callable[[Row], Record]:
    """Returns what makes a NamedTuple or dataclass of a row with these columns, by name."""
    kind: Any = of
    is_tuple = issubclass(kind, tuple)
    fields = tuple(kind._fields if is_tuple else kind.__dataclass_fields__)
    strange = [name for name in fields if columns.count(name) != 1]
    assert not strange, f"{of.__name__}: {', '.join(strange)}: not one of {', '.join(columns)}"

    def by_name(values: Row) -> Record:
        made: Record = kind(**dict(zip(fields, values, strict=True)))
        return made

    make: Callable[[Row], Record] = kind._make if is_tuple else by_name
    if tuple(columns) == fields:
        return make
    pick = itemgetter(*map(columns.index, fields))
    return (lambda row: make(pick(row))) if len(fields) > 1 else lambda row: make((pick(row),))


def as_parameter(value: object) -> object:
    """Returns a list of rows as JSON text, which both databases unfold again."""
    if not isinstance(value, list | tuple):
        return findable(value) if isinstance(value, str) else value
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = NUL_IN_JSON
    # Seldom, so looked for in the text: a spec that speaks of NUL comes here in vain.
    if NUL_IN_JSON in text:
        text = msgspec.json.encode(_findable_rows(value)).decode()
    return text


# No database takes these in a text. Nothing is stored with them, so a query for such a name is
# to find nothing: the name becomes one that nothing can have, for it cannot be printed.
_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")
NUL_IN_JSON = "\\u0000"


def findable(text: str) -> str:
    """Returns the same text, or one that is nobody's name if no database could be asked for
    it."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSPEAKABLE.sub("\x1a", text)


def _findable_rows(value: object) -> object:
    match value:
        case str():
            return findable(value)
        case dict():
            return {name: _findable_rows(one) for name, one in value.items()}
        case list() | tuple():
            return [_findable_rows(one) for one in value]
        case _:
            return value


def in_chunks(rows: Sequence[Result]) -> list[Sequence[Result]]:
    """Returns rows in portions that one statement may carry."""
    return [
        rows[start : start + ROWS_PER_STATEMENT_MAX]
        for start in range(0, len(rows), ROWS_PER_STATEMENT_MAX)
    ]


def records_in_chunks(
    tx: Transaction, query: str, of: type[Record], name: str, rows: Sequence[object]
) -> list[Record]:
    """Reads what one query finds for any number of rows."""
    return [one for chunk in in_chunks(rows) for one in tx.records(query, of, **{name: chunk})]


def rows_in_chunks(tx: Transaction, query: str, name: str, rows: Sequence[object]) -> list[Row]:
    """Runs one query over any number of rows."""
    return [row for chunk in in_chunks(rows) for row in tx.rows(query, **{name: chunk})]
