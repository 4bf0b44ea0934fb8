"""Works out initial points that start from the clock: now, next(T00), previous(--0101)."""

from __future__ import annotations

import re

from tidewheel.core.cycling.calendar import (
    SECONDS_PER_DAY,
    BadCycling,
    Calendar,
    Point,
    date_from_days,
    days_from_date,
    days_in_month,
)
from tidewheel.core.cycling.interval import add_all
from tidewheel.core.cycling.truncated import TruncatedPoint
from tidewheel.formats.cycling.expression import Expressions
from tidewheel.formats.cycling.iso8601 import read_chain

INITIAL_POINTS_ACCEPTED = (
    "write a point, now, an interval from now such as -P1D, the end of a date-time such as "
    "T00, or next(T00;T12)-PT1H, previous(--0101) and the like"
)

_CALL = re.compile(r"(next|previous)\(([^()]*)\)(.*)")


def now_in(calendar: Calendar, now: float) -> Point:
    """The clock's date in another calendar; a day that it lacks becomes its last."""
    days, second = divmod(int(now // 1), SECONDS_PER_DAY)
    year, month, day = date_from_days(Calendar.GREGORIAN, days)
    day = min(day, days_in_month(calendar, year, month))
    return Point(days_from_date(calendar, year, month, day) * SECONDS_PER_DAY + second)


def find_initial(text: str, now: Point, expressions: Expressions) -> Point:
    """What an initial point without blanks means at this moment."""
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
