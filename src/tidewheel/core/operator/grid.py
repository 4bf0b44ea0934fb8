"""Holds what a grid of runs and points is made of; apart from the views of single runs, since
these are loaded by everybody who lists runs."""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointWords
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import PooledTaskRow, PutMemory


class GridCandidate(NamedTuple):
    """Names a run that a grid may show."""

    number: int
    name: str
    workflow: str
    status: str


class GridFacts(NamedTuple):
    """Holds what a grid shows of a run beside its tasks."""

    words: PointWords | None  # None: it is not known how the run writes its points
    earliest: Point | None  # at which something is left to do
    since: Instant | None  # when it got its status, if that is stalled or error


class AlikeTasks(NamedTuple):
    """Counts tasks of a run at one point that stand alike.

    `pooled` or `memory` holds what they have in common, the other one is None; `first` is the
    first of their names.
    """

    run: int
    point: Point
    tasks: int
    first: str
    pooled: PooledTaskRow | None
    memory: PutMemory | None
