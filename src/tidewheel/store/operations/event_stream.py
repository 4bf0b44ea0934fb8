"""Reads events, in the order in which they became final."""

from __future__ import annotations

from collections.abc import Sequence

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
from tidewheel.core.sched.persistence import Change
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.change_rows import read_changes
from tidewheel.store.operations.queries import page_count
from tidewheel.store.transaction import STORED, TYPE_NAMES, Stored, Transaction

# A batch may have changed thousands of tasks: fewer of them are in memory at once.
RUN_EVENTS_MAX = 100
EVENTS_PER_PAGE = 1_000
TYPE_NAMES["Change"] = Change
STORED |= {
    # PostgreSQL's first number is a text: no integer of it holds the number.
    EventPlace: Stored(
        lambda major, minor: EventPlace(int(major), minor), columns=("major", "minor")
    ),
    (RunEvent, "changes"): Stored(
        lambda text: () if text is None else read_changes(text), columns=("changes",)
    ),
}


def events_head(tx: Transaction) -> EventCursor:
    """Returns a cursor after the last event that can be read now."""
    return EventCursor(_store(tx), _bounds(tx).head)


def events_after(
    tx: Transaction, cursor: EventCursor, which: EventFilter, count: int = EVENTS_PER_PAGE
) -> EventPage:
    """Returns the events after a cursor that a filter wants, among the next ``count``.

    The page says that the place is lost, and goes on at the head, if the cursor is of another
    store or if events after it were deleted.
    """
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
    """Holds the places between which events can be read."""

    head: EventPlace  # of the last event
    floor: EventPlace  # the last place of which something was deleted
    floor_counts: bool  # it lies among what can be read; if not yet, it will

    def hold(self, place: EventPlace) -> bool:
        """Says whether a reader can go on from this place.

        No event after it was deleted, and the store has come as far as this place.
        """
        is_known = place <= max(self.head, self.floor)
        return is_known and not (self.floor_counts and place < self.floor)


def _bounds(tx: Transaction) -> _Bounds:
    [[major, minor, floor_major, floor_minor, counts]] = tx.rows("get_event_bounds")
    floor = EventPlace(int(floor_major), floor_minor)
    return _Bounds(EventPlace(int(major), minor), floor, bool(counts))


def _between(
    tx: Transaction, place: EventPlace, count: int, kind: EventKind | None
) -> tuple[Sequence[Event], bool]:
    """Returns events after a place, of one kind or of both, and whether these are all."""
    runs_max = min(count, RUN_EVENTS_MAX)
    where = {"major": str(place.major), "minor": place.minor}
    tasks, runs = list[TaskEvent](), list[RunEvent]()
    if kind is not EventKind.RUN:
        tasks = tx.records("list_task_events", TaskEvent, **where, count=count)
    if kind is not EventKind.TASK:
        runs = tx.records("list_run_history", RunEvent, **where, count=runs_max)
    told: list[Event] = [*tasks, *runs]
    found = sorted(told, key=lambda event: event.place)
    # Where one kind was cut off, it is not known what of it comes before the other's rest.
    cuts = [tasks[-1].place] if len(tasks) == count else []
    cuts += [runs[-1].place] if len(runs) == runs_max else []
    if not cuts:
        return found, True
    return [event for event in found if event.place <= min(cuts)], False
