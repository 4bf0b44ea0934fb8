"""Hands the values that tasks return to the tasks after them.

Theory of operation. A job returns a JSON object with its success, in one transaction. The event
that tells the run of the success has it along; the scheduler keeps it by point, name, flows
and submission, in the batch that hears the success (`run_values` in the store). A task that is
submitted later gets the values of its parents: of each the newest submission in a flow of its
own, else the newest of any flow. They are part of its script, so a job has its values wherever
and whenever it starts, and a scheduler that takes the run over in the middle of a batch writes
the same script.

A run whose tasks return nothing pays nothing: no submission waits for a look into the store
before the first value was heard, unless its task says which values it takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.operator.task_inputs import (
    Inputs,
    RunInputs,
    Sizes,
    inputs_of,
    lists_in,
    parents_of,
    run_inputs_of,
    values_for,
    values_with_lists,
)
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.ports.store import Store

KEPT_BYTES_MAX = 16 * 1024 * 1024  # of values in memory, behind a batch
ROW_BYTES = 450  # of a row in memory, besides its body
NO_FLOWS = "[]"
NO_LISTS: Mapping[str, int] = MappingProxyType({})


class RunValues:
    """Holds the values of one run that its scheduler needs; the rest is in the store."""

    def __init__(self, store: Store, run: int, *, is_used: bool) -> None:
        self._store, self._run = store, run
        self.is_used = is_used  # a task of this run has returned values
        self._heard: dict[Key, list[StoredValues]] = {}
        self._fetched: dict[Key, list[StoredValues]] = {}  # all that the store had
        self._bytes = 0

    def heard(self, key: Key, submit: int, flows: Flows, body: str) -> StoredValues:
        """Takes the values of a submission; returns the row that the batch is to write."""
        self.is_used = True
        row = StoredValues(*key, submit, json.dumps(sorted(flows)), body)
        self._heard.setdefault(key, []).append(row)
        self._bytes += ROW_BYTES + len(body)
        return row

    async def fetch(self, keys: Iterable[Key], *, one_flow: bool) -> None:
        """Reads the values of these tasks, unless they are here: in a run of one flow the
        newest ones count, and those are what was heard last."""
        unknown = sorted({key for key in keys if not self._is_here(key, one_flow=one_flow)})
        if not unknown:
            return
        rows = await self._store.run_values(self._run, unknown)
        self._fetched |= {key: [] for key in unknown}
        self._bytes += ROW_BYTES * len(unknown)
        for row in rows:
            self._fetched[row.point, row.name].append(row)
            self._bytes += ROW_BYTES + len(row.body)

    async def fetch_for(self, pool: TaskPool, keys: Iterable[Key]) -> None:
        """Reads the values of these tasks, and all lists of those that returned them again: of
        a list the first counts, too."""
        wanted = list(keys)
        await self.fetch(wanted, one_flow=pool.run.flows_made <= 1)
        if pool.plan.mapped:
            again = [one for one in wanted if _was_listed_again(pool, one)]
            await self.fetch(again, one_flow=False)

    def _is_here(self, key: Key, *, one_flow: bool) -> bool:
        if key in self._fetched:
            return True
        # Of a run in no flow others may count more, which the store has.
        return one_flow and key in self._heard and self._heard[key][-1].flows != NO_FLOWS

    def written(self) -> None:
        """Drops what is here, if that is much, once a batch is written: the store has it."""
        if self._bytes > KEPT_BYTES_MAX:
            self._heard.clear()
            self._fetched.clear()
            self._bytes = 0

    def of(
        self, key: Key, flows: Flows, lists: Mapping[str, int] = NO_LISTS
    ) -> StoredValues | None:
        """Returns the values of a task for one in these flows; None if it returned none. They
        must have been fetched. ``lists`` are of the submissions that these numbers name."""
        rows = self.rows_of(key)
        if lists:
            return values_with_lists(rows, flows, lists)
        return values_for(rows, flows) if rows else None

    def rows_of(self, key: Key) -> tuple[StoredValues, ...]:
        """Returns all that is here of a task's values, of each submission the last row last."""
        return (*self._fetched.get(key, ()), *self._heard.get(key, ()))

    def inputs(self, pool: TaskPool, key: Key, flows: Flows, sizes: Sizes) -> Inputs:
        """Returns what a task is given; raises Refused if it lacks a value that it asks for."""
        known = self._of_parents(pool, key, flows, sizes)
        return inputs_of(pool.plan.graph, key, known, sizes)

    def run_inputs(self, pool: TaskPool, key: Key, flows: Flows, sizes: Sizes) -> RunInputs:
        """Returns what a task that is a run of another workflow is given; raises Refused if it
        lacks a value that it asks for."""
        known = self._of_parents(pool, key, flows, sizes)
        return run_inputs_of(pool.plan.graph, key, known, sizes)

    def _of_parents(
        self, pool: TaskPool, key: Key, flows: Flows, sizes: Sizes
    ) -> dict[Key, StoredValues]:
        found = {
            parent: self.of(
                parent, flows, lists_in(pool, parent, flows) if pool.plan.mapped else NO_LISTS
            )
            for parent in parents_of(pool.plan.graph, key, sizes)
        }
        return {parent: row for parent, row in found.items() if row is not None}


def _was_listed_again(pool: TaskPool, key: Key) -> bool:
    """Says whether a task of whose lists others are made has been submitted more than once."""
    node, memory = pool.plan.nodes.get(key[1]), pool.recall(*key)
    if node is None or not node.lists or memory is None:
        return False
    return memory.submits > 1 or key in pool.tasks
