"""Counting by point: the earliest point that holds something is known without a search."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.states import Value


class PointCounter:
    """How many things lie at each point. The heap may hold points that have become empty."""

    __slots__ = ("_heap", "counts", "emptied")

    def __init__(self) -> None:
        self.counts: dict[Point, int] = {}
        self.emptied = False  # whether a point became empty since somebody looked
        self._heap: list[Point] = []

    def add(self, point: Point) -> None:
        counts = self.counts
        if point in counts:
            counts[point] += 1
        else:
            counts[point] = 1
            heappush(self._heap, point)

    def remove(self, point: Point) -> None:
        count = self.counts[point] - 1
        if count:
            self.counts[point] = count
        else:
            del self.counts[point]
            self.emptied = True
            if len(self._heap) > 2 * len(self.counts) + 64:
                self._heap = list(self.counts)
                heapify(self._heap)

    def earliest(self) -> Point | None:
        heap, counts = self._heap, self.counts
        while heap:
            if heap[0] in counts:
                return heap[0]
            heappop(heap)
        return None


class GroupCount:
    """What the members of a family are worth at one point in one flow, counted by value."""

    __slots__ = ("counts", "values")

    def __init__(self, members: int) -> None:
        self.values: dict[str, Value] = {}
        self.counts = [0, 0, members, 0]

    def put(self, member: str, value: Value) -> None:
        self.counts[self.values.get(member, Value.OPEN)] -= 1
        self.counts[value] += 1
        self.values[member] = value

    def value(self, every: bool) -> Value:
        """The least of the members' values, or the greatest."""
        order = (0, 1, 2, 3) if every else (3, 2, 1, 0)
        return next((Value(one) for one in order if self.counts[one]), Value.OPEN)
