"""Rows of runs at earlier batches, kept here and there, so that a replay begins near its end.

Theory of operation. The store logs what each batch changed, and nothing leads back from a later
batch to an earlier one: a pool of the past is made by playing the log from its beginning. While
it is played, what there is every few thousand changes is kept as a checkpoint; the next replay
begins with the nearest. The log is append-only, so a checkpoint is true for ever, and two
who play the same part at the same time keep the same. Rows are frozen and shared between
checkpoints; what the pool has forgotten is a chain of layers, each on top of the one before.
What is kept costs at most as many rows as the log has changes, and never more than `rows_max`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.views import ChangesView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    ForgetMemory,
    PoolLedger,
    PutMemory,
    PutTask,
)
from tidewheel.core.sched.task_state import Key, TaskHistory
from tidewheel.store.change_rows import read_changes

CHANGES_BETWEEN = 2_000  # are played in a few hundredths of a second
ROWS_HELD_MAX = 150_000  # of all runs together; 60 to 150 MB
RECENT = 8  # batches whose numbers are known


class Forgotten:
    """The rows that the pool of an earlier moment had let go; nothing of what came later."""

    def __init__(self, before: Forgotten | None = None) -> None:
        self._before = before
        self.rows: dict[Key, PutMemory] = {}

    def __len__(self) -> int:
        return sum(len(layer.rows) for layer in self._layers())

    def row(self, key: Key) -> PutMemory | None:
        found = (layer.rows.get(key) for layer in self._layers())
        return next((row for row in found if row is not None), None)

    def points(self) -> set[Point]:
        return {point for layer in self._layers() for point, _ in layer.rows}

    def newest(self, count: int) -> list[PutMemory]:
        """Returns at least the last so many forgotten rows, and all of their points."""
        rows = (row for layer in self._layers() for row in reversed(layer.rows.values()))
        points = {row.key[0] for row in islice(rows, count)}
        last: dict[Key, PutMemory] = {}
        for layer in self._layers():
            last = {key: row for key, row in layer.rows.items() if key[0] in points} | last
        return list(last.values())

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        row = self.row((point, name))
        return None if row is None else row.memory()

    def _layers(self) -> Iterator[Forgotten]:
        layer: Forgotten | None = self
        while layer is not None:
            yield layer
            layer = layer._before


class Before(NamedTuple):
    """The changes of the last batch, and the rows of the same tasks before it."""

    changes: Sequence[Change] = ()
    rows: Mapping[object, Change] = MappingProxyType({})

    def task(self, key: Key) -> PutTask | None:
        found = self.rows.get(("task", *key))
        return found if isinstance(found, PutTask) else None

    def memory(self, key: Key) -> PutMemory | None:
        found = self.rows.get(("memory", *key))
        return found if isinstance(found, PutMemory) else None


class Checkpoint(NamedTuple):
    """All rows behind a batch. Nobody changes them."""

    batch: int
    at: Instant
    rows: dict[object, Change]
    forgotten: Forgotten
    recent: tuple[int, ...]
    before: Before


class Replay:
    """The rows as the store held them behind the last batch that was played."""

    def __init__(self, since: Checkpoint | None = None) -> None:
        self.ledger = PoolLedger()
        self.forgotten = Forgotten(None if since is None else since.forgotten)
        self.batch, self.at = 0, Instant(0.0)
        self.recent: tuple[int, ...] = ()  # the newest batches that were played
        if since is not None:
            self.ledger.rows = dict(since.rows)
            self.batch, self.at, self.recent = since.batch, since.at, since.recent
        self.before = Before() if since is None else since.before
        self._played = 0  # changes since the last checkpoint

    def play(self, batches: list[ChangesView]) -> list[Checkpoint]:
        """Applies batches, and returns the checkpoints that were passed."""
        passed: list[Checkpoint] = []
        for one in batches:
            changes = read_changes(one.changes)
            self.before = Before(changes, self._rows_before(changes))
            self.ledger.write(changes)
            for change in changes:
                if isinstance(change, ForgetMemory):
                    # Taken out first: the order is that of forgetting.
                    self.forgotten.rows.pop(change.row.key, None)
                    self.forgotten.rows[change.row.key] = change.row
            self.batch, self.at = one.batch, one.at
            self.recent = (*self.recent, one.batch)[-RECENT:]
            self._played += len(changes)
            # As many changes as rows at least, or what is kept would outgrow the log.
            if self._played >= max(CHANGES_BETWEEN, len(self.ledger.rows)):
                passed.append(self._checkpoint())
        return passed

    def _rows_before(self, changes: Sequence[Change]) -> dict[object, Change]:
        keys = {change.key for change in changes if isinstance(change, DropTask)}
        keys |= {change.row[:2] for change in changes if isinstance(change, PutTask)}
        places = [(kind, *key) for key in keys for kind in ("task", "memory")]
        rows = self.ledger.rows
        return {place: rows[place] for place in places if place in rows}

    def _checkpoint(self) -> Checkpoint:
        kept = Checkpoint(
            self.batch,
            self.at,
            dict(self.ledger.rows),
            self.forgotten,
            self.recent,
            self.before,
        )
        self.forgotten, self._played = Forgotten(self.forgotten), 0
        return kept


class Checkpoints:
    """Keeps the checkpoints of the runs that were looked at last."""

    def __init__(self, rows_max: int = ROWS_HELD_MAX) -> None:
        self._rows_max = rows_max
        self._runs: dict[int, list[Checkpoint]] = {}  # the one that was used last is the last

    @property
    def rows_held(self) -> int:
        """Returns the number of rows that all checkpoints together hold."""
        return sum(_rows_held(kept) for kept in self._runs.values())

    def nearest(self, run: int, batch: int | None, at: Instant | None) -> Checkpoint | None:
        """The last that is not behind this batch and this time."""
        kept = self._runs.pop(run, [])
        if kept:
            self._runs[run] = kept
        place = len(kept)
        if batch is not None:
            place = bisect_right(kept, batch, key=lambda one: one.batch)
        while place and at is not None and kept[place - 1].at > at:
            place -= 1
        return kept[place - 1] if place else None

    def keep(self, run: int, passed: list[Checkpoint]) -> None:
        """Keeps checkpoints, and drops some while they hold too many rows.

        Those of other runs go first, then every second one of this run.
        """
        if not passed:
            return
        by_batch = {one.batch: one for one in self._runs.pop(run, [])}
        for one in passed:
            by_batch.setdefault(one.batch, one)
        self._runs[run] = sorted(by_batch.values(), key=lambda one: one.batch)
        while self.rows_held > self._rows_max:
            longest_unused = next(iter(self._runs))
            kept = self._runs.pop(longest_unused)
            if longest_unused == run and len(kept) > 1:
                self._runs[run] = kept[1::2]


def _rows_held(kept: list[Checkpoint]) -> int:
    return sum(len(one.rows) for one in kept) + (len(kept[-1].forgotten) if kept else 0)
