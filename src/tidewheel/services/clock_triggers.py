"""Finds when the clocks that tasks wait for (`wall_clock`) reach their time."""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.core.cycling.calendar import BadCycling, Interval, Point, add
from tidewheel.core.graph.definition import CyclingDef, XtriggerDef
from tidewheel.core.queue.task import Instant
from tidewheel.formats.cycling.iso8601 import read_interval
from tidewheel.formats.flow_cylc.values import duration_seconds

WALL_CLOCK = "wall_clock"


class ClockTriggers:
    """Holds the clocks among the xtriggers of a workflow, and says when they are due."""

    def __init__(self, xtriggers: Mapping[str, XtriggerDef], cycling: CyclingDef) -> None:
        self._xtriggers = xtriggers
        self._cycling = cycling
        self._offsets: dict[str, tuple[Interval, float]] = {}

    def find(self, label: str) -> XtriggerDef | None:
        """Returns the xtrigger of a label, None if there is none.

        `wall_clock` needs no definition.
        """
        found = self._xtriggers.get(label)
        if found is None and label == WALL_CLOCK:
            return XtriggerDef(label, WALL_CLOCK)
        return found

    def due_at(self, label: str, point: Point) -> Instant | None:
        """Returns when a clock reaches its time for tasks of a point; None if this is no clock.

        Integer points have no time: what waits for a clock there is let go at once.
        """
        xtrigger = self.find(label)
        if xtrigger is None or xtrigger.function != WALL_CLOCK:
            return None
        if self._cycling.is_integer:
            return Instant(0.0)
        style = self._cycling.style
        offset, seconds = self._offset(xtrigger)
        at = add(style.calendar, point, offset, style.utc_offset_minutes)
        return Instant(at + seconds)

    def _offset(self, xtrigger: XtriggerDef) -> tuple[Interval, float]:
        """Returns the offset of a clock from the point: an interval, and seconds besides. It
        was checked when the definition was read."""
        if xtrigger.label not in self._offsets:
            given = xtrigger.arguments[0] if xtrigger.arguments else None
            given = dict(xtrigger.keywords).get("offset", given)
            offset, seconds = Interval(), 0.0
            if given is not None:
                try:
                    offset = read_interval(self._cycling.style.calendar, str(given))
                except BadCycling:  # a fraction of a second, which points cannot have
                    seconds = duration_seconds(str(given))
            self._offsets[xtrigger.label] = offset, seconds
        return self._offsets[xtrigger.label]
