"""Finds the points at which a graph section applies: a bounded recurrence less its exclusions.

Whatever form a recurrence was written in, it is a progression (start and step) between two
bounds. Every question is arithmetic on indexes, so it costs the same near the start and ten
thousand years later. Exclusions are single points and other sequences; an excluding sequence
that swallows every point in its range is jumped over, others are stepped over one by one.

A progression gives the points start, start + step, start + 2 steps, … by index, without walking
to them. A step is added to the point before, not to the start (as metomi does it), which
matters for months and years: once a day was clamped it stays so (31 January, 28 February, 28
March). Four kinds of steps are told apart when a sequence is made:

- exact steps are multiplication;
- months and years alone: the day of the month can only fall, at most from 31 to 28, so there
  are at most four runs of indexes with one day each, and inside a run months are multiplied;
- years alone from a day of the year or a day of a week (2000-045, 2000-W05-1): the same with
  years, one clamp at most (day 366, week 53);
- months or years together with exact units (P1M1D): the clamping never ends and feeds back, so
  the points are walked, once, and kept. They end after `WALKED_STEPS_MAX` steps.

`floor_index(point)` is the index of the last one not after a point (negative before the start).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from functools import lru_cache

from tidewheel.core.cycling.calendar import (
    DAYS_PER_WEEK,
    MONTHS_PER_ERA,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_MINUTE,
    YEARS_PER_ERA,
    Calendar,
    Interval,
    Point,
    add,
    date_from_days,
    day_of_year,
    days_from_date,
    days_in_year,
    first_day_of_week_year,
    shortest_month,
    week_date,
    weeks_in_year,
)
from tidewheel.lazy_dataclasses import dataclass

WALKED_STEPS_MAX = 12_000  # a thousand years of months
_WALKED_PER_PAGE = 500
_PAGES_MAX = WALKED_STEPS_MAX // _WALKED_PER_PAGE
_DAYS_IN_EVERY_YEAR = 360
_WEEKS_IN_EVERY_YEAR = 51


class Reckoning(Enum):
    """Says as which kind of date a start was written, because steps of years keep that day."""

    MONTH = "day of the month"
    ORDINAL = "day of the year"
    WEEK = "day of a week"


@dataclass(frozen=True, slots=True)
class Exact:
    """Advances by steps of one length."""

    start: Point
    units: int

    def at(self, index: int) -> Point:
        return Point(self.start + index * self.units)

    def floor_index(self, point: Point) -> int:
        return (point - self.start) // self.units


@dataclass(frozen=True, slots=True)
class Monthly:
    """Advances by months, with one day of the month for each run of indexes."""

    calendar: Calendar
    shift: int  # seconds from UTC to local time
    month_index: int  # of the start: year × 12 + month, from 0
    months: int
    second: int
    runs: tuple[tuple[int, int], ...]  # first index of the run, its day; in order

    def at(self, index: int) -> Point:
        year, month0 = divmod(self.month_index + index * self.months, MONTHS_PER_YEAR)
        day = self._day(index)
        days = days_from_date(self.calendar, year, month0 + 1, day)
        return Point(days * SECONDS_PER_DAY + self.second - self.shift)

    def floor_index(self, point: Point) -> int:
        days, second = divmod(point + self.shift, SECONDS_PER_DAY)
        year, month, day = date_from_days(self.calendar, days)
        index, rest = divmod(year * MONTHS_PER_YEAR + month - 1 - self.month_index, self.months)
        if rest or (day, second) >= (self._day(index), self.second):
            return index
        return index - 1

    def _day(self, index: int) -> int:
        for first, day in reversed(self.runs):
            if index >= first:
                return day
        return self.runs[0][1]


@dataclass(frozen=True, slots=True)
class Yearly:
    """Advances by years, keeping the day of the year, or the week and its day."""

    calendar: Calendar
    shift: int
    reckoning: Reckoning
    year: int  # of the start; the week year, if weeks are kept
    years: int
    second: int
    day: int  # from the beginning of the year, or of its first week; 0 is the first
    clamped_from: int | None  # the first index that has not that many days
    clamped_day: int

    def at(self, index: int) -> Point:
        clamped = self.clamped_from is not None and index >= self.clamped_from
        year = self.year + index * self.years
        days = days_from_date(self.calendar, year, 1, 1)
        if self.reckoning is Reckoning.WEEK:
            days = first_day_of_week_year(self.calendar, year)
        days += self.clamped_day if clamped else self.day
        return Point(days * SECONDS_PER_DAY + self.second - self.shift)

    def floor_index(self, point: Point) -> int:
        days = (point + self.shift) // SECONDS_PER_DAY
        # One year more than there can be: a week year may begin before its year.
        year = date_from_days(self.calendar, days)[0] + 1
        index = (year - self.year) // self.years
        while self.at(index) > point:
            index -= 1
        return index


@dataclass(frozen=True, slots=True)
class Walked:
    """Advances by steps that can only be walked: once, and no further than a question needs."""

    calendar: Calendar
    utc_offset_minutes: int
    start: Point
    step: Interval
    end: Point | None

    def at(self, index: int) -> Point:
        page, rest = divmod(index, _WALKED_PER_PAGE)
        return _page(self, page)[rest]

    def floor_index(self, point: Point) -> int:
        if self.end is not None and point > self.end:
            point = self.end
        if point < self.start:
            return -1
        page = 0
        while page < _PAGES_MAX and _page(self, page)[-1] <= point:
            page += 1
        return page * _WALKED_PER_PAGE + bisect_right(_page(self, page), point) - 1


Progression = Exact | Monthly | Yearly | Walked


def steps_back(
    calendar: Calendar,
    end: Point,
    step: Interval,
    until: Point,
    *,
    utc_offset_minutes: int = 0,
    reckoning: Reckoning = Reckoning.MONTH,
) -> tuple[Point, int] | None:
    """Steps back from `end`; returns the first point at or before `until`, and the steps taken.

    Returns None if the steps have to be walked and are more than `WALKED_STEPS_MAX`.
    """
    if step.is_exact:
        count = max(0, -((until - end) // step.units))
        return Point(end - count * step.units), count
    if step.units:
        point, count = end, 0
        while point > until:
            if count == WALKED_STEPS_MAX:
                return None
            point = add(calendar, point, -step, utc_offset_minutes)
            count += 1
        return point, count
    back = _nominal(calendar, end, -step, utc_offset_minutes, reckoning)
    months = step.years * MONTHS_PER_YEAR + step.months
    era_days = days_from_date(calendar, YEARS_PER_ERA, 1, 1) - days_from_date(calendar, 0, 1, 1)
    # From the mean length of a month, rounded down: it misses by some days, never by a month.
    count = max(0, (end - until) * MONTHS_PER_ERA // (era_days * SECONDS_PER_DAY * months))
    while back.at(count) > until:
        count += 1
    return back.at(count), count


def progression(
    calendar: Calendar,
    start: Point,
    step: Interval,
    *,
    utc_offset_minutes: int = 0,
    reckoning: Reckoning = Reckoning.MONTH,
    end: Point | None = None,
) -> Progression:
    """Returns the points start, start + step, … in the kind of progression that fits the step.

    The step must lead forwards; `end` only saves walking further.
    """
    if step.is_exact:
        assert step.units > 0, step
        return Exact(start, step.units)
    if step.units:
        return Walked(calendar, utc_offset_minutes, start, step, end)
    assert step.years * MONTHS_PER_YEAR + step.months > 0, step
    return _nominal(calendar, start, step, utc_offset_minutes, reckoning)


def _nominal(
    calendar: Calendar,
    start: Point,
    step: Interval,
    utc_offset_minutes: int,
    reckoning: Reckoning,
) -> Monthly | Yearly:
    if reckoning is not Reckoning.MONTH and not step.months:
        return _yearly(calendar, start, step.years, utc_offset_minutes, reckoning)
    return _monthly(calendar, start, step, utc_offset_minutes)


def _monthly(
    calendar: Calendar, start: Point, step: Interval, utc_offset_minutes: int
) -> Monthly:
    shift = utc_offset_minutes * SECONDS_PER_MINUTE
    days, second = divmod(start + shift, SECONDS_PER_DAY)
    year, month, day = date_from_days(calendar, days)
    return Monthly(
        calendar,
        shift,
        year * MONTHS_PER_YEAR + month - 1,
        step.years * MONTHS_PER_YEAR + step.months,
        second,
        _runs(calendar, start, step, utc_offset_minutes, day),
    )


def _runs(
    calendar: Calendar, start: Point, step: Interval, utc_offset_minutes: int, day: int
) -> tuple[tuple[int, int], ...]:
    """Returns runs of indexes that have one day of the month: first index and day of each."""
    runs = [(0, day)]
    point, index = start, 0
    # Then the months have come round: no day will be clamped if none was before.
    steps_max = MONTHS_PER_ERA if step.months else YEARS_PER_ERA
    if calendar is not Calendar.GREGORIAN:
        steps_max = MONTHS_PER_YEAR if step.months else 0
    while day > shortest_month(calendar) and index - runs[-1][0] < steps_max:
        point, index = add(calendar, point, step, utc_offset_minutes), index + 1
        local = point + utc_offset_minutes * SECONDS_PER_MINUTE
        day = date_from_days(calendar, local // SECONDS_PER_DAY)[2]
        if day < runs[-1][1]:
            runs.append((index, day))
    return tuple(runs)


def _yearly(
    calendar: Calendar,
    start: Point,
    years: int,
    utc_offset_minutes: int,
    reckoning: Reckoning,
) -> Yearly:
    shift = utc_offset_minutes * SECONDS_PER_MINUTE
    days, second = divmod(start + shift, SECONDS_PER_DAY)
    if reckoning is Reckoning.WEEK:
        year, week, weekday = week_date(calendar, days)
        day = (week - 1) * DAYS_PER_WEEK + weekday - 1
        less, always = DAYS_PER_WEEK, _WEEKS_IN_EVERY_YEAR * DAYS_PER_WEEK
    else:
        year, ordinal = day_of_year(calendar, days)
        day, less, always = ordinal - 1, 1, _DAYS_IN_EVERY_YEAR

    def has_day(index: int) -> bool:
        here = year + index * years
        if reckoning is Reckoning.WEEK:
            return day < weeks_in_year(calendar, here) * DAYS_PER_WEEK
        return day < days_in_year(calendar, here)

    doubtful = range(1, YEARS_PER_ERA + 1) if day >= always else ()
    short = (index for index in doubtful if not has_day(index))
    return Yearly(
        calendar, shift, reckoning, year, years, second, day, next(short, None), day - less
    )


@lru_cache(maxsize=2 * _PAGES_MAX)
def _page(walked: Walked, number: int) -> tuple[Point, ...]:
    """Returns one page of walked points, and behind them the first point of the next page."""
    points = [_page(walked, number - 1)[-1] if number else walked.start]
    for _ in range(_WALKED_PER_PAGE):
        points.append(add(walked.calendar, points[-1], walked.step, walked.utc_offset_minutes))
    return tuple(points)


# Excluded points in a row, not counting single ones, after which a search gives up: a sequence
# that skips so many is taken to have none left.
EXCLUDED_IN_A_ROW_MAX = 1000

_ONE_POINT = Interval(units=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Holds points in order.

    Sequences that compare equal have the same points; `text`, which is only for people, is not
    compared.

    ``step`` None is one point. ``lower`` and ``upper`` cut off what lies before and after;
    ``endless`` says that ``upper`` is no more than the last point that can be written.
    """

    calendar: Calendar
    start: Point
    step: Interval | None = None
    lower: Point | None = None
    upper: Point | None = None
    endless: bool = False
    utc_offset_minutes: int = 0
    reckoning: Reckoning = Reckoning.MONTH
    excluded_points: frozenset[Point] = frozenset()
    exclusions: tuple[Sequence, ...] = ()
    text: str = field(default="", compare=False)

    _points: Progression = field(init=False, compare=False, repr=False)
    _index_min: int = field(init=False, compare=False, repr=False)
    _index_max: int | None = field(init=False, compare=False, repr=False)
    _is_plain: bool = field(init=False, compare=False, repr=False)
    _swallowing: tuple[Sequence, ...] = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)
    first: Point | None = field(init=False, compare=False, repr=False)
    last: Point | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        step = self.step or _ONE_POINT
        # Of numbers alone: a pickled sequence must have the same one in every process.
        facts = (self.start, step.years, step.months, step.units, self.upper or 0)
        put(self, "_hash", hash((facts, self.excluded_points, self.exclusions)))
        points = progression(
            self.calendar,
            self.start,
            self.step or _ONE_POINT,
            utc_offset_minutes=self.utc_offset_minutes,
            reckoning=self.reckoning,
            end=self.upper,
        )
        put(self, "_points", points)
        put(self, "_index_max", self._find_index_max(points))
        lower = self.start if self.lower is None else max(self.lower, self.start)
        put(self, "_index_min", points.floor_index(Point(lower - 1)) + 1)
        put(self, "_is_plain", not (self.excluded_points or self.exclusions))
        swallowing = (exclusion for exclusion in self.exclusions if exclusion.covers(self))
        put(self, "_swallowing", tuple(swallowing))
        put(self, "first", self._forwards(self._index_min))
        put(self, "last", self._find_last())

    def __hash__(self) -> int:
        """Returns the hash that was made once, because graphs are full of sequences as keys."""
        return self._hash

    @property
    def is_empty(self) -> bool:
        """Says whether no point is left, which is hardly what the author meant."""
        return self.first is None

    @property
    def is_cut_short(self) -> bool:
        """Says whether steps that must be walked end before they reach the upper bound."""
        return (
            isinstance(self._points, Walked)
            and self.upper is not None
            and self._points.floor_index(self.upper) >= WALKED_STEPS_MAX
        )

    def contains(self, point: Point) -> bool:
        index = self._points.floor_index(point)
        if index < self._index_min or (self._index_max is not None and index > self._index_max):
            return False
        return self._points.at(index) == point and (
            self._is_plain or not self._is_excluded(point)
        )

    def first_from(self, point: Point) -> Point | None:
        """Returns the first point at or after this one, or None."""
        index = self._points.floor_index(point)
        if index < self._index_min:
            index = self._index_min
        elif self._points.at(index) != point:
            index += 1
        return self._forwards(index)

    def next_after(self, point: Point) -> Point | None:
        """Returns the first point after this one, or None."""
        return self._forwards(max(self._points.floor_index(point) + 1, self._index_min))

    def last_until(self, point: Point) -> Point | None:
        """Returns the last point at or before this one, or None."""
        index = self._points.floor_index(point)
        if self._index_max is not None and index > self._index_max:
            index = self._index_max
        return self._backwards(index)

    def last_before(self, point: Point) -> Point | None:
        """Returns the last point before this one, or None."""
        return self.last_until(Point(point - 1))

    def points(self, start: Point | None = None, stop: Point | None = None) -> Iterator[Point]:
        """Yields points from start to stop, both included; endlessly if nothing bounds them."""
        point = self.first if start is None else self.first_from(start)
        while point is not None and (stop is None or point <= stop):
            yield point
            point = self.next_after(point)

    def repeats_after(self, units: int) -> bool:
        """Says whether whatever lies so far before a point of it, and not before its first, is
        surely a point of it, too."""
        points = self._points
        return self._is_plain and isinstance(points, Exact) and units % points.units == 0

    def covers(self, other: Sequence) -> bool:
        """Says whether this surely has every point of another sequence, between its bounds."""
        mine, theirs = self._points, other._points
        if mine == theirs:
            return True
        if not isinstance(mine, Exact) or (mine.start - other.start) % mine.units:
            return False
        if isinstance(theirs, Exact):
            return theirs.units % mine.units == 0
        # Months and years keep the time of day; what comes on top is in the step.
        step = other.step or _ONE_POINT
        return SECONDS_PER_DAY % mine.units == 0 and step.units % mine.units == 0

    def _find_index_max(self, points: Progression) -> int | None:
        if isinstance(points, Walked):
            # The index of the upper bound would have to be walked to.
            return WALKED_STEPS_MAX
        limits = [0] if self.step is None else []
        if self.upper is not None:
            limits.append(points.floor_index(self.upper))
        return min(limits, default=None)

    def _find_last(self) -> Point | None:
        if self.endless or self.first is None:
            return None
        if self.step is None:
            return self.first
        return None if self.upper is None else self.last_until(self.upper)

    def _forwards(self, index: int) -> Point | None:
        """Returns the first point from an index on that is not excluded, or None."""
        steps_left = EXCLUDED_IN_A_ROW_MAX + len(self.excluded_points)
        while self._index_max is None or index <= self._index_max:
            point = self._points.at(index)
            if self.upper is not None and point > self.upper:
                return None
            if self._is_plain or not self._is_excluded(point):
                return point
            index = self._index_after_swallowed(index, point)
            steps_left -= 1
            if index < 0 or not steps_left:
                return None
        return None

    def _backwards(self, index: int) -> Point | None:
        steps_left = EXCLUDED_IN_A_ROW_MAX + len(self.excluded_points)
        while index >= self._index_min:
            point = self._points.at(index)
            if self._is_plain or not self._is_excluded(point):
                return point
            index = self._index_before_swallowed(index, point)
            steps_left -= 1
            if not steps_left:
                return None
        return None

    def _is_excluded(self, point: Point) -> bool:
        return point in self.excluded_points or any(
            exclusion.contains(point) for exclusion in self.exclusions
        )

    def _index_after_swallowed(self, index: int, point: Point) -> int:
        """Returns the next index whose point is perhaps not excluded; -1 if there is none."""
        for exclusion in self._swallowing:
            if exclusion.contains(point):
                last = exclusion.start if exclusion.step is None else exclusion.upper
                return -1 if last is None else self._points.floor_index(last) + 1
        return index + 1

    def _index_before_swallowed(self, index: int, point: Point) -> int:
        for exclusion in self._swallowing:
            if exclusion.contains(point):
                first = exclusion._points.at(exclusion._index_min)
                return self._points.floor_index(Point(first - 1))
        return index - 1
