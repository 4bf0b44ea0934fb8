"""Rectangles for frames: pushes cells and frames down until nothing overlaps.

All that must stand below something else is a chain of least distances in each column. Frames
have the same order in every column, so the chains have no circle, and one walk along them,
from top to bottom, settles everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from tidewheel.cli.drawing.sketch import Frame

FRAME_GAP = 14.0
FRAME_PAD = 9.0
FRAME_HEAD = 24.0  # the padding above, with room for the title


class Span(NamedTuple):
    """From where to where a frame goes down."""

    top: float
    bottom: float


def push_apart(
    columns: Sequence[Sequence[int]],
    paths: Sequence[Sequence[int]],
    heights: Sequence[float],
    middles: list[float],
    frames: tuple[Frame, ...],
    gap: Callable[[int, int], float],
) -> list[Span]:
    """Changes `middles`; `paths` are the frames around each cell, outermost first."""
    walls = _Walls(paths, heights, len(frames), gap)
    for column in columns:
        walls.add_column(column)
    places = walls.settle(middles)
    middles[:] = places[: len(middles)]
    return [
        Span(places[walls.top(one)], places[walls.bottom(one)]) for one in range(len(frames))
    ]


def parted(above: Sequence[int], below: Sequence[int]) -> tuple[list[int], list[int]]:
    """The frames that end and those that begin between two cells, outermost first."""
    same = 0
    while same < min(len(above), len(below)) and above[same] == below[same]:
        same += 1
    return list(above[same:]), list(below[same:])


class _Walls:
    """Least distances between cells, tops of frames and bottoms of frames."""

    def __init__(
        self,
        paths: Sequence[Sequence[int]],
        heights: Sequence[float],
        frame_count: int,
        gap: Callable[[int, int], float],
    ) -> None:
        self._paths, self._heights, self._gap = paths, heights, gap
        self._cell_count = len(paths)
        self._below: list[dict[int, float]] = [
            {} for _ in range(self._cell_count + 2 * frame_count)
        ]

    def top(self, frame: int) -> int:
        return self._cell_count + 2 * frame

    def bottom(self, frame: int) -> int:
        return self._cell_count + 2 * frame + 1

    def add_column(self, column: Sequence[int]) -> None:
        chain: list[int] = []
        inside: Sequence[int] = ()
        for cell in column:
            path = self._paths[cell]
            closed, opened = parted(inside, path)
            chain += [self.bottom(frame) for frame in reversed(closed)]
            chain += [self.top(frame) for frame in opened]
            chain.append(cell)
            inside = path
        chain += [self.bottom(frame) for frame in reversed(inside)]
        for above, below in pairwise(chain):
            distance = self._distance(above, below)
            self._below[above][below] = max(distance, self._below[above].get(below, 0.0))

    def _distance(self, above: int, below: int) -> float:
        room = sum(self._heights[one] / 2 for one in (above, below) if self._is_cell(one))
        if self._is_top(above):
            return room + FRAME_HEAD
        if self._is_bottom(below):
            return room + FRAME_PAD
        if self._is_cell(above) and self._is_cell(below):
            return room + self._gap(above, below)
        return room + FRAME_GAP

    def settle(self, wished: Sequence[float]) -> list[float]:
        """Everything at its wish, or as little below it as possible."""
        order = self._from_top()
        places = [*wished, *([-inf] * (len(self._below) - len(wished)))]
        for one in reversed(order):
            if self._is_top(one):  # above the highest wish of its cells
                places[one] = self._highest(one, places)
        for one in order:
            for other, distance in self._below[one].items():
                places[other] = max(places[other], places[one] + distance)
        for one in reversed(order):
            if self._is_top(one):
                places[one] = self._highest(one, places)
        return places

    def _highest(self, top: int, places: Sequence[float]) -> float:
        return min(places[one] - distance for one, distance in self._below[top].items())

    def _from_top(self) -> list[int]:
        above = [0] * len(self._below)
        for below in self._below:
            for one in below:
                above[one] += 1
        order = [one for one, count in enumerate(above) if not count]
        for one in order:
            for other in self._below[one]:
                above[other] -= 1
                if not above[other]:
                    order.append(other)
        assert len(order) == len(self._below), "frames are not in the same order everywhere"
        return order

    def _is_cell(self, one: int) -> bool:
        return one < self._cell_count

    def _is_top(self, one: int) -> bool:
        return one >= self._cell_count and (one - self._cell_count) % 2 == 0

    def _is_bottom(self, one: int) -> bool:
        return one >= self._cell_count and (one - self._cell_count) % 2 == 1
