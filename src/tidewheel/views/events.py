"""Makes documents of events: what followers of a store are told, in words as in all views.

A document holds the state after its event, not the change that led there. So it does no harm to
apply one twice, or to a state that is newer, as long as all later ones are applied, too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from tidewheel.api import runs as api
from tidewheel.api.tasks import Task
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.operator.definition import RunOptions, StoredDefinition, read_job_name
from tidewheel.core.operator.stream import (
    Event,
    EventCursor,
    EventFilter,
    FollowedEvent,
    RunEvent,
    TaskEvent,
    read_cursor,
)
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    ForgetMemory,
    PooledTaskRow,
    PutMemory,
    PutTask,
)
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused, Unavailable
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.definitions.snapshot import restore
from tidewheel.services.paths import run_directory
from tidewheel.services.service import ReadsDefinitions, Wakeup, read_in_thread
from tidewheel.views.run_facts import described
from tidewheel.views.snapshot import RunSnapshot, gather
from tidewheel.views.status_text import TaskWords, row_words

EventDocument = api.TaskStepEvent | api.BatchEvent

TASKS_MAX = 2_000  # of one batch, told one by one
STYLES_MAX = 100  # runs whose way to write points is remembered


class EventDocuments:
    """Makes documents of the events of one store."""

    def __init__(
        self, store: Store, home: Path, read: ReadsDefinitions = read_in_thread
    ) -> None:
        self._store, self._home, self._read = store, home, read
        self._styles: dict[int, PointStyle | None] = {}

    async def of(self, event: Event) -> EventDocument:
        """Returns the document of one event; its `tasks` are null if they are too many, or if
        the definition of the run cannot be read."""
        if isinstance(event, TaskEvent):
            return step_document(event)
        changed = changed_tasks(event.changes)
        style = await self.style(event) if changed and len(changed) <= TASKS_MAX else None
        tasks: list[api.PooledTask] | None = None if changed else []
        if style is not None:
            tasks = [
                described(
                    api.PooledTask,
                    words,
                    id=f"{style.text(point)}/{name}",
                    point=style.text(point),
                    name=name,
                    submit=submit,
                )
                for (point, name), (words, submit) in changed.items()
            ]
        return described(api.BatchEvent, event, changed=len(changed), tasks=tasks)

    async def style(self, event: RunEvent) -> PointStyle | None:
        """Returns how this run writes its points; None if its definition cannot be read."""
        if event.number not in self._styles:
            while len(self._styles) >= STYLES_MAX:
                del self._styles[next(iter(self._styles))]
            self._styles[event.number] = await self._read_style(event)
        return self._styles[event.number]

    async def _read_style(self, event: RunEvent) -> PointStyle | None:
        try:
            view = await self._store.run(event.number)
            definition = await self._store.definition(view.definition)
            folder = run_directory(self._home, view.name)
            work = partial(_style_of, definition, view.options, folder)
            return await self._read(view.name, work)
        except (Refused, OSError):
            return None


def _style_of(definition: StoredDefinition, options: RunOptions, folder: Path) -> PointStyle:
    return restore(definition, options, folder).graph.cycling.style


def step_document(event: TaskEvent) -> api.TaskStepEvent:
    """Returns the document of a step of a task."""
    job = None if event.run is None else read_job_name(event.task_id)
    return {
        "id": event.task_id,
        "queue": event.queue,
        "run": event.run,
        "point": None if job is None else job.point,
        "name": event.name if job is None else job.node,
        "submit": None if job is None else job.submit,
        "signal": None if event.signal is None else event.signal.value,
        "from": None if event.from_status is None else event.from_status.value,
        "to": event.to_status.value,
        "attempt": event.attempt,
        "worker": event.worker,
        "progress": event.progress,
        "exit_status": event.exit_status,
        "at": show_instant(event.at),
    }


def changed_tasks(changes: Iterable[Change]) -> dict[Key, tuple[TaskWords, int]]:
    """Returns the tasks that entered the pool, changed or left it, each with its state in words
    and its submit number."""
    rows, memories = last_rows(changes)
    found = {}
    for key, row in rows.items():
        memory = memories.get(key)
        remembered = 0 if memory is None else memory.submits
        found[key] = row_words(row, memory), remembered if row is None else row.submit
    return found


def last_rows(
    changes: Iterable[Change],
) -> tuple[dict[Key, PooledTaskRow | None], dict[Key, PutMemory]]:
    """Returns the last row of each changed task, None if it left the pool, and what the changes
    remember of tasks."""
    rows: dict[Key, PooledTaskRow | None] = {}
    memories: dict[Key, PutMemory] = {}
    for change in changes:
        match change:
            case PutTask(row):
                rows[row.point, row.name] = row
            case DropTask(key):
                rows[key] = None
            case PutMemory(key=key):
                memories[key] = change
            case ForgetMemory(PutMemory(key=key) as memory):
                memories[key] = memory
            case _:
                pass
    return rows, memories


# A snapshot is the state from which a follower of events begins, with the cursor from which
# to go on.
#
# The cursor is read first: the state is at least as new as it. What is told after the cursor
# may be in the state already; since an event holds the state after it, applying one again is
# no harm.


OPEN_TASKS_MAX = 10_000
OPEN = tuple(status for status in Status if status not in FINAL)


async def queue_snapshot(store: Store, queue: str) -> api.EventSnapshot:
    """Returns the tasks of a queue that have not ended, and the cursor where events go on."""
    cursor = await store.events_head()
    return await _told(store, cursor, queue)


async def run_snapshot(store: Store, view: RunView, home: Path) -> api.EventSnapshot:
    """Returns a run, its pool, those of its submissions that have not ended, and the cursor
    from which events go on."""
    cursor = await store.events_head()
    snapshot = await gather(store, view, home, recall=False)
    return await _told(store, cursor, snapshot.view.queue, snapshot)


async def _told(
    store: Store, cursor: EventCursor, queue: str, snapshot: RunSnapshot | None = None
) -> api.EventSnapshot:
    which = TaskFilter(statuses=OPEN, queue=queue)
    found: list[Task] = await store.list_tasks(which, KeysetPage(count=OPEN_TASKS_MAX))
    run, pool = None, []
    if snapshot is not None:
        view = snapshot.view
        found = [one for one in found if one.id.startswith(f"{view.name}/")]
        run = described(api.SnapshotRun, view, run=view.name)
        keys = sorted(snapshot.pool.tasks)
        pool = [described(api.PooledTask, snapshot.shown(key)) for key in keys]
    return {
        "id": str(cursor),
        "run": run,
        "pool": pool,
        "tasks": [described(api.OpenTask, one, worker=one.owner) for one in found],
        "cut": len(found) == OPEN_TASKS_MAX,  # there may be older ones
    }


# An open store is followed by listening to it and by looking again, as not all changes wake us.


LOOK_SECONDS = 0.2  # not every change wakes a listener
TROUBLE_SECONDS = 1.0
PAGE_EVENTS = 500


async def follow_store(
    store: Store, home: Path, since: str | None, which: EventFilter, clock: Clock
) -> AsyncIterator[FollowedEvent]:
    """Yields the events of a store until the caller stops.

    If the store does not answer, this raises Unavailable at the beginning, and later waits.
    """
    if which.run is not None:
        which = replace(which, run=(await store.find_run(which.run)).name)
    cursor = read_cursor(since) if since is not None else await store.events_head()
    documents, alarm = EventDocuments(store, home), Wakeup(clock)
    stop_listening = store.listen(lambda _: alarm.ring())
    try:
        yield FollowedEvent("start", str(cursor), {})
        while True:
            try:
                page = await store.events_after(cursor, which, PAGE_EVENTS)
            except Unavailable:
                await alarm.wait(TROUBLE_SECONDS)
                continue
            if page.is_lost:
                yield FollowedEvent("resync", str(page.next), {})
            for event in page.events:
                place = EventCursor(page.next.store, event.place)
                told = cast("dict[str, object]", await documents.of(event))
                yield FollowedEvent(event.kind, str(place), told)
            cursor = page.next
            if page.is_last:
                await alarm.wait(LOOK_SECONDS)
    finally:
        stop_listening()
