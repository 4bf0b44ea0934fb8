"""A run as it was: its pool made again from the changes of every batch until then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import NamedTuple

from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.views import ChangesView, RunView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import PutRun
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import RestoredDefinition
from tidewheel.views.checkpoints import (
    RECENT,
    Before,
    Checkpoints,
    Forgotten,
    Replay,
)
from tidewheel.views.past import batch_of, changed_document, command_document
from tidewheel.views.rows import task_rows_document
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, pool_of, recall_all
from tidewheel.vocabulary import time_text

PLANS_MAX = 8  # of the runs that were looked at last
PAGE = 1_000  # batches, read at once
AROUND = RECENT  # batches until then, and as many behind it
COMMANDS_MAX = 1_000
ROWS_SHOWN = 2_000  # unless more are asked for
FORGOTTEN_MAX = 10_000  # are remembered again, as in views of the present


class PastMoment(NamedTuple):
    """A run as it was: behind this batch, or at this time; without either, as it is now."""

    batch: int | None
    at: Instant | None = None

    def has(self, one: ChangesView) -> bool:
        return (self.batch is None or one.batch <= self.batch) and (
            self.at is None or one.at <= self.at
        )


class Then(NamedTuple):
    """What is known of a run at an earlier moment."""

    looked: RunSnapshot
    at: Instant
    recent: tuple[int, ...]  # the newest batches of that time
    forgotten: Forgotten
    before: Before


class Pasts:
    """Makes runs as they were; what helps to make the next one is remembered."""

    def __init__(self) -> None:
        self._checkpoints = Checkpoints()
        self._plans: dict[int, DependencyIndex] = {}

    async def then(
        self,
        store: Store,
        view: RunView,
        restored: RestoredDefinition,
        moment: PastMoment,
        forgotten_max: int = FORGOTTEN_MAX,
    ) -> Then:
        """The run at that moment, with the newest of what its pool had forgotten."""
        replay = await self._replayed(store, view.number, moment)
        now = await store.now()
        found = replay.ledger.rows.get("run")
        status = str(found.run.status) if isinstance(found, PutRun) else "created"
        was = replace(view, batch=replay.batch, status=status, reason="")
        stored = StoredRun(changes=tuple(replay.ledger.rows.values()))
        plan = self._plan(view.number, restored.graph)
        pool = pool_of(restored.graph, stored, replay.forgotten, was, plan)
        recall_all(pool, replay.forgotten.newest(forgotten_max))
        looked = RunSnapshot(restored.graph, pool, was, stored, restored.reader, now)
        at = replay.at if replay.batch else view.created_at
        return Then(looked, at, replay.recent, replay.forgotten, replay.before)

    async def _replayed(self, store: Store, run: int, moment: PastMoment) -> Replay:
        """From the nearest checkpoint on."""
        replay = Replay(self._checkpoints.nearest(run, moment.batch, moment.at))
        after = replay.batch
        while page := await store.run_changes(run, after, PAGE):
            until = list(takewhile(moment.has, page))
            # A thousand batches take a moment, for which others need not wait.
            self._checkpoints.keep(run, await asyncio.to_thread(replay.play, until))
            after = page[-1].batch
            if len(until) < len(page):
                break
        return replay

    def _plan(self, run: int, graph: Graph) -> DependencyIndex:
        """Of its own, as far as a pool of the past may add nodes that are gone since."""
        plan = self._plans.pop(run, None)
        if plan is None or plan.graph is not graph:
            plan = build_index(graph)
        self._plans[run] = plan
        while len(self._plans) > PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        return replace(plan, nodes=dict(plan.nodes))


async def past_document(store: Store, then: Then, view: RunView, rows_max: int) -> Document:
    """The tasks of that moment.

    `around` are the batches before and behind it, `commands` what was asked meanwhile.
    """
    looked = then.looked
    first = then.recent[0] - 1 if then.recent else 0
    around = await store.run_changes(view.number, first, len(then.recent) + AROUND)
    complete = len(around) == len(then.recent) + AROUND
    until = around[-1].at if complete else looked.now
    older = len(then.forgotten.points() - looked.pool.memory.keys())
    document = task_rows_document(looked, {}, "", rows_max, older)
    del document["cursor"]  # of events: it belongs to the present
    return document | {
        "at": time_text(then.at),
        "status": looked.view.status,
        "last_batch": view.batch,
        "changed": changed_document(looked, then.before),
        "around": [batch_of(looked, one) for one in around],
        "commands": await _commands(store, view, around, until),
    }


def read_moment(text: str) -> Instant | None:
    """A time as REST writes it."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"at is a time such as 2030-01-01T06:00:00Z, not {text!r}") from None
    return Instant((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


async def _commands(
    store: Store, view: RunView, around: list[ChangesView], until: Instant
) -> list[Document]:
    """What operators asked while these batches were written, oldest first."""
    if not around:
        return []
    found = await store.commands(view.number, COMMANDS_MAX)
    asked = [one for one in found if around[0].at <= one.at <= until]
    return [command_document(one) for one in reversed(asked)]
