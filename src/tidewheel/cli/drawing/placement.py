"""Does the second half of a layout: finds the height at which each box and bend stands.

All that must stand below something else is a chain of least distances in each column. Frames
have the same order in every column, so the chains have no circle, and one walk along them,
from top to bottom, settles everything.

The order in the columns is fixed. Each column is moved as near as it can be to its neighbours,
which makes chains straight; then the frames are pushed apart until each has its rectangle for
itself, and the columns are moved once more within these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import inf
from typing import NamedTuple

from tidewheel.cli.drawing.layers import Lattice, from_first_to_last, nearest_rising
from tidewheel.cli.drawing.sketch import NO_FRAME, Frame, frames_around

# Rectangles for frames: pushes cells and frames down until nothing overlaps.

FRAME_GAP = 14.0
FRAME_PAD = 9.0
FRAME_HEAD = 24.0  # the padding above, with room for the title


class FrameSpan(NamedTuple):
    """Holds the heights at which a frame begins and ends."""

    top: float
    bottom: float


def parted(above: Sequence[int], below: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the frames that end and those that begin between two cells, outermost first."""
    same = 0
    while same < min(len(above), len(below)) and above[same] == below[same]:
        same += 1
    return list(above[same:]), list(below[same:])


class _Walls:
    """Holds the least distances between cells, tops of frames and bottoms of frames.

    `paths` are the frames around each cell, outermost first.
    """

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
        if not self._is_cell(below) and not self._is_top(below):
            return room + FRAME_PAD
        if self._is_cell(above) and self._is_cell(below):
            return room + self._gap(above, below)
        return room + FRAME_GAP

    def settle(self, wished: Sequence[float]) -> list[float]:
        """Returns the height of everything: what it wished, or as little below as possible."""
        # Frames are in the same order everywhere, so there is one.
        order = from_first_to_last(self._below)
        places = [*wished, *([-inf] * (len(self._below) - len(wished)))]
        self._raise_tops(order, places)
        for one in order:
            for other, distance in self._below[one].items():
                places[other] = max(places[other], places[one] + distance)
        self._raise_tops(order, places)
        return places

    def _raise_tops(self, order: Sequence[int], places: list[float]) -> None:
        """Puts the top of each frame above the highest wish of its cells."""
        for top in filter(self._is_top, reversed(order)):
            below = self._below[top].items()
            places[top] = min(places[one] - distance for one, distance in below)

    def _is_cell(self, one: int) -> bool:
        return one < self._cell_count

    def _is_top(self, one: int) -> bool:
        return one >= self._cell_count and (one - self._cell_count) % 2 == 0


# Long lines made straight: bends that follow each other get one height where there is room.

Room = Callable[[int], tuple[float, float]]


def straighten(lattice: Lattice, middles: list[float], room: Room) -> None:
    """Straightens long lines by changing `middles`.

    `room` says how far up and down a cell may go right now.
    """
    left: dict[int, list[int]] = {}
    right: dict[int, list[int]] = {}
    for one, other in lattice.links:
        left.setdefault(other, []).append(one)
        right.setdefault(one, []).append(other)
    for run in sorted(_runs(lattice, left, right), key=len, reverse=True):
        ups, downs = zip(*map(room, run), strict=True)
        low, high = max(ups), min(downs)
        if low <= high:
            # The height of the end which is nearest to where the bends are.
            mean = sum(middles[bend] for bend in run) / len(run)
            ends = (middles[one] for one in (*left.get(run[0], ()), *right.get(run[-1], ())))
            height = min(ends, key=lambda end: abs(end - mean), default=mean)
            for bend in run:
                middles[bend] = max(low, min(height, high))


def _runs(
    lattice: Lattice, left: dict[int, list[int]], right: dict[int, list[int]]
) -> list[list[int]]:
    """Returns series of bends, each as long as possible, in which a bend leads to one other."""

    def next_bend(cell: int) -> int | None:
        bends = [one for one in right.get(cell, ()) if lattice.is_bend(one)]
        return bends[0] if len(bends) == 1 else None

    runs = []
    for cell in range(lattice.box_count, lattice.fillers_from):
        if any(lattice.is_bend(one) and next_bend(one) == cell for one in left.get(cell, ())):
            continue  # in the middle of another run
        run = [cell]
        while (following := next_bend(run[-1])) is not None:
            run.append(following)
        runs.append(run)
    return runs


# The fourth step of a layout: how far down each cell stands.

SWEEPS_ONE_WAY = 8  # a column looks at the one before it
SWEEPS = 12  # the others look both ways
BOX_GAP = 14.0
BEND_GAP = 7.0
# How hard a link pulls, by how many of its ends are bends: long lines shall be straight.
PULLS = (1.0, 2.0, 8.0)
AT_REST = 0.01  # the weight of staying where it is, for a cell without neighbours

# Who pulls at each cell, and how hard.
Pulls = list[list[tuple[int, float]]]


@dataclass(slots=True)
class _Column:
    cells: list[int]
    offsets: list[float]  # the least distance of each cell from the first


class Placer:
    """Moves cells; `middles` is where they are."""

    def __init__(
        self,
        lattice: Lattice,
        columns: Sequence[Sequence[int]],
        heights: Sequence[float],
        frames: tuple[Frame, ...],
    ) -> None:
        self._lattice, self._heights, self._frames = lattice, heights, frames
        self._paths = [
            list(frames_around(frame, frames))[::-1] for frame in lattice.frames
        ]  # outermost first
        self._columns = [_Column(list(column), self._offsets(column)) for column in columns]
        self.middles = [0.0] * len(lattice.ranks)
        for column in self._columns:
            for cell, offset in zip(column.cells, column.offsets, strict=True):
                self.middles[cell] = offset - column.offsets[-1] / 2
        self._left, self._right = self._pulls()
        self.spans: list[FrameSpan] = []

    def place(self) -> None:
        self._sweep_all()
        if self._frames:
            self._push_apart()
            self._sweep_all()
        straighten(self._lattice, self.middles, self._room())

    def _push_apart(self) -> None:
        """Pushes frames apart until each has its rectangle for itself."""
        count = len(self._frames)
        walls = _Walls(self._paths, self._heights, count, self.gap)
        for column in self._columns:
            walls.add_column(column.cells)
        places = walls.settle(self.middles)
        self.middles = places[: len(self.middles)]
        self.spans = [
            FrameSpan(places[walls.top(one)], places[walls.bottom(one)]) for one in range(count)
        ]

    def gap(self, above: int, below: int) -> float:
        """Returns how much room must stay free between two cells."""
        is_box = self._lattice.is_box
        return BOX_GAP if is_box(above) and is_box(below) else BEND_GAP

    def _sweep_all(self) -> None:
        for number in range(SWEEPS):
            to_right = number % 2 == 0
            sides = [self._left if to_right else self._right]
            if number >= SWEEPS_ONE_WAY:
                sides = [self._left, self._right]
            for column in self._columns if to_right else reversed(self._columns):
                self._move(column, sides)

    def _move(self, column: _Column, sides: Sequence[Pulls]) -> None:
        wishes, weights = [], []
        for cell, offset in zip(column.cells, column.offsets, strict=True):
            pull, mass = self.middles[cell] * AT_REST, AT_REST
            for side in sides:
                for other, strength in side[cell]:
                    pull += self.middles[other] * strength
                    mass += strength
            wishes.append(pull / mass - offset)
            weights.append(mass)
        levels = nearest_rising(wishes, weights)
        if self.spans:
            levels = self._within_frames(column, levels)
        for cell, offset, level in zip(column.cells, column.offsets, levels, strict=True):
            self.middles[cell] = level + offset

    def _within_frames(self, column: _Column, levels: list[float]) -> list[float]:
        lows, highs = self._bounds(column)
        lows, highs = list(accumulate(lows, max)), list(accumulate(highs[::-1], min))[::-1]
        bounds = zip(lows, levels, highs, strict=True)
        return [max(low, min(level, high)) for low, level, high in bounds]

    def _bounds(self, column: _Column) -> tuple[list[float], list[float]]:
        """Returns how far up and down each cell may go, less its offset."""
        lows, highs = [], []
        for cell, offset in zip(column.cells, column.offsets, strict=True):
            half = self._heights[cell] / 2
            frame = self._lattice.frames[cell]
            low, high = -inf, inf
            if frame != NO_FRAME:
                low = self.spans[frame].top + FRAME_HEAD + half
                high = self.spans[frame].bottom - FRAME_PAD - half
            lows.append(low - offset)
            highs.append(high - offset)
        for number, (above, below) in enumerate(pairwise(column.cells)):
            closed, opened = parted(self._paths[above], self._paths[below])
            if closed:
                edge = self.spans[closed[0]].bottom + FRAME_GAP + self._heights[below] / 2
                lows[number + 1] = max(lows[number + 1], edge - column.offsets[number + 1])
            if opened:
                edge = self.spans[opened[0]].top - FRAME_GAP - self._heights[above] / 2
                highs[number] = min(highs[number], edge - column.offsets[number])
        return lows, highs

    def _room(self) -> Callable[[int], tuple[float, float]]:
        """Returns how far a cell may go between its neighbours and the walls of its frames."""
        where = {
            cell: (column, number)
            for column in self._columns
            for number, cell in enumerate(column.cells)
        }
        walls = [self._bounds(column) if self.spans else ([], []) for column in self._columns]

        def room(cell: int) -> tuple[float, float]:
            column, number = where[cell]
            offset = column.offsets[number]
            low, high = -inf, inf
            if self.spans:
                lows, highs = walls[self._lattice.ranks[cell]]
                low, high = lows[number] + offset, highs[number] + offset
            if number:
                above = column.cells[number - 1]
                low = max(low, self.middles[above] + offset - column.offsets[number - 1])
            if number + 1 < len(column.cells):
                below = column.cells[number + 1]
                high = min(high, self.middles[below] + offset - column.offsets[number + 1])
            return low, high

        return room

    def _offsets(self, column: Sequence[int]) -> list[float]:
        offsets = [0.0] if column else []
        for above, below in pairwise(column):
            closed, opened = parted(self._paths[above], self._paths[below])
            room = (self._heights[above] + self._heights[below]) / 2
            if closed or opened:
                room += FRAME_GAP + FRAME_PAD * len(closed) + FRAME_HEAD * len(opened)
            else:
                room += self.gap(above, below)
            offsets.append(offsets[-1] + room)
        return offsets

    def _pulls(self) -> tuple[Pulls, Pulls]:
        left: Pulls = [[] for _ in self.middles]
        right: Pulls = [[] for _ in self.middles]
        following = Counter(one for one, _ in self._lattice.links)
        preceding = Counter(other for _, other in self._lattice.links)
        for one, other in self._lattice.links:
            strength = PULLS[self._lattice.is_bend(one) + self._lattice.is_bend(other)]
            # Who has many neighbours pulls each of them less: a child of its own keeps a
            # box beside it, a crowd's common child does not.
            left[other].append((one, strength / following[one]))
            right[one].append((other, strength / preceding[other]))
        return left, right
