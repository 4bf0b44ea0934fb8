"""Offsets say where a parent is, seen from its child: the text between a node's brackets.

`parent_point` looks from a child to its parent, `child_points` from a parent to every child on
a sequence. Months are not reversible (28 to 31 March all lead to 28 February), so children are
found as the origins of the parent's point, each checked forwards; nothing is searched.

All kinds are asked alike, with the initial point, which only `FromInitial` looks at.

A `TruncatedPoint` is one of which only the end is written, such as T06, -W-1T00, 01T00 or
--0229. Such a text stands for every moment that ends like it; `next_from` finds the one that a
text means in its context, `last_before` the one before that. What is left out below the largest
given unit is zero, or the first (01T means 01T00:00:00).

The search goes by slots: the weeks, months or years that can each have one such day. Whether a
slot has one (not every February has a 29th) is worked out, not walked day by day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from typing import ClassVar

from tidewheel.core.cycling.calendar import (
    DAYS_PER_WEEK,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    BadCycling,
    Calendar,
    Interval,
    Point,
    add_all,
    date_from_days,
    day_of_week,
    days_from_date,
    days_in_month,
    days_in_year,
    first_day_of_week_year,
    origins_of_all,
    weeks_in_year,
)
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.lazy_dataclasses import dataclass

# Leap days of one year of a century are 400 years apart: twice that finds whatever there is.
_SLOTS_MAX = 2 * 400 + 1


class Slot(Enum):
    """Says which unit of time has at most one day that fits a truncated point."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedPoint:
    """Holds the end of a date-time, such as T06; a part that was left out is None.

    A point fits if it ends so. Months, days and weeks count from 1.
    """

    calendar: Calendar
    utc_offset_minutes: int = 0
    year_of_century: int | None = None
    year_of_decade: int | None = None
    month: int | None = None
    week: int | None = None
    day_of_year: int | None = None
    day_of_month: int | None = None
    day_of_week: int | None = None  # with a week and without this: the weekday of the context
    hour: int | None = None
    minute: int | None = None
    second: int | None = None

    @property
    def slot(self) -> Slot:
        if self.has_year or self.month or self.week or self.day_of_year:
            return Slot.YEAR
        if self.day_of_month:
            return Slot.MONTH
        return Slot.WEEK if self.day_of_week else Slot.DAY

    @property
    def has_year(self) -> bool:
        """Says whether digits of a year are given, so that points fit in some years only."""
        return self.year_of_century is not None or self.year_of_decade is not None

    @property
    def period(self) -> Interval:
        """Returns the interval between points that fit: a day for T00, a month for 01T00."""
        if self.year_of_century is not None:
            return Interval(years=100)
        if self.year_of_decade is not None:
            return Interval(years=10)
        match self.slot:
            case Slot.YEAR:
                return Interval(years=1)
            case Slot.MONTH:
                return Interval(months=1)
            case Slot.WEEK:
                return Interval(units=DAYS_PER_WEEK * SECONDS_PER_DAY)
            case _:
                return Interval(units=self._cycle_seconds)

    @property
    def has_time(self) -> bool:
        """Says whether a time of day was given; without one the whole day is meant."""
        return not (self.hour is None and self.minute is None and self.second is None)

    def at_time_of(self, point: Point) -> TruncatedPoint:
        """Returns the same day at the time of day of a point."""
        second = (point + self.utc_offset_minutes * SECONDS_PER_MINUTE) % SECONDS_PER_DAY
        hour, second = divmod(second, SECONDS_PER_HOUR)
        minute, second = divmod(second, SECONDS_PER_MINUTE)
        return replace(self, hour=hour, minute=minute, second=second)

    def next_from(self, point: Point) -> Point:
        """Returns the first point that fits, at or after the given one."""
        shift = self.utc_offset_minutes * SECONDS_PER_MINUTE
        local = point + shift
        behind = (self._second_of_cycle - local) % self._cycle_seconds
        if self.slot is Slot.DAY:
            return Point(point + behind)
        day = (local + behind) // SECONDS_PER_DAY
        found = self._search(day, day, 1)
        return Point(found * SECONDS_PER_DAY + self._second_of_cycle - shift)

    def last_before(self, point: Point) -> Point:
        """Returns the last point that fits before the given one."""
        shift = self.utc_offset_minutes * SECONDS_PER_MINUTE
        local = point + shift
        ahead = (local - self._second_of_cycle - 1) % self._cycle_seconds + 1
        if self.slot is Slot.DAY:
            return Point(point - ahead)
        day = (local - ahead) // SECONDS_PER_DAY
        found = self._search(day, day, -1)
        return Point(found * SECONDS_PER_DAY + self._second_of_cycle - shift)

    @property
    def _cycle_seconds(self) -> int:
        """Returns the seconds after which the time of day recurs: of a day, hour or minute."""
        if self.slot is not Slot.DAY or self.hour is not None:
            return SECONDS_PER_DAY
        return SECONDS_PER_HOUR if self.minute is not None else SECONDS_PER_MINUTE

    @property
    def _second_of_cycle(self) -> int:
        return (
            (self.hour or 0) * SECONDS_PER_HOUR
            + (self.minute or 0) * SECONDS_PER_MINUTE
            + (self.second or 0)
        )

    def _search(self, day: int, context: int, direction: int) -> int:
        """Returns the nearest day that fits, from `day` on; `direction` is 1 or -1."""
        # The week year can be one off the year; such a slot is tried and passed over.
        slot = self._slot_of(day) - direction
        for _ in range(_SLOTS_MAX):
            found = self._day_in(slot, context)
            if found is not None and (found - day) * direction >= 0:
                return found
            slot += direction
        raise BadCycling(
            f"no year of the {self.calendar.value} calendar has such a day",
            "a day of the month, of the year or a week number is too high",
        )

    def _slot_of(self, day: int) -> int:
        match self.slot:
            case Slot.WEEK:
                return day // DAYS_PER_WEEK
            case Slot.MONTH:
                year, month, _ = date_from_days(self.calendar, day)
                return year * MONTHS_PER_YEAR + month - 1
            case _:
                return date_from_days(self.calendar, day)[0]

    def _day_in(self, slot: int, context: int) -> int | None:
        """Returns the day of a slot that fits, or None."""
        match self.slot:
            case Slot.WEEK:
                start = slot * DAYS_PER_WEEK
                wanted = self.day_of_week or 1
                ahead = (wanted - day_of_week(self.calendar, start)) % DAYS_PER_WEEK
                return start + ahead
            case Slot.MONTH:
                year, month0 = divmod(slot, MONTHS_PER_YEAR)
                return self._day_in_month(year, month0 + 1)
            case _:
                return self._day_in_year(slot, context)

    def _day_in_month(self, year: int, month: int) -> int | None:
        day = self.day_of_month or 1
        if day > days_in_month(self.calendar, year, month):
            return None
        return days_from_date(self.calendar, year, month, day)

    def _day_in_year(self, year: int, context: int) -> int | None:
        if self.year_of_century not in (None, year % 100):
            return None
        if self.year_of_decade not in (None, year % 10):
            return None
        if self.week is not None:
            first = first_day_of_week_year(self.calendar, year)
            weekday = self.day_of_week or day_of_week(self.calendar, context)
            day = (self.week - 1) * DAYS_PER_WEEK + weekday - 1
            fits = self.week <= weeks_in_year(self.calendar, year)
        elif self.day_of_year is not None:
            first, day = days_from_date(self.calendar, year, 1, 1), self.day_of_year - 1
            fits = self.day_of_year <= days_in_year(self.calendar, year)
        else:
            return self._day_in_month(year, self.month or 1)
        return first + day if fits else None


@dataclass(frozen=True, slots=True)
class Relative:
    """Leads from the child's point by intervals, added in turn: [], [-P1], [-P1M+P1D]."""

    intervals: tuple[Interval, ...] = ()
    calendar: Calendar = Calendar.INTEGER
    utc_offset_minutes: int = 0
    # The whole distance, if it is the same at every point; worked out once.
    units: int | None = field(init=False, compare=False, repr=False)
    is_absolute: ClassVar[bool] = False

    def __post_init__(self) -> None:
        exact = all(interval.is_exact for interval in self.intervals)
        units = sum(interval.units for interval in self.intervals) if exact else None
        object.__setattr__(self, "units", units)

    @property
    def is_exact(self) -> bool:
        """Says whether the distance is the same at every point."""
        return self.units is not None

    def parent_point(self, child_point: Point, _initial: Point) -> Point:
        if self.units is not None:
            return Point(child_point + self.units)
        return add_all(self.calendar, child_point, self.intervals, self.utc_offset_minutes)

    def child_points(
        self, parent_point: Point, sequence: Sequence, _initial: Point | None = None
    ) -> Iterator[Point]:
        if self.units is not None:
            child = Point(parent_point - self.units)
            return iter((child,) if sequence.contains(child) else ())
        found = origins_of_all(
            self.calendar, parent_point, self.intervals, self.utc_offset_minutes
        )
        return (point for point in found if sequence.contains(point))


@dataclass(frozen=True, slots=True)
class Truncated:
    """Leads to the first point that fits, then by intervals: [T06], [01T00-P1W].

    The search begins at the child's own point.
    """

    point: TruncatedPoint
    intervals: tuple[Interval, ...] = ()
    calendar: Calendar = Calendar.GREGORIAN
    utc_offset_minutes: int = 0
    is_absolute: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False

    def parent_point(self, child_point: Point, _initial: Point) -> Point:
        return add_all(
            self.calendar,
            self.point.next_from(child_point),
            self.intervals,
            self.utc_offset_minutes,
        )

    def child_points(
        self, parent_point: Point, sequence: Sequence, _initial: Point | None = None
    ) -> Iterator[Point]:
        found = origins_of_all(
            self.calendar, parent_point, self.intervals, self.utc_offset_minutes
        )
        for time in found:
            if self.point.next_from(time) == time:
                # Every child since the last such time sees this one next.
                earliest = Point(self.point.last_before(time) + 1)
                yield from sequence.points(earliest, time)


@dataclass(frozen=True, slots=True)
class Absolute:
    """Leads to one point, the same for every child: [2], [20300101]."""

    point: Point
    is_absolute: ClassVar[bool] = True
    is_exact: ClassVar[bool] = False

    def parent_point(self, _child_point: Point, _initial: Point) -> Point:
        return self.point

    def child_points(
        self, parent_point: Point, sequence: Sequence, _initial: Point | None = None
    ) -> Iterator[Point]:
        """Returns all points of the sequence, perhaps endless, if the parent is at `point`.

        Returns none if the parent is at another point.
        """
        return sequence.points() if parent_point == self.point else iter(())


@dataclass(frozen=True, slots=True)
class FromInitial:
    """Leads to an offset from the initial point, for every child: [^], [^+P1], [^+P1D]."""

    offset: Relative | Truncated
    is_absolute: ClassVar[bool] = True
    is_exact: ClassVar[bool] = False

    @property
    def intervals(self) -> tuple[Interval, ...]:
        return self.offset.intervals

    def parent_point(self, _child_point: Point, initial: Point) -> Point:
        return self.offset.parent_point(initial, initial)

    def child_points(
        self, parent_point: Point, sequence: Sequence, initial: Point | None = None
    ) -> Iterator[Point]:
        """Returns all points of the sequence, perhaps endless, if the parent is at the offset.

        Returns none if the parent is at another point.
        """
        assert initial is not None, "an offset from the initial point needs that point"
        here = self.offset.parent_point(initial, initial)
        return sequence.points() if parent_point == here else iter(())


Offset = Relative | FromInitial | Absolute | Truncated
