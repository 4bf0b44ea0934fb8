"""Shows many runs at once, point by point, from rows that the store has counted.

No definition is read: what a run has stored says how its points are written. What was counted
is kept until the run has written another batch, since most rows of a grid stand still.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from tidewheel.api.runs import GridCause, GridCell, GridRun
from tidewheel.core.cycling.calendar import BadCycling, Point
from tidewheel.core.cycling.style import PointStyle, style_of
from tidewheel.core.operator.requests import NEVER
from tidewheel.core.operator.views import (
    RUN_STATES,
    GridCandidate,
    GridFacts,
    RunView,
    TasksAtPoint,
    TasksDue,
)
from tidewheel.core.queue.filters import read_filter
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.task_state import JobPhase
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.views.run_facts import run_facts
from tidewheel.views.status_text import FUTURE, STATES, row_words
from tidewheel.vocabulary import time_text

KNOWN_MAX = 5_000  # runs


def fitting(found: Iterable[GridCandidate], name: str, status: str) -> list[GridCandidate]:
    """Returns those that a filter fits, and whose status is one of those between commas; texts
    that are empty ask for nothing."""
    sought = read_filter(name, RUN_STATES)
    statuses = {one.strip() for one in status.split(",") if one.strip()}
    return [
        one
        for one in found
        if sought.fits((one.name,), (one.status,)) and (not statuses or one.status in statuses)
    ]


class Cells(NamedTuple):
    """Holds what is shown of a run's tasks."""

    cells: list[GridCell]
    cause: GridCause | None


class CellCache:
    """Keeps what was counted of the runs that a grid showed last, until they change."""

    def __init__(self, known_max: int = KNOWN_MAX) -> None:
        self._known_max = known_max
        self._known: dict[tuple[int, int], tuple[int, Cells]] = {}

    async def of(
        self, store: Store, found: Sequence[tuple[RunView, GridFacts]], points: int
    ) -> dict[int, Cells]:
        """Returns the tasks of these runs at so many of their newest points, counted."""
        shown = {
            run.number: known[1]
            for run, _ in found
            if (known := self._known.get((run.number, points))) and known[0] == run.batch
        }
        stale = {run.number: (run, facts) for run, facts in found if run.number not in shown}
        counted: dict[int, list[TasksAtPoint]] = {number: [] for number in stale}
        for one in await store.grid_tasks(list(stale), points) if stale else ():
            counted[one.run].append(one)
        for number, (run, facts) in stale.items():
            shown[number] = cells_of(facts, counted[number])
            # The batch as it was before they were counted: a later one is looked for again.
            self._known.pop((number, points), None)
            self._known[number, points] = (run.batch, shown[number])
        while len(self._known) > self._known_max:
            del self._known[next(iter(self._known))]
        return shown


def grid_row(
    run: RunView, facts: GridFacts, shown: Cells, due: Sequence[TasksDue], now: Instant
) -> GridRun:
    """Returns a run as a row, with what is `due` of it."""
    style = None if facts.words is None else style_of(facts.words)
    row = {
        **run_facts(run, now),
        "since": time_text(facts.since),
        "stages": style is not None and style.is_unwritten,
        "earliest": _text(style, facts.earliest),
        **shown._asdict(),
    }
    if due:
        there: dict[str | None, list[TasksDue]] = {}
        for one in due:
            there.setdefault(_text(style, one.point), []).append(one)
        row |= _lateness(due, now)
        row["cells"] = [
            cell | _lateness(there.get(cell["point"], ()), now) for cell in shown.cells
        ]
    return cast("GridRun", row)


def _lateness(due: Sequence[TasksDue], now: Instant) -> dict[str, object]:
    """Returns how many tasks are late, and when the next one is; nothing of what is not."""
    late = sum(one.tasks for one in due if one.at <= now or one.at >= NEVER)
    following = min((one.at for one in due if now < one.at < NEVER), default=None)
    said = {"late": late or None, "due": time_text(following)}
    return {name: value for name, value in said.items() if value is not None}


def cells_of(facts: GridFacts, alike: Sequence[TasksAtPoint]) -> Cells:
    """Returns the cells of a run; none if it is not known how it writes its points."""
    if facts.words is None:
        return Cells([], None)
    style = style_of(facts.words)
    by_point: dict[Point, list[TasksAtPoint]] = {}
    for one in sorted(alike, key=lambda one: (one.point, one.first)):
        if _state(one) != FUTURE:
            by_point.setdefault(one.point, []).append(one)
    cells = [_cell(style, point, there) for point, there in by_point.items()]
    return Cells(cells, _cause(style, [one for there in by_point.values() for one in there]))


def _state(one: TasksAtPoint) -> str:
    return row_words(one.pooled, one.memory).state


def _is_incomplete(one: TasksAtPoint) -> bool:
    return one.pooled is not None and one.pooled.stage is JobPhase.INCOMPLETE


def _text(style: PointStyle | None, point: Point | None) -> str | None:
    if style is None or point is None:
        return None
    try:
        return style.text(point)
    except BadCycling:
        return str(point)


def _cell(style: PointStyle, point: Point, there: Sequence[TasksAtPoint]) -> GridCell:
    counts = dict.fromkeys(STATES, 0)
    for one in there:
        counts[_state(one)] += one.tasks
    return {
        "point": _text(style, point) or "",
        "counts": {state: count for state, count in counts.items() if count},
        "tasks": sum(counts.values()),
        "incomplete": sum(one.tasks for one in there if _is_incomplete(one)),
    }


def _cause(style: PointStyle, known: Sequence[TasksAtPoint]) -> GridCause | None:
    """Returns the first task that needs action: at the earliest point, then by name."""
    found = [one for one in known if _is_incomplete(one)]
    if not found:
        return None
    point, name = _text(style, found[0].point), found[0].first
    more = sum(one.tasks for one in found) - 1
    return {"id": f"{point}/{name}", "state": _state(found[0]), "more": more}
