"""The stream tells what happened in a store, in the order in which it became final.

Theory of operation
-------------------
Every step of a task and every batch of a run is an event with a place in one order. A reader
keeps the place up to which it has read, its cursor, and asks for what comes after. The order is
that in which events become visible for good: nothing ever appears before a place that somebody
has read. On PostgreSQL a place is (transaction, number) and only transactions older than every
open one are told; where there is one writer it is the number of the last step, and among the
events of runs that followed that step their own number (docs/decisions/0020).

What was deleted cannot be told. A reader whose cursor is older than something deleted is lost:
it must look at the state anew and go on from the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.task import Instant, TaskId, WorkerId
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.core.sched.persistence import Change

STORE_LETTERS = 8  # of a store's id, enough to notice that it is another store
NUMBER_MAX = 2**63 - 1
_CURSOR = re.compile(r"([0-9a-z]{1,8})-([0-9]{1,19})-([0-9]{1,19})", re.ASCII)


class EventKind(StrEnum):
    """The kinds of things that events are about."""

    TASK = "task"
    RUN = "run"


class EventPlace(NamedTuple):
    """Holds where an event stands among all events of its store."""

    major: int
    minor: int


class EventCursor(NamedTuple):
    """Says up to which place all was read; opaque to all but the store that gave it."""

    store: str
    place: EventPlace

    def __str__(self) -> str:
        return f"{self.store}-{self.place.major}-{self.place.minor}"


def read_cursor(text: str) -> EventCursor:
    """Reads a cursor from its text; raises BadSetting if it is none."""
    found = _CURSOR.fullmatch(text)
    numbers = [int(one) for one in found.groups()[1:]] if found else [NUMBER_MAX + 1]
    if found is None or max(numbers) > NUMBER_MAX:
        raise BadSetting("since", text[:100], "the id of an event, as the stream gave it")
    return EventCursor(found[1], EventPlace(*numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """Describes one step of a task."""

    place: EventPlace
    at: Instant
    task_id: TaskId
    queue: str
    name: str | None
    run: str | None  # the name of the run that it is a submission of
    signal: Signal | None  # None: the task was created
    from_status: Status | None
    to_status: Status
    attempt: int
    worker: WorkerId | None
    progress: float
    exit_status: int | None  # of the attempt that this step ended

    kind = EventKind.TASK


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Describes a batch of a run, or a change of its status."""

    place: EventPlace
    at: Instant
    number: int
    run: str
    workflow: str
    queue: str
    status: str  # of the run afterwards; "deleted" is the last that is heard of it
    reason: str
    batch: int
    changes: Sequence[Change] = ()  # what the batch changed in the pool

    kind = EventKind.RUN


Event = TaskEvent | RunEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Says which events are wanted: those that match all that is not None."""

    run: str | None = None  # by name: the run itself and its submissions
    queue: str | None = None  # tasks of it, and runs that submit to it
    kind: EventKind | None = None

    def wants(self, event: Event) -> bool:
        """Says whether an event is one that is wanted."""
        return (
            self.kind in (None, event.kind)
            and self.queue in (None, event.queue)
            and self.run in (None, event.run)
        )


EVERY_EVENT = EventFilter()


class FollowedEvent(NamedTuple):
    """Holds an event as it is told to those who follow.

    One of kind `start` or `resync` tells nothing but the place from which they go on.
    """

    kind: str
    id: str  # the text of a cursor
    document: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Holds some events in their order, and where to go on."""

    events: Sequence[Event]
    next: EventCursor
    is_last: bool  # nothing more was there when it was read
    is_lost: bool = False  # events after the cursor were deleted, or it is not of this store
