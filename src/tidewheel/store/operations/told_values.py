"""Keeps the values that attempts tell; alone, as leases would be too long a module with it.

A task has one row of values, of the attempt that told some last. What a message brings is added
to it at once; what a success returns is added to that. Another attempt begins anew. The row of
an attempt that failed counts for those that one of its outputs let run, until the task has
succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidewheel.core.queue.requests import JobMessage, Report
from tidewheel.core.queue.task import TaskState
from tidewheel.core.queue.values import merged, values_text
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.rows import storable
from tidewheel.store.transaction import Transaction, rows_in_chunks


class ToldValues(NamedTuple):
    """Holds what a task has told so far, and in which attempt."""

    seq: int
    attempt: int
    body: str


class Teller:
    """Puts together what an attempt tells: values of its messages, and those of its end."""

    def __init__(self, task: TaskState, known: ToldValues | None) -> None:
        is_known = known is not None and known.attempt == task.attempt
        self._known = known.body if known is not None and is_known else None
        self.body: str | None = None  # all of it; None: nothing new

    def heard(self, message: JobMessage) -> JobMessage:
        """Returns a message with all that was told by then; raises BadValues if that is too
        much, or no object."""
        if message.values is None:
            return message
        self.body = values_text(self._with(values_text(storable(message.values))))
        return replace(message, values=self.body)

    def ended(self, values: str) -> str:
        """Returns all values of a success. What it returns is bounded by itself."""
        self.body = self._with(values)
        return self.body

    def _with(self, more: str) -> str:
        known = self._known if self.body is None else self.body
        return more if known is None else merged(known, more)


def told_before(
    tx: Transaction, reports: Iterable[tuple[TaskState | None, Report]]
) -> dict[int, ToldValues]:
    """Returns what the tasks whose reports tell values have told before, by seq."""
    telling = [task.seq for task, one in reports if task is not None and _tells(one)]
    return _told(tx, telling) if telling else {}


def hear_values(tx: Transaction, task: TaskState, message: JobMessage) -> JobMessage:
    """Keeps the values of one message; returns it with all that was told by then."""
    heard = Teller(task, _told(tx, [task.seq]).get(task.seq)).heard(message)
    row = {"seq": task.seq, "attempt": task.attempt, "body": heard.values}
    tx.rows("put_values", values=[row])
    return heard


def add_values(tx: Transaction, rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Keeps what attempts return, together with what they have told before; returns the whole
    for those that have."""
    new = {seq for (seq,) in rows_in_chunks(tx, "add_values", "values", rows)}
    others = [row for row in rows if row["seq"] not in new]
    if not others:
        return {}
    told = _told(tx, [row["seq"] for row in others])
    whole = [{**row, "body": _with_more(told[row["seq"]], row)} for row in others]
    rows_in_chunks(tx, "put_values", "values", whole)
    return {row["seq"]: row["body"] for row in whole}


def _with_more(told: ToldValues, row: Mapping[str, Any]) -> str:
    body: str = row["body"]
    return merged(told.body, body) if told.attempt == row["attempt"] else body


def _told(tx: Transaction, seqs: Sequence[int]) -> dict[int, ToldValues]:
    found = rows_in_chunks(tx, "list_told", "seqs", seqs)
    return {one.seq: one for one in map(ToldValues._make, found)}


def _tells(one: Report) -> bool:
    returns = one.end is not None and one.end.values is not None
    return returns or any(message.values is not None for message in one.messages)
