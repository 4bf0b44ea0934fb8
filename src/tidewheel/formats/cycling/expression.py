"""Works out point expressions in their context: ^+P1D, T06, min(T00,T06)+PT1H, -P1, $."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidewheel.core.cycling.calendar import BadCycling, Calendar, Point
from tidewheel.core.cycling.interval import Interval, add_all
from tidewheel.core.cycling.progression import Reckoning
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.cycling.truncated import TruncatedPoint
from tidewheel.formats.cycling.iso8601 import Written, read_chain, split_recurrences

INITIAL, FINAL = "^", "$"
NO_FINAL_POINT = "set a final cycle point, or write the end of the recurrence"


@dataclass(frozen=True, slots=True)
class Found:
    """A point, how its date was written and, if truncated, how often such a time comes."""

    point: Point
    utc_offset_minutes: int = 0
    reckoning: Reckoning = Reckoning.MONTH
    period: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expressions:
    """What a text means between the initial and the final point of a workflow."""

    style: PointStyle
    read_point: Callable[[str], Written | TruncatedPoint]
    initial: Point
    final: Point | None = None
    # What excludes a day excludes it at the time at which the recurrence would have its point:
    # P1D!W-1 means no Mondays, whatever the time of the initial point.
    days_at_time_of_context: bool = False

    def find(self, text: str, context: Point | None) -> Found:
        """The point that an expression means; the context completes what it leaves out."""
        if text.startswith("min("):
            return self._find_smallest(text, context)
        base, intervals = read_chain(self.style.calendar, text)
        return self._move(text, self._find_base(text, base, context), intervals)

    def _find_smallest(self, text: str, context: Point | None) -> Found:
        inside, closed, after = text.removeprefix("min(").partition(")")
        if not closed:
            raise BadCycling(f"{text!r} has no closing parenthesis")
        base, intervals = read_chain(self.style.calendar, after)
        if base:
            raise BadCycling(f"{text!r} has {base!r} after min()", "only intervals may follow")
        found = min(
            (self.find(entry, context) for entry in split_recurrences(inside)),
            key=lambda one: one.point,
        )
        return self._move(text, found, intervals)

    def _find_base(self, text: str, base: str, context: Point | None) -> Found:
        match base:
            case "^":
                return self._here(self.initial)
            case "$":
                return self._here(self._known(text, self.final))
            case "":
                return self._here(self._known(text, context))
            case _:
                written = self.read_point(base)
        if isinstance(written, Written):
            return Found(written.point, written.utc_offset_minutes, written.reckoning)
        here = self._known(text, context)
        if self.days_at_time_of_context and not written.has_time:
            written = written.at_time_of(here)
        point = written.next_from(here)
        return replace(self._here(point), reckoning=_reckoning(written), period=written.period)

    def _move(self, text: str, found: Found, intervals: tuple[Interval, ...]) -> Found:
        point = add_all(self.style.calendar, found.point, intervals, found.utc_offset_minutes)
        if not self.style.first_point <= point <= self.style.last_point:
            raise BadCycling(
                f"{text!r} leads to a point that cannot be written as {self.style.format}",
                "set 'cycle point num expanded year digits' for years beyond 0000 to 9999"
                if self.style.calendar is not Calendar.INTEGER
                else "",
            )
        return replace(found, point=point)

    def _here(self, point: Point) -> Found:
        return Found(point, self.style.written_offset_minutes)

    def _known(self, text: str, point: Point | None) -> Point:
        if point is None:
            raise BadCycling(f"{text or 'the end'!r} needs a final cycle point", NO_FINAL_POINT)
        return point


def _reckoning(point: TruncatedPoint) -> Reckoning:
    if point.week is not None or point.day_of_week is not None:
        return Reckoning.WEEK
    return Reckoning.MONTH if point.day_of_year is None else Reckoning.ORDINAL
