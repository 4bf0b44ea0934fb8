"""The third step of a layout: the order of the cells in each column, so that few lines cross.

Sweeps to and fro put each cell near the mean of its neighbours in the column before; the order
with the fewest crossings wins. A frame keeps its cells together, and two frames have the same
order in every column: that is what makes it possible to draw a rectangle around each.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidewheel.cli.drawing.lattice import Lattice
from tidewheel.cli.drawing.levels import nearest_rising
from tidewheel.cli.drawing.sketch import NO_FRAME, Frame

SWEEPS = 16

Columns = list[list[int]]


@dataclass(slots=True)
class _Item:
    """A cell or a frame, beside its siblings in one column."""

    wish: float
    weight: int
    cells: list[int]
    frame: int = NO_FRAME


def order_columns(lattice: Lattice, frames: tuple[Frame, ...]) -> Columns:
    """The cells of each column from top to bottom."""
    return _Orderer(lattice, frames).best()


class _Orderer:
    def __init__(self, lattice: Lattice, frames: tuple[Frame, ...]) -> None:
        self._lattice, self._frames = lattice, frames
        count = len(lattice.ranks)
        self._left: list[list[int]] = [[] for _ in range(count)]
        self._right: list[list[int]] = [[] for _ in range(count)]
        for left, right in lattice.links:
            self._left[right].append(left)
            self._right[left].append(right)
        self._place = [0.0] * count
        self._frame_place: list[float] = [float(number) for number in range(len(frames))]

    def best(self) -> Columns:
        columns = self._start()
        best, fewest = columns, crossings(columns, self._right)
        for number in range(SWEEPS):
            if not fewest:
                break
            columns = self._sweep(columns, to_right=number % 2 == 0)
            crossed = crossings(columns, self._right)
            if crossed < fewest:
                best, fewest = columns, crossed
        return best

    def _start(self) -> Columns:
        """Cells as a walk along the links meets them: neighbours are near each other."""
        met: dict[int, None] = {}
        for root in range(len(self._lattice.ranks)):
            waiting = [] if self._left[root] else [root]
            while waiting:
                cell = waiting.pop()
                if cell not in met:
                    met[cell] = None
                    waiting.extend(reversed(self._right[cell]))
        for number, cell in enumerate(met):
            self._place[cell] = float(number)
        self._place_frames()
        columns = [self._arranged(column, self._place) for column in self._lattice.columns()]
        self._remember(columns)
        return columns

    def _sweep(self, columns: Columns, *, to_right: bool) -> Columns:
        neighbours = self._left if to_right else self._right
        fresh = [list(column) for column in columns]
        for rank in range(len(columns)) if to_right else reversed(range(len(columns))):
            wishes = {
                cell: _mean([self._place[one] for one in neighbours[cell]], self._place[cell])
                for cell in columns[rank]
            }
            fresh[rank] = self._arranged(columns[rank], wishes)
            self._remember([fresh[rank]])
        self._place_frames()
        # The frames may have changed places: every column must agree with them.
        settled = [self._arranged(column, self._place) for column in fresh]
        self._remember(settled)
        return settled

    def _remember(self, columns: Columns) -> None:
        for column in columns:
            middle = len(column) / 2
            for number, cell in enumerate(column):
                self._place[cell] = number - middle

    def _place_frames(self) -> None:
        """A frame stands where its cells are on average, or where it was told to."""
        sums = [0.0] * len(self._frames)
        counts = [0] * len(self._frames)
        for cell, frame in enumerate(self._lattice.frames):
            around = frame
            while around != NO_FRAME:
                sums[around] += self._place[cell]
                counts[around] += 1
                around = self._frames[around].parent
        for number, frame_ in enumerate(self._frames):
            told = frame_.order
            mean = sums[number] / max(counts[number], 1)
            self._frame_place[number] = mean if told is None else float(told)

    def _arranged(
        self, column: Sequence[int], wishes: dict[int, float] | list[float]
    ) -> list[int]:
        """The column in the order of the wishes, as far as the frames allow it."""
        if not self._frames:
            return sorted(column, key=lambda cell: wishes[cell])
        inside: dict[int, list[_Item]] = {}
        for cell in column:
            item = _Item(wishes[cell], 1, [cell])
            inside.setdefault(self._lattice.frames[cell], []).append(item)
        # From the innermost frames outwards: a frame comes after the frame around it.
        for frame in range(len(self._frames) - 1, -1, -1):
            if frame in inside:
                item = self._joined(frame, inside.pop(frame))
                inside.setdefault(self._frames[frame].parent, []).append(item)
        return self._joined(NO_FRAME, inside.get(NO_FRAME, [])).cells

    def _joined(self, frame: int, items: list[_Item]) -> _Item:
        framed = [item for item in items if item.frame != NO_FRAME]
        framed.sort(key=lambda item: (self._frame_place[item.frame], item.frame))
        levels = nearest_rising(
            [item.wish for item in framed], [item.weight for item in framed]
        )
        for item, level in zip(framed, levels, strict=True):
            item.wish = level
        loose = [item for item in items if item.frame == NO_FRAME]
        merged = sorted([*framed, *loose], key=lambda item: item.wish)
        weight = sum(item.weight for item in merged)
        wish = sum(item.wish * item.weight for item in merged) / max(weight, 1)
        return _Item(wish, weight, [cell for item in merged for cell in item.cells], frame)


def crossings(columns: Columns, right: Sequence[Sequence[int]]) -> int:
    """How many pairs of links cross each other."""
    total = 0
    for here, there in pairwise(columns):
        place = {cell: number for number, cell in enumerate(there)}
        seen: list[int] = []
        for cell in here:
            ends = sorted(place[one] for one in right[cell])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
