"""Reading what happened, in the order in which it became final."""

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
    Place,
    RunEvent,
    TaskEvent,
)
from tidewheel.core.queue.status import Signal, Status
from tidewheel.store.change_rows import read_changes
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import Row, Transaction

# A batch may have changed thousands of tasks: fewer of them are in memory at once.
RUN_EVENTS_MAX = 100
EVENTS_PER_PAGE = 1_000


def events_head(tx: Transaction) -> EventCursor:
    """Behind everything that can be told now."""
    return EventCursor(_store(tx), _bounds(tx).head)


def events_after(
    tx: Transaction, cursor: EventCursor, which: EventFilter, count: int = EVENTS_PER_PAGE
) -> EventPage:
    """The next events; at most so many are looked at, whether they are wanted or not."""
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
    """Between which places something can be told."""

    head: Place  # of the last event
    floor: Place  # the last of which something was deleted
    floor_counts: bool  # it lies among what can be told; if not yet, it will

    def hold(self, place: Place) -> bool:
        """Whether everything behind this place is there, and the place is of this past."""
        is_known = place <= max(self.head, self.floor)
        return is_known and not (self.floor_counts and place < self.floor)


def _bounds(tx: Transaction) -> _Bounds:
    [[major, minor, floor_major, floor_minor, counts]] = tx.rows("get_event_bounds")
    floor = Place(int(floor_major), floor_minor)
    return _Bounds(Place(int(major), minor), floor, bool(counts))


def _between(
    tx: Transaction, place: Place, count: int, kind: EventKind | None
) -> tuple[Sequence[Event], bool]:
    """Events of a kind, or of each, behind a place, and whether these are all."""
    runs_max = min(count, RUN_EVENTS_MAX)
    where = {"major": str(place.major), "minor": place.minor}
    tasks, runs = list[Row](), list[Row]()
    if kind is not EventKind.RUN:
        tasks = tx.rows("list_task_events", **where, count=count)
    if kind is not EventKind.TASK:
        runs = tx.rows("list_run_history", **where, count=runs_max)
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


def _place(row: Row) -> Place:
    return Place(int(row[0]), row[1])


def _task_event(row: Row) -> TaskEvent:
    task_id, queue, name, run, signal, before, after, attempt, worker, progress = row[3:13]
    return TaskEvent(
        place=_place(row),
        at=row[2],
        task_id=task_id,
        queue=queue,
        name=name,
        run=run,
        signal=None if signal is None else Signal(signal),
        from_status=None if before is None else Status(before),
        to_status=Status(after),
        attempt=attempt,
        worker=worker,
        progress=progress,
        exit_status=row[13],
    )


def _run_event(row: Row) -> RunEvent:
    number, run, workflow, queue, status, reason, batch, changes = row[3:]
    return RunEvent(
        place=_place(row),
        at=row[2],
        number=number,
        run=run,
        workflow=workflow,
        queue=queue,
        status=status,
        reason=reason,
        batch=batch,
        changes=() if changes is None else read_changes(changes),
    )
