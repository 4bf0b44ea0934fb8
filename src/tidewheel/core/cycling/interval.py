"""An interval says how far one point is from another; `add` finds what lies so far away.

Days, hours and seconds are exact, months and years are nominal: how long they are depends on
where they are added. They are added as Cylc users know it from metomi: the exact units first,
then the months one by one, then the years at once; a day that a month on the way does not have
becomes the last one that it has. Months and years are counted on local dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidewheel.core.cycling.calendar import (
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_MINUTE,
    Calendar,
    Point,
    date_from_days,
    days_from_date,
    days_in_month,
    shortest_month,
)

# Two years of months have a February of every length that can still come.
_MONTHS_UNTIL_DAYS_ARE_CLAMPED = 24


@dataclass(frozen=True, slots=True)
class Interval:
    """Units are numbers in integer cycling and seconds otherwise; any part may be negative."""

    years: int = 0
    months: int = 0
    units: int = 0

    @property
    def is_exact(self) -> bool:
        """Says whether it is the same length wherever it is added."""
        return not (self.years or self.months)

    def __neg__(self) -> Interval:
        return self * -1

    def __mul__(self, count: int) -> Interval:
        return Interval(self.years * count, self.months * count, self.units * count)

    def __bool__(self) -> bool:
        return bool(self.years or self.months or self.units)


def add(
    calendar: Calendar, point: Point, interval: Interval, utc_offset_minutes: int = 0
) -> Point:
    """The point that lies an interval after another; a negative one leads backwards."""
    moved = point + interval.units
    if interval.is_exact:
        return Point(moved)
    shift = utc_offset_minutes * SECONDS_PER_MINUTE
    days, second = divmod(moved + shift, SECONDS_PER_DAY)
    year, month, day = date_from_days(calendar, days)
    if interval.months:
        year, month, day = _add_months(calendar, (year, month, day), interval.months)
    if interval.years:
        year += interval.years
        day = min(day, days_in_month(calendar, year, month))
    days = days_from_date(calendar, year, month, day)
    return Point(days * SECONDS_PER_DAY + second - shift)


def add_all(
    calendar: Calendar,
    point: Point,
    intervals: Iterable[Interval],
    utc_offset_minutes: int = 0,
) -> Point:
    """Several intervals, one after the other: P1M-P1D is not -P1D+P1M."""
    for interval in intervals:
        point = add(calendar, point, interval, utc_offset_minutes)
    return point


def origins(
    calendar: Calendar, point: Point, interval: Interval, utc_offset_minutes: int = 0
) -> list[Point]:
    """Every point from which the interval leads to this one, in order: none, one or up to four.

    The last days of a month all lead to the last day of a shorter one, and the last day of a
    longer one has no origin in a shorter one.
    """
    if interval.is_exact:
        return [Point(point - interval.units)]
    shift = utc_offset_minutes * SECONDS_PER_MINUTE
    days, second = divmod(point + shift, SECONDS_PER_DAY)
    year, month, day = date_from_days(calendar, days)
    years, month0 = divmod(
        (year - interval.years) * MONTHS_PER_YEAR + month - 1 - interval.months, MONTHS_PER_YEAR
    )
    length = days_in_month(calendar, years, month0 + 1)
    last = length if day >= shortest_month(calendar) else day
    start = days_from_date(calendar, years, month0 + 1, 1) * SECONDS_PER_DAY + second - shift
    candidates = (
        Point(start + (one - 1) * SECONDS_PER_DAY - interval.units)
        for one in range(min(day, length), last + 1)
    )
    return [
        one for one in candidates if add(calendar, one, interval, utc_offset_minutes) == point
    ]


def origins_of_all(
    calendar: Calendar,
    point: Point,
    intervals: tuple[Interval, ...],
    utc_offset_minutes: int = 0,
) -> list[Point]:
    """Every point from which the intervals, one after the other, lead to this one, in order."""
    found = {point}
    for interval in reversed(intervals):
        found = {
            origin
            for one in found
            for origin in origins(calendar, one, interval, utc_offset_minutes)
        }
    return sorted(found)


def _add_months(
    calendar: Calendar, date: tuple[int, int, int], months: int
) -> tuple[int, int, int]:
    year, month, day = date
    index = year * MONTHS_PER_YEAR + month - 1
    if day > shortest_month(calendar):
        sign = 1 if months > 0 else -1
        for passed in range(1, min(abs(months), _MONTHS_UNTIL_DAYS_ARE_CLAMPED) + 1):
            years, month0 = divmod(index + sign * passed, MONTHS_PER_YEAR)
            day = min(day, days_in_month(calendar, years, month0 + 1))
    year, month0 = divmod(index + months, MONTHS_PER_YEAR)
    return year, month0 + 1, day
