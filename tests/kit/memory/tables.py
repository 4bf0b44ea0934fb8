"""Tables of the memory store: dictionaries that can undo what a failed script did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Record = dict[str, Any]  # a row; never changed in place, always replaced
_MISSING = object()


class Table(dict[Any, Any]):
    """A dictionary that writes down what it held before, until told to forget."""

    def __init__(self, journal: list[tuple[Table, Any, Any]]) -> None:
        super().__init__()
        self._journal = journal

    def __setitem__(self, key: Any, value: Any) -> None:
        self._journal.append((self, key, self.get(key, _MISSING)))
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self._journal.append((self, key, self[key]))
        super().__delitem__(key)

    def put_back(self, key: Any, value: Any) -> None:
        """Undo one entry of the journal."""
        if value is _MISSING:
            super().pop(key, None)
        else:
            super().__setitem__(key, value)


class Tables:
    """All tables of one store, with the clock that stands for the database's."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.journal: list[tuple[Table, Any, Any]] = []
        self.task = self._table()  # by seq
        self.id = self._table()  # id -> seq
        self.lease = self._table()  # by seq
        self.attempt = self._table()  # by (seq, attempt)
        self.edge = self._table()  # by (parent, child, output) -> state
        self.message = self._table()  # by (seq, attempt, number)
        self.usage = self._table()  # by number
        self.values = self._table()  # by seq
        self.history = self._table()  # by number
        self.worker = self._table()  # by id
        self.queue = self._table()  # by name
        self.limit = self._table()  # by (queue, key)
        self.bucket, self.lane = (
            self._table(),
            self._table(),
        )  # by (queue, key); a lane: its turn
        self.definition = self._table()  # by digest
        self.workflow = self._table()  # by (name, version)
        self.run = self._table()  # by number
        self.run_need = self._table()  # by (run, parent, condition)
        self.sbi = self._table()  # by id
        self.processing_block = self._table()  # by id
        self.buffer_object = self._table()  # by name
        self.pool = self._table()  # by (run, point, name)
        self.memory = self._table()  # by (run, point, name)
        self.fact = self._table()  # by (run, kind, key)
        self.timer = self._table()  # by (run, point, name, timer)
        self.event = self._table()  # by seq
        self.command = self._table()  # by number
        self.broadcast = self._table()  # by (run, point, namespace, setting)
        # By (run, signature), and by (run, version).
        self.xtrigger, self.run_version = self._table(), self._table()
        # By (run, batch, place), and by (run, point, name, submit).
        self.outbox, self.run_values = self._table(), self._table()
        self.run_change = self._table()  # by (run, batch)
        self.run_history = self._table()  # by number, in one row with history
        self.floor = self._table()  # the last number of which something was deleted
        self.token = self._table()  # by number
        self.worker_token = self._table()  # worker's number -> token
        self.audit, self.attempt_key = self._table(), self._table()  # by number, fingerprint
        self.answer = self._table()  # by (token, key)
        self.notebook = self._table()  # by name
        self.number = self._table()  # sequences by name

    def _table(self) -> Table:
        return Table(self.journal)

    def next_number(self, sequence: str) -> int:
        """The next value of a sequence; like a database's, it never goes back."""
        number: int = self.number.get(sequence, 0) + 1
        dict.__setitem__(self.number, sequence, number)
        return number

    def commit(self) -> set[int]:
        """Keep what was done; the seqs of the tasks concerned, for checks after each step."""
        touched = {key for table, key, _ in self.journal if table is self.task}
        touched |= {key for table, key, _ in self.journal if table is self.lease}
        self.journal.clear()
        return touched

    def undo(self) -> None:
        """Put back everything since the last commit, newest first."""
        while self.journal:
            table, key, value = self.journal.pop()
            table.put_back(key, value)

    def update(self, table: Table, key: Any, **values: Any) -> None:
        """Replace some fields of a row."""
        table[key] = table[key] | values
