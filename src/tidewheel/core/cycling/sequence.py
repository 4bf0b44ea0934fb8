"""The points at which a graph section applies: a recurrence, bounded, less its exclusions.

Whatever form a recurrence was written in, it is a progression (start and step) between two
bounds. Every question is arithmetic on indexes, so it costs the same near the start and ten
thousand years later. Exclusions are single points and other sequences; an excluding sequence
that swallows every point in its range is jumped over, others are stepped over one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidewheel.core.cycling.calendar import SECONDS_PER_DAY, Calendar, Point
from tidewheel.core.cycling.interval import Interval
from tidewheel.core.cycling.progression import (
    WALKED_STEPS_MAX,
    Exact,
    Progression,
    Reckoning,
    Walked,
    progression,
)

# Excluded points in a row, not counting single ones, after which a search gives up: a sequence
# that skips so many is taken to have none left.
EXCLUDED_IN_A_ROW_MAX = 1000

_ONE_POINT = Interval(units=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Points in order. Equal values mean equal points; `text` is only for people.

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
        put(self, "_index_min", self._find_index_min(points))
        put(self, "_is_plain", not (self.excluded_points or self.exclusions))
        swallowing = (exclusion for exclusion in self.exclusions if exclusion.covers(self))
        put(self, "_swallowing", tuple(swallowing))
        put(self, "first", self._forwards(self._index_min))
        put(self, "last", self._find_last())

    def __hash__(self) -> int:
        """Made once: graphs are full of sequences as keys."""
        return self._hash

    @property
    def is_empty(self) -> bool:
        """Says whether no point is left, which is hardly what the author meant."""
        return self.first is None

    @property
    def is_cut_short(self) -> bool:
        """Says whether its steps must be walked, and are too many to reach the upper bound."""
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
        """The first point at or after this one."""
        index = self._points.floor_index(point)
        if index < self._index_min:
            index = self._index_min
        elif self._points.at(index) != point:
            index += 1
        return self._forwards(index)

    def next_after(self, point: Point) -> Point | None:
        """The first point after this one."""
        return self._forwards(max(self._points.floor_index(point) + 1, self._index_min))

    def last_until(self, point: Point) -> Point | None:
        """The last point at or before this one."""
        index = self._points.floor_index(point)
        if self._index_max is not None and index > self._index_max:
            index = self._index_max
        return self._backwards(index)

    def last_before(self, point: Point) -> Point | None:
        """The last point before this one."""
        return self.last_until(Point(point - 1))

    def points(self, start: Point | None = None, stop: Point | None = None) -> Iterator[Point]:
        """Every point from start to stop, both included; without a stop perhaps for ever."""
        point = self.first if start is None else self.first_from(start)
        while point is not None and (stop is None or point <= stop):
            yield point
            point = self.next_after(point)

    def covers(self, other: Sequence) -> bool:
        """Says whether this surely has, between its bounds, every point of another sequence."""
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

    def _find_index_min(self, points: Progression) -> int:
        if self.lower is None or self.lower <= self.start:
            return 0
        return points.floor_index(Point(self.lower - 1)) + 1

    def _forwards(self, index: int) -> Point | None:
        """The first point from an index on that is not excluded."""
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
        """The next index that may not be excluded; -1 if there is none."""
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
