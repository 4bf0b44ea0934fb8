"""Reads what happened, in the order in which it became final."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidewheel.core.operator.stream import (
    STORE_LETTERS,
    Event,
    EventCursor,
    EventFilter,
    EventKind,
    EventPage,
    EventPlace,
    RunEvent,
    TaskEvent,
)
from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.task import Instant, TaskId, WorkerId
from tidewheel.store.change_rows import read_changes
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import Transaction

# A batch may have changed thousands of tasks: fewer of them are in memory at once.
RUN_EVENTS_MAX = 100
EVENTS_PER_PAGE = 1_000


def events_head(tx: Transaction) -> EventCursor:
    """Returns the place behind everything that can be told now."""
    return EventCursor(_store(tx), _bounds(tx).head)


def events_after(
    tx: Transaction, cursor: EventCursor, which: EventFilter, count: int = EVENTS_PER_PAGE
) -> EventPage:
    """Returns the next events; at most so many are looked at, whether they are wanted or
    not."""
    store = _store(tx)
    bounds = _bounds(tx)
    if cursor.store != store or not bounds.hold(cursor.place):
        head = EventCursor(store, bounds.head)
        return EventPage(events=(), next=head, is_last=True, is_lost=True)
    # The hub asks a few times each second, and mostly nothing has happened.
    if cursor.place == bounds.head:
        return EventPage(events=(), next=cursor, is_last=True)
    events, is_last = _between(tx, cursor.place, page_count(count), which.kind)
    end = events[-1].place if events else cursor.place
    if is_last and which.kind is not None:
        # What is not wanted was not read: a reader must not fall behind because of it.
        end = max(end, bounds.head)
    return EventPage(
        events=[event for event in events if which.wants(event)],
        next=EventCursor(store, end),
        is_last=is_last,
    )


def _store(tx: Transaction) -> str:
    found: str = tx.rows("get_store_id")[0][0]
    return found[:STORE_LETTERS]


class _Bounds(NamedTuple):
    """Holds the places between which events can be told."""

    head: EventPlace  # of the last event
    floor: EventPlace  # the last of which something was deleted
    floor_counts: bool  # it lies among what can be told; if not yet, it will

    def hold(self, place: EventPlace) -> bool:
        """Says whether everything behind this place is there, and the place is of this past."""
        is_known = place <= max(self.head, self.floor)
        return is_known and not (self.floor_counts and place < self.floor)


def _bounds(tx: Transaction) -> _Bounds:
    [[major, minor, floor_major, floor_minor, counts]] = tx.rows("get_event_bounds")
    floor = EventPlace(int(floor_major), floor_minor)
    return _Bounds(EventPlace(int(major), minor), floor, bool(counts))


def _between(
    tx: Transaction, place: EventPlace, count: int, kind: EventKind | None
) -> tuple[Sequence[Event], bool]:
    """Returns events of a kind, or of each, behind a place, and whether these are all."""
    runs_max = min(count, RUN_EVENTS_MAX)
    where = {"major": str(place.major), "minor": place.minor}
    tasks, runs = list[_TaskEventRow](), list[_RunEventRow]()
    if kind is not EventKind.RUN:
        tasks = tx.records("list_task_events", _TaskEventRow, **where, count=count)
    if kind is not EventKind.TASK:
        runs = tx.records("list_run_history", _RunEventRow, **where, count=runs_max)
    told: list[Event] = [*map(_task_event, tasks), *map(_run_event, runs)]
    found = sorted(told, key=lambda event: event.place)
    # Where one kind was cut off, it is not known what of it comes before the other's rest.
    cuts = [
        _place(rows[-1])
        for rows, most in ((tasks, count), (runs, runs_max))
        if len(rows) == most
    ]
    if not cuts:
        return found, True
    return [event for event in found if event.place <= min(cuts)], False


class _TaskEventRow(NamedTuple):
    """Holds one row of list_task_events."""

    major: int | str  # PostgreSQL's is a text: no integer holds it
    minor: int
    at: Instant
    task_id: TaskId
    queue: str
    name: str | None
    run: str | None
    signal: str | None
    from_status: str | None
    to_status: str
    attempt: int
    worker: WorkerId | None
    progress: float
    exit_status: int | None


class _RunEventRow(NamedTuple):
    """Holds one row of list_run_history."""

    major: int | str
    minor: int
    at: Instant
    number: int
    run: str
    workflow: str
    queue: str
    status: str
    reason: str
    batch: int
    changes: str | None


def _place(r: _TaskEventRow | _RunEventRow) -> EventPlace:
    return EventPlace(int(r.major), r.minor)


def _task_event(r: _TaskEventRow) -> TaskEvent:
    return TaskEvent(
        place=_place(r),
        at=r.at,
        task_id=r.task_id,
        queue=r.queue,
        name=r.name,
        run=r.run,
        signal=None if r.signal is None else Signal(r.signal),
        from_status=None if r.from_status is None else Status(r.from_status),
        to_status=Status(r.to_status),
        attempt=r.attempt,
        worker=r.worker,
        progress=r.progress,
        exit_status=r.exit_status,
    )


def _run_event(r: _RunEventRow) -> RunEvent:
    return RunEvent(
        place=_place(r),
        at=r.at,
        number=r.number,
        run=r.run,
        workflow=r.workflow,
        queue=r.queue,
        status=r.status,
        reason=r.reason,
        batch=r.batch,
        changes=() if r.changes is None else read_changes(r.changes),
    )
