"""The fourth step of a layout: how far down each cell stands.

The order in the columns is fixed. Each column is moved as near as it can be to its neighbours,
which makes chains straight; then the frames are pushed apart until each has its rectangle for
itself, and the columns are moved once more within these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tidewheel.cli.drawing.frame_walls import (
    FRAME_GAP,
    FRAME_HEAD,
    FRAME_PAD,
    Span,
    parted,
    push_apart,
)
from tidewheel.cli.drawing.lattice import Lattice
from tidewheel.cli.drawing.levels import nearest_rising
from tidewheel.cli.drawing.sketch import NO_FRAME, Frame, frames_around
from tidewheel.cli.drawing.straightening import straighten

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
        self.spans: list[Span] = []

    def place(self) -> None:
        self._sweep_all()
        if self._frames:
            self.spans = push_apart(
                [column.cells for column in self._columns],
                self._paths,
                self._heights,
                self.middles,
                self._frames,
                self.gap,
            )
            self._sweep_all()
        straighten(self._lattice, self.middles, self._room())

    def gap(self, above: int, below: int) -> float:
        """Free room between two cells."""
        boxes = self._lattice.is_box(above) and self._lattice.is_box(below)
        return BOX_GAP if boxes else BEND_GAP

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
        bound = -inf
        for number, low in enumerate(lows):
            lows[number] = bound = max(bound, low)
        bound = inf
        for number in reversed(range(len(highs))):
            highs[number] = bound = min(bound, highs[number])
        return [
            max(low, min(level, high))
            for low, level, high in zip(lows, levels, highs, strict=True)
        ]

    def _bounds(self, column: _Column) -> tuple[list[float], list[float]]:
        """How far up and down each cell may go, less its offset."""
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
        """How far a cell may go between its neighbours and the walls of its frames."""
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
