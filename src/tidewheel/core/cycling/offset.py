"""Offsets say where a parent is, seen from its child: the text between a node's brackets.

`parent_point` looks from a child to its parent, `child_points` from a parent to every child on
a sequence. Months are not reversible (28 to 31 March all lead to 28 February), so children are
found as the origins of the parent's point, each checked forwards; nothing is searched.

All kinds are asked alike, with the initial point, which only `FromInitial` looks at (ARG002).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidewheel.core.cycling.calendar import Calendar, Point
from tidewheel.core.cycling.interval import Interval, add_all, origins_of_all
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.cycling.truncated import TruncatedPoint


@dataclass(frozen=True, slots=True)
class Relative:
    """Some intervals from the child, one added after the other: [], [-P1], [-P1M+P1D]."""

    intervals: tuple[Interval, ...] = ()
    calendar: Calendar = Calendar.INTEGER
    utc_offset_minutes: int = 0
    # The whole distance, if it is the same at every point; worked out once.
    units: int | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        exact = all(interval.is_exact for interval in self.intervals)
        units = sum(interval.units for interval in self.intervals) if exact else None
        object.__setattr__(self, "units", units)

    @property
    def is_absolute(self) -> bool:
        return False

    @property
    def is_exact(self) -> bool:
        """Says whether the distance is the same at every point."""
        return self.units is not None

    def parent_point(self, child_point: Point, initial: Point) -> Point:  # noqa: ARG002
        if self.units is not None:
            return Point(child_point + self.units)
        return add_all(self.calendar, child_point, self.intervals, self.utc_offset_minutes)

    def child_points(
        self,
        parent_point: Point,
        sequence: Sequence,
        initial: Point | None = None,  # noqa: ARG002
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
    """The next such time from the child on, and intervals from there: [T06], [01T00-P1W]."""

    point: TruncatedPoint
    intervals: tuple[Interval, ...] = ()
    calendar: Calendar = Calendar.GREGORIAN
    utc_offset_minutes: int = 0

    @property
    def is_absolute(self) -> bool:
        return False

    @property
    def is_exact(self) -> bool:
        return False

    def parent_point(self, child_point: Point, initial: Point) -> Point:  # noqa: ARG002
        return add_all(
            self.calendar,
            self.point.next_from(child_point),
            self.intervals,
            self.utc_offset_minutes,
        )

    def child_points(
        self,
        parent_point: Point,
        sequence: Sequence,
        initial: Point | None = None,  # noqa: ARG002
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
    """One point, whatever the child's: [2], [20300101]."""

    point: Point

    @property
    def is_absolute(self) -> bool:
        return True

    @property
    def is_exact(self) -> bool:
        return False

    def parent_point(self, child_point: Point, initial: Point) -> Point:  # noqa: ARG002
        return self.point

    def child_points(
        self,
        parent_point: Point,
        sequence: Sequence,
        initial: Point | None = None,  # noqa: ARG002
    ) -> Iterator[Point]:
        """Every point of the sequence, perhaps without end."""
        return sequence.points() if parent_point == self.point else iter(())


@dataclass(frozen=True, slots=True)
class FromInitial:
    """Some offset from the initial point, whatever the child's: [^], [^+P1], [^+P1D]."""

    offset: Relative | Truncated

    @property
    def intervals(self) -> tuple[Interval, ...]:
        return self.offset.intervals

    @property
    def is_absolute(self) -> bool:
        return True

    @property
    def is_exact(self) -> bool:
        return False

    def parent_point(self, child_point: Point, initial: Point) -> Point:  # noqa: ARG002
        return self.offset.parent_point(initial, initial)

    def child_points(
        self, parent_point: Point, sequence: Sequence, initial: Point | None = None
    ) -> Iterator[Point]:
        """Every point of the sequence, perhaps without end."""
        assert initial is not None, "an offset from the initial point needs that point"
        here = self.offset.parent_point(initial, initial)
        return sequence.points() if parent_point == here else iter(())


Offset = Relative | FromInitial | Absolute | Truncated
