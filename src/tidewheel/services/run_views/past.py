"""A run as it was: its pool made again from the changes of every batch until then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.runs.requests import StoredRun
from tidewheel.core.runs.views import ChangesView, RunView
from tidewheel.core.sched.records import ForgetMemory, Ledger, PutMemory, PutRun
from tidewheel.core.sched.states import Flows, Key
from tidewheel.core.tasks.task import Instant
from tidewheel.errors import Refused
from tidewheel.ports import Store
from tidewheel.services.run_views.history import command_document
from tidewheel.services.run_views.loading import Looked, pool_of, recall_all
from tidewheel.services.run_views.past_changes import batch_of
from tidewheel.services.run_views.run_facts import Document
from tidewheel.services.run_views.task_rows import task_rows_document
from tidewheel.store.change_rows import read_changes
from tidewheel.vocabulary import time_text

PAGE = 1_000  # batches, read at once
AROUND = 8  # batches before it, and as many behind it
COMMANDS_MAX = 1_000


class _Forgotten:
    """What the pool of that time had let go; what came later is not known to it."""

    def __init__(self) -> None:
        self.rows: dict[Key, PutMemory] = {}

    def submits(self, point: Point, name: str) -> int:
        row = self.rows.get((point, name))
        return 0 if row is None else row.submits

    def spawned(self, point: Point, name: str) -> Flows:
        row = self.rows.get((point, name))
        return frozenset() if row is None else row.spawned


class _Replay:
    """The rows as the store held them behind the last batch that was played."""

    def __init__(self) -> None:
        self.ledger, self.forgotten = Ledger(), _Forgotten()
        self.last: list[ChangesView] = []  # the newest batches that were played

    def play(self, batches: list[ChangesView]) -> None:
        for one in batches:
            changes = read_changes(one.changes)
            self.ledger.write(changes)
            for change in changes:
                if isinstance(change, ForgetMemory):
                    self.forgotten.rows[change.row.key] = change.row
        self.last = [*self.last, *batches][-AROUND:]

    @property
    def status(self) -> str:
        found = self.ledger.rows.get("run")
        return str(found.run.status) if isinstance(found, PutRun) else "created"


async def past_document(
    store: Store, looked: Looked, batch: int | None, at: Instant | None
) -> Document:
    """Behind this batch, or at this time; without either, as it is now.

    `around` are the batches before and behind it, `commands` what was asked meanwhile.
    """
    view = looked.view
    replay, later = await _replayed(store, view, batch, at)
    until = later[-1].at if len(later) == AROUND else looked.now
    then = _as_it_was(looked, replay)
    here = replay.last[-1] if replay.last else None
    around = [*replay.last, *later]
    # The cursor of events belongs to the present.
    document = task_rows_document(then, {}, "")
    del document["cursor"]
    return document | {
        "at": time_text(view.created_at if here is None else here.at),
        "status": replay.status,
        "last_batch": view.batch,
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


async def _replayed(
    store: Store, view: RunView, batch: int | None, at: Instant | None
) -> tuple[_Replay, list[ChangesView]]:
    """Everything until then, and the first batches behind it."""
    replay, after = _Replay(), 0
    while page := await store.run_changes(view.number, after, PAGE):
        until = [one for one in page if _is_until(one, batch, at)]
        # A thousand batches take a moment, for which others need not wait.
        await asyncio.to_thread(replay.play, until)
        after = page[-1].batch
        if len(until) < len(page):
            begins = until[-1].batch if until else (replay.last[-1].batch if replay.last else 0)
            return replay, await store.run_changes(view.number, begins, AROUND)
    return replay, []


def _is_until(one: ChangesView, batch: int | None, at: Instant | None) -> bool:
    return (batch is None or one.batch <= batch) and (at is None or one.at <= at)


def _as_it_was(looked: Looked, replay: _Replay) -> Looked:
    view = replace(
        looked.view,
        batch=replay.last[-1].batch if replay.last else 0,
        status=replay.status,
        reason="",
    )
    stored = StoredRun(changes=tuple(replay.ledger.rows.values()))
    pool = pool_of(looked.graph, stored, replay.forgotten, view)
    recall_all(pool, replay.forgotten.rows.values())
    return looked._replace(pool=pool, view=view, stored=stored)


async def _commands(
    store: Store, view: RunView, around: list[ChangesView], until: Instant
) -> list[Document]:
    """What operators asked while these batches were written, oldest first."""
    if not around:
        return []
    found = await store.commands(view.number, COMMANDS_MAX)
    asked = [one for one in found if around[0].at <= one.at <= until]
    return [command_document(one) for one in reversed(asked)]
