"""Converts days and dates in each calendar, by arithmetic alone.

A point of date-time cycling is a number of seconds since 1970-01-01T00:00:00Z of its own
calendar: proleptic, without leap seconds, with a year 0 and negative years before it. A local
date is found by adding the UTC offset first. Every function here costs the same for any year.

`BadCycling` refuses a text or value that no calendar, interval or sequence can be made of.

An `Interval` says how far one point is from another; `add` finds what lies so far away. Days,
hours and seconds are exact, months and years are nominal: how long they are depends on where
they are added. They are added as Cylc users know it from metomi: the exact units first, then
the months one by one, then the years at once; a day that a month on the way does not have
becomes the last one that it has. Months and years are counted on local dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NewType

from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

Point = NewType("Point", int)  # integer cycling: the number itself

SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600
SECONDS_PER_DAY = 86_400
HOURS_PER_DAY = 24
DAYS_PER_WEEK = 7
MONTHS_PER_YEAR = 12
YEARS_PER_ERA = 400  # after which the Gregorian calendar repeats itself, weekdays included
MONTHS_PER_ERA = YEARS_PER_ERA * MONTHS_PER_YEAR

_DAYS_PER_ERA = 146_097
_EPOCH_YEAR = 1970
_DAYS_TO_EPOCH = 719_468  # from 1 March of year 0 to 1 January 1970
_MARCH = 3
_FEBRUARY = 2
_MONTHS_FROM_MARCH_TO_JANUARY = 10
_MONTHS_360 = (30,) * 12
_MONTHS_365 = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS_366 = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Calendar(StrEnum):
    """Lists the values of `cycling mode`."""

    INTEGER = "integer"
    GREGORIAN = "gregorian"
    DAYS_360 = "360day"
    DAYS_365 = "365day"
    DAYS_366 = "366day"


_MONTHS_OF_FIXED_YEAR = {
    Calendar.DAYS_360: _MONTHS_360,
    Calendar.DAYS_365: _MONTHS_365,
    Calendar.DAYS_366: _MONTHS_366,
}
# Per calendar of fixed years: the days of a year, and the days before each month.
_FIXED = {
    calendar: (sum(months), tuple(sum(months[:month]) for month in range(MONTHS_PER_YEAR)))
    for calendar, months in _MONTHS_OF_FIXED_YEAR.items()
}


def is_leap_year(calendar: Calendar, year: int) -> bool:
    """Says whether a year has a leap day; only those of the Gregorian calendar can."""
    return (
        calendar is Calendar.GREGORIAN
        and year % 4 == 0
        and (year % 100 != 0 or year % YEARS_PER_ERA == 0)
    )


def days_in_month(calendar: Calendar, year: int, month: int) -> int:
    """Returns the number of days of a month, which counts from 1 to 12."""
    if calendar is Calendar.GREGORIAN:
        if month == _FEBRUARY:
            return 29 if is_leap_year(calendar, year) else 28
        return _MONTHS_365[month - 1]
    return _MONTHS_OF_FIXED_YEAR[calendar][month - 1]


def days_in_year(calendar: Calendar, year: int) -> int:
    """Returns the number of days of a year."""
    if calendar is Calendar.GREGORIAN:
        return 366 if is_leap_year(calendar, year) else 365
    return _FIXED[calendar][0]


def shortest_month(calendar: Calendar) -> int:
    """Returns how many days the shortest month has: the last day that every month has."""
    return 28 if calendar is Calendar.GREGORIAN else min(_MONTHS_OF_FIXED_YEAR[calendar])


def days_from_date(calendar: Calendar, year: int, month: int, day: int) -> int:
    """Returns the days since 1970-01-01; a day beyond its month's end runs on into the next."""
    if calendar is Calendar.GREGORIAN:
        # Years are counted from March, so that the leap day is the last of a year.
        from_march = year if month >= _MARCH else year - 1
        day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
        leap_days = from_march // 4 - from_march // 100 + from_march // 400
        return from_march * 365 + leap_days + day_of_year - _DAYS_TO_EPOCH
    year_days, before = _FIXED[calendar]
    return (year - _EPOCH_YEAR) * year_days + before[month - 1] + day - 1


def date_from_days(calendar: Calendar, days: int) -> tuple[int, int, int]:
    """Returns year, month and day of the month of a day, given in days since 1970-01-01."""
    if calendar is Calendar.GREGORIAN:
        era, day_of_era = divmod(days + _DAYS_TO_EPOCH, _DAYS_PER_ERA)
        # Four years have 1460 days and a leap day, a hundred 36524, the era one day more.
        year_of_era = (
            day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
        ) // 365
        day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
        from_march = (5 * day_of_year + 2) // 153
        day = day_of_year - (153 * from_march + 2) // 5 + 1
        year = year_of_era + era * YEARS_PER_ERA
        if from_march < _MONTHS_FROM_MARCH_TO_JANUARY:
            return year, from_march + _MARCH, day
        return year + 1, from_march - _MONTHS_FROM_MARCH_TO_JANUARY + 1, day
    year_days, before = _FIXED[calendar]
    years, day_of_year = divmod(days, year_days)
    month = min(day_of_year // 28, MONTHS_PER_YEAR - 1)
    while before[month] > day_of_year:
        month -= 1
    return years + _EPOCH_YEAR, month + 1, day_of_year - before[month] + 1


def day_of_year(calendar: Calendar, days: int) -> tuple[int, int]:
    """Returns the year and, from 1, the day in it of a day given in days since 1970-01-01."""
    year, _, _ = date_from_days(calendar, days)
    return year, days - days_from_date(calendar, year, 1, 1) + 1


def day_of_week(calendar: Calendar, days: int) -> int:
    """Returns 1 for Monday to 7; 2000-01-03 is a Monday in all calendars (metomi)."""
    return (days - _MONDAY[calendar]) % DAYS_PER_WEEK + 1


def first_day_of_week_year(calendar: Calendar, week_year: int) -> int:
    """Returns the Monday that begins week 1, in days since 1970-01-01.

    Week 1 is the one that has 4 January in it.
    """
    fourth = days_from_date(calendar, week_year, 1, 4)
    return fourth - day_of_week(calendar, fourth) + 1


def week_date(calendar: Calendar, days: int) -> tuple[int, int, int]:
    """Returns week year, week and day of the week of a day, given in days since 1970-01-01."""
    # The Thursday of a week lies in the year that the week belongs to.
    thursday = days - day_of_week(calendar, days) + 4
    year, _, _ = date_from_days(calendar, thursday)
    week = (days - first_day_of_week_year(calendar, year)) // DAYS_PER_WEEK + 1
    return year, week, day_of_week(calendar, days)


def weeks_in_year(calendar: Calendar, week_year: int) -> int:
    """Returns how many weeks a week year has: 52 or 53; with 360 days 51 or 52."""
    days = first_day_of_week_year(calendar, week_year + 1) - first_day_of_week_year(
        calendar, week_year
    )
    return days // DAYS_PER_WEEK


_MONDAY: dict[Calendar, int] = {
    calendar: days_from_date(calendar, 2000, 1, 3)
    for calendar in Calendar
    if calendar is not Calendar.INTEGER
}


class BadCycling(Refused):
    """A cycle point, interval, offset, recurrence or point format that cannot be used."""

    code = "bad_cycling"

    def __init__(self, message: str, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message, hint)

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message


# Two years of months have a February of every length that can still come.
_MONTHS_UNTIL_DAYS_ARE_CLAMPED = 24


@dataclass(frozen=True, slots=True)
class Interval:
    """Holds a distance between points.

    Units are numbers in integer cycling and seconds otherwise; any part may be negative.
    """

    years: int = 0
    months: int = 0
    units: int = 0

    @property
    def is_exact(self) -> bool:
        """Says whether the interval has the same length wherever it is added."""
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
    """Returns the point an interval after another; a negative interval leads backwards."""
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
    """Returns the point after adding intervals in turn: P1M-P1D is not -P1D+P1M."""
    for interval in intervals:
        point = add(calendar, point, interval, utc_offset_minutes)
    return point


def origins(
    calendar: Calendar, point: Point, interval: Interval, utc_offset_minutes: int = 0
) -> list[Point]:
    """Returns, in order, the points from which the interval leads to this one: up to four.

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
    """Returns, in order, the points from which the intervals in turn lead to this one."""
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
