"""What metomi-isodatetime says, and slow ways to find the same: oracles for the integer core.

Chance comes from `random`, which pytest-randomly seeds for every test; it prints the seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from metomi.isodatetime.data import Calendar as MetomiCalendar
from metomi.isodatetime.data import Duration, TimePoint

from tidewheel.core.cycling.calendar import (
    Calendar,
    Interval,
    Point,
    days_from_date,
    days_in_month,
)

CALENDARS = [calendar for calendar in Calendar if calendar is not Calendar.INTEGER]
OFFSETS_MINUTES = [0, 0, 60, 330, -210, 765]


@contextmanager
def metomi_in(calendar: Calendar) -> Iterator[None]:
    """metomi's calendar is one for the whole process: set it, and put it back."""
    metomi = MetomiCalendar.default()
    before = metomi.mode
    metomi.set_mode(calendar.value)
    try:
        yield
    finally:
        metomi.set_mode(before)


def seconds(point: TimePoint) -> Point:
    """A date-time of metomi's as ours, in the calendar of the moment."""
    calendar = Calendar(MetomiCalendar.default().mode)
    utc = point.to_utc().to_calendar_date().to_hour_minute_second()
    year, month, day = utc.get_calendar_date()
    hour, minute, second = (round(part) for part in utc.get_hour_minute_second())
    days = days_from_date(calendar, year, month, day)
    return Point(days * 86_400 + hour * 3600 + minute * 60 + second)


def moment(date: tuple[int, int, int], second: int, offset_minutes: int = 0) -> TimePoint:
    """A local date and time as metomi's."""
    year, month, day = date
    sign = -1 if offset_minutes < 0 else 1
    return TimePoint(
        year=year,
        month_of_year=month,
        day_of_month=day,
        hour_of_day=second // 3600,
        minute_of_hour=second // 60 % 60,
        second_of_minute=second % 60,
        time_zone_hour=sign * (abs(offset_minutes) // 60),
        time_zone_minute=sign * (abs(offset_minutes) % 60),
    )


def duration(interval: Interval) -> Duration:
    """The same interval as metomi's."""
    return Duration(
        years=interval.years, months=interval.months, days=interval.units // 86_400
    ) + Duration(seconds=interval.units % 86_400)


def any_date(calendar: Calendar, years: tuple[int, int] = (1890, 2110)) -> tuple[int, int, int]:
    """Any date; the last days of a month come more often than others."""
    year, month = random.randint(*years), random.randint(1, 12)
    last = days_in_month(calendar, year, month)
    return year, month, random.choice([random.randint(1, last), random.randint(28, last)])


def any_second() -> int:
    return random.choice([0, 0, 21_600, 43_200, random.randrange(86_400)])


def walk(calendar: Calendar, point: Point, interval: Interval, offset_minutes: int) -> Point:
    """Adds an interval day by day and month by month, as one would with a paper calendar."""
    days, second = divmod(point + interval.units + offset_minutes * 60, 86_400)
    date = date_by_counting(calendar, days)
    for _ in range(abs(interval.months)):
        date = _neighbour_month(calendar, date, 1 if interval.months > 0 else -1)
    year, month, day = date[0] + interval.years, date[1], date[2]
    day = min(day, days_in_month(calendar, year, month))
    return Point(
        (days_by_counting(calendar, (year, month, day)) * 86_400) + second - offset_minutes * 60
    )


def date_by_counting(calendar: Calendar, days: int) -> tuple[int, int, int]:
    year = 1970
    while days < 0:
        year -= 1
        days += year_length(calendar, year)
    while days >= year_length(calendar, year):
        days -= year_length(calendar, year)
        year += 1
    month = 1
    while days >= days_in_month(calendar, year, month):
        days -= days_in_month(calendar, year, month)
        month += 1
    return year, month, days + 1


def days_by_counting(calendar: Calendar, date: tuple[int, int, int]) -> int:
    year, month, day = date
    days = sum(days_in_month(calendar, year, before) for before in range(1, month)) + day - 1
    days += sum(year_length(calendar, before) for before in range(1970, year))
    return days - sum(year_length(calendar, before) for before in range(year, 1970))


@cache
def year_length(calendar: Calendar, year: int) -> int:
    return sum(days_in_month(calendar, year, month) for month in range(1, 13))


def _neighbour_month(
    calendar: Calendar, date: tuple[int, int, int], direction: int
) -> tuple[int, int, int]:
    year, month, day = date
    month += direction
    if month in (0, 13):
        year, month = year + direction, 12 if month == 0 else 1
    return year, month, min(day, days_in_month(calendar, year, month))
