"""Works out point expressions: ^+P1D, T06, min(T00,T06)+PT1H, -P1, $, now, next(T00)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidewheel.core.cycling.calendar import (
    SECONDS_PER_DAY,
    BadCycling,
    Calendar,
    Point,
    date_from_days,
    days_from_date,
    days_in_month,
)
from tidewheel.core.cycling.interval import Interval, add_all
from tidewheel.core.cycling.progression import Reckoning
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.cycling.truncated import TruncatedPoint
from tidewheel.formats.cycling.iso8601 import Written, read_chain, split_recurrences

# Works out point expressions in their context: ^+P1D, T06, min(T00,T06)+PT1H, -P1, $.

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
    """Works out what a text means between the initial and the final point of a workflow."""

    style: PointStyle
    read_point: Callable[[str], Written | TruncatedPoint]
    initial: Point
    final: Point | None = None
    # What excludes a day excludes it at the time at which the recurrence would have its point:
    # P1D!W-1 means no Mondays, whatever the time of the initial point.
    days_at_time_of_context: bool = False

    def find(self, text: str, context: Point | None) -> Found:
        """Returns the point that an expression means; the context completes it."""
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


# Works out initial points that start from the clock: now, next(T00), previous(--0101).

INITIAL_POINTS_ACCEPTED = (
    "write a point, now, an interval from now such as -P1D, the end of a date-time such as "
    "T00, or next(T00;T12)-PT1H, previous(--0101) and the like"
)

_CALL = re.compile(r"(next|previous)\(([^()]*)\)(.*)")


def now_in(calendar: Calendar, now: float) -> Point:
    """Returns the clock's date in another calendar; a day that it lacks becomes its last."""
    days, second = divmod(int(now // 1), SECONDS_PER_DAY)
    year, month, day = date_from_days(Calendar.GREGORIAN, days)
    day = min(day, days_in_month(calendar, year, month))
    return Point(days_from_date(calendar, year, month, day) * SECONDS_PER_DAY + second)


def find_initial(text: str, now: Point, expressions: Expressions) -> Point:
    """Returns the point that an initial point, written without blanks, means at this moment."""
    found = _CALL.fullmatch(text)
    if found is None:
        if "(" in text:
            raise BadCycling(f"{text!r} is no initial cycle point", INITIAL_POINTS_ACCEPTED)
        signed = "+" + text if text.startswith("P") else text
        return expressions.find(signed, now).point
    direction, times, after = found.groups()
    signed = "+" + after if after.startswith("P") else after
    base, intervals = read_chain(expressions.style.calendar, signed)
    if base:
        raise BadCycling(
            f"{text!r} has {base!r} after its parentheses", "only intervals may follow"
        )
    points = [_nearest(text, direction, time, now, expressions) for time in times.split(";")]
    point = min(points) if direction == "next" else max(points)
    return add_all(
        expressions.style.calendar, point, intervals, expressions.style.written_offset_minutes
    )


def _nearest(
    text: str, direction: str, time: str, now: Point, expressions: Expressions
) -> Point:
    written = expressions.read_point(time)
    if not isinstance(written, TruncatedPoint):
        raise BadCycling(
            f"{text!r} has a whole date-time in its parentheses",
            "write only the end of one, such as T00 or --0101; several are separated by ';'",
        )
    return written.next_from(now) if direction == "next" else written.last_before(now)
