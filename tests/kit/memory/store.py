"""The memory store: scripts run at once, one after the other."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.kit.memory import (
    access,
    blocks,
    changes,
    definitions,
    grid,
    lanes,
    leases,
    notebooks,
    registry,
    run_batches,
    runs,
    stream,
    views,
    workers,
)
from tests.kit.memory.tables import Tables
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.store.rows import ClaimedRow
from tidewheel.store.store import DatabaseStore
from tidewheel.store.transaction import (
    News,
    Other,
    Record,
    Result,
    Row,
    Script,
    Success,
    Transaction,
    columns_of,
    no_news,
    once,
    reader,
)

Query = Callable[..., list[Row]]
_MODULES = (
    *(changes, grid, lanes, leases, views, workers, runs, run_batches, stream, access),
    *(definitions, registry, blocks, notebooks),
)


class MemoryTransaction(Transaction):
    """Queries by name over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def ask(self, query: str, parameters: Mapping[str, object]) -> list[Row]:
        return QUERIES[query](self._tables, **parameters)

    def columns(self) -> list[str]:
        """None: queries of this store answer in the order of the types' own."""
        return []

    def records(self, query: str, of: type[Record], /, **parameters: object) -> list[Record]:
        read = _reader(of)
        return [read(row) for row in self.rows(query, **parameters)]

    def pairs(
        self, query: str, one: type[Record], other: type[Other], /, **parameters: object
    ) -> list[tuple[Record, Other]]:
        """Returns what a row has for the first type, before what it has for the other."""
        count = len(columns_of(one))
        read, read_other = _reader(one), _reader(other)
        rows = self.rows(query, **parameters)
        return [(read(row[:count]), read_other(row[count:])) for row in rows]

    def insert(self, tasks: Sequence[Mapping[str, object]]) -> dict[str, int]:
        seqs: dict[str, int] = dict(self.rows("insert_tasks", tasks=tasks))
        self.rows("add_creations", seqs=list(seqs.values()))
        self.rows("add_ready", seqs=list(seqs.values()))
        return seqs

    def insert_alike(
        self,
        said: Mapping[str, object],
        ids: Sequence[str],
        specs: Sequence[str] | None,
        digests: Sequence[str] | None,
    ) -> bool:
        """One by one: in memory the long way is as fast."""
        rows = []
        for place, task_id in enumerate(ids):
            row = {**said, "id": task_id, "spec": None if specs is None else specs[place]}
            rows.append(row if digests is None else row | {"digest": digests[place]})
        assert len(self.insert(rows)) == len(rows), "an id was not new"
        return True

    def claim(self, query: str, lease_seconds: float, **parameters: object) -> list[ClaimedRow]:
        rows = self.records(query, ClaimedRow, **parameters)
        seqs = [row.seq for row in rows]
        self.rows("take_leases", seqs=seqs, lease_seconds=lease_seconds)
        self.rows("add_claims", seqs=seqs)
        return rows

    def fold_lanes(self, queue: str) -> None:
        self.rows("fold_lanes", queue=queue)

    def candidates(self, of: type[Record], **parameters: object) -> list[Record]:
        if parameters["lanes"]:
            self.rows("fold_lanes", queue=parameters["queue"])
        return self.records("list_candidates", of, **parameters)

    def succeed(self, worker: str, ends: Sequence[Success]) -> list[Row]:
        """None: in memory the long way is as fast."""
        del worker, ends
        return []


class MemoryStore(DatabaseStore):
    """A Store that lasts as long as its process.

    ``clock`` stands for the database's clock, ``chance`` for its dice.
    ``on_commit`` is told the tables and which tasks each commit touched.
    """

    waits = False

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        chance: Callable[[], float] | None = None,
        limits: SubmitLimits | None = None,
        on_commit: Callable[[Tables, set[int]], None] | None = None,
    ) -> None:
        super().__init__(limits or SubmitLimits(), chance or random.Random(0).random)
        self.tables = Tables(clock)
        self._transaction = MemoryTransaction(self.tables)
        self._on_commit = on_commit

    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        del news  # nobody else can see this store
        try:
            result = script(self._transaction)
        except BaseException:
            self.tables.undo()
            raise
        touched = self.tables.commit()
        if self._on_commit is not None:
            self._on_commit(self.tables, touched)
        return result

    async def look(self, script: Script[Result]) -> Result:
        return script(self._transaction)

    def look_now(self, script: Script[Result]) -> Result:
        return script(self._transaction)

    async def close(self) -> None:
        """Nothing to let go of."""


@once
def _reader(of: Any) -> Callable[[Row], Any]:
    return reader(columns_of(of), of)


def _queries() -> dict[str, Query]:
    found: dict[str, Any] = {}
    for module in _MODULES:
        found |= {name: getattr(module, name) for name in module.__all__}
    return found


QUERIES = _queries()
